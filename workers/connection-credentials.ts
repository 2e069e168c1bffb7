import { DurableObject } from 'cloudflare:workers'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { type RenewalRequest, TokenRenewal } from '../src/integrations/brokers/local/token-renewal.ts'
import { logFailuresOf } from '../src/lib/logged-methods.ts'

const UNSAVED = 'unsaved'

/**
 * The Durable Object that renews the tokens of one connection. It has storage, alarm and name; the code is in `src`.
 */
export class ConnectionCredentials extends DurableObject<Bindings> {
  readonly #renewal: TokenRenewal

  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, environment)
    const { storage } = context
    this.#renewal = new TokenRenewal(createDeps(environment, context as unknown as ExecutionContext), {
      get: () => storage.get(UNSAVED),
      put: async (unsaved) => {
        await storage.put(UNSAVED, unsaved)
        await storage.sync()
      },
      delete: async () => void (await storage.delete(UNSAVED)),
      wakeAfter: (milliseconds) => storage.setAlarm(Date.now() + milliseconds),
    })
  }

  renew(request: RenewalRequest) {
    return this.#renewal.renew(request)
  }

  override async alarm() {
    await this.#renewal.saveLater()
  }
}

logFailuresOf(ConnectionCredentials, 'ConnectionCredentials')
