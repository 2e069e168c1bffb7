import { DurableObject } from 'cloudflare:workers'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { unsharedLedgers } from '../src/ledger/client.ts'
import { logFailuresOf } from '../src/lib/logged-methods.ts'
import { defineMethods } from '../src/responses/object/methods.ts'
import { PooledResponses } from '../src/responses/pool/pooled-responses.ts'
import type { ResponseDeps } from '../src/responses/response-deps.ts'

/**
 * The Durable Object of many responses, named by `poolName`. It has storage, alarm and name; the code is in `src`. The
 * first parameter of each method is the id of a response.
 */
export class ResponsePool extends DurableObject<Bindings> {
  readonly pool: PooledResponses

  /** @param more replaces parts of the deps, and `storage` that of the object, for tests. */
  constructor(
    context: DurableObjectState,
    environment: Bindings,
    more: Partial<Pick<ResponseDeps, 'hostedTools' | 'responseObject'>> = {},
    storage: DurableObjectStorage = context.storage,
  ) {
    super(context, environment)
    const deps = createDeps(environment, context as unknown as ExecutionContext, unsharedLedgers())
    this.pool = new PooledResponses(storage, { ...deps, ...more })
  }

  override async alarm() {
    await this.pool.alarm()
  }
}

defineMethods(ResponsePool, ({ pool }, name, [responseId, ...parameters]) =>
  pool.call(name, String(responseId), parameters),
)
logFailuresOf(ResponsePool, 'ResponsePool')
