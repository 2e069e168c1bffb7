import { DurableObject } from 'cloudflare:workers'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { unsharedLedgers } from '../src/ledger/client.ts'
import { logFailuresOf } from '../src/lib/logged-methods.ts'
import { UnflushedEvents } from '../src/responses/log/unflushed-events.ts'
import type { ResponseMethods } from '../src/responses/model/types.ts'
import { DurableResponse } from '../src/responses/object/durable-response.ts'
import { type AnyMethod, defineMethods } from '../src/responses/object/methods.ts'
import type { ResponseDeps } from '../src/responses/response-deps.ts'
import { wholeStorage } from '../src/responses/storage/slice.ts'

/** The methods that `defineMethods` adds. */
export interface ResponseStream extends ResponseMethods {}

/** The Durable Object of one response, named by its id. It has storage, alarm and name; the code is in `src`. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the table of methods has all that the interface declares
export class ResponseStream extends DurableObject<Bindings> {
  readonly response: DurableResponse

  /** @param more replaces parts of the deps, for tests. */
  constructor(
    context: DurableObjectState,
    environment: Bindings,
    more: Partial<Pick<ResponseDeps, 'hostedTools' | 'responseObject'>> = {},
  ) {
    super(context, environment)
    const deps = createDeps(environment, context as unknown as ExecutionContext, unsharedLedgers())
    const slice = wholeStorage(context.storage)
    this.response = new DurableResponse(slice, new UnflushedEvents(), { ...deps, ...more })
  }

  override async alarm() {
    await this.response.alarm()
  }
}

defineMethods(ResponseStream, ({ response }, name, parameters) =>
  (response[name] as AnyMethod).call(response, ...parameters),
)
logFailuresOf(ResponseStream, 'ResponseStream')
