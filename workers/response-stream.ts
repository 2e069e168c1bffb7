import { DurableObject } from 'cloudflare:workers'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { unsharedLedgers } from '../src/ledger/client.ts'
import { logFailuresOf } from '../src/lib/logged-methods.ts'
import type { ItemPageRequest } from '../src/responses/model/stored-items.ts'
import type {
  Owner,
  RequestContent,
  ResponseStreamObject,
  StartRequest,
} from '../src/responses/model/types.ts'
import { DurableResponse } from '../src/responses/object/durable-response.ts'
import type { ResponseDeps } from '../src/responses/response-deps.ts'

/** The Durable Object behind a response, named by its id. A shell: what is here is storage, alarm and name. */
export class ResponseStream extends DurableObject<Bindings> implements ResponseStreamObject {
  readonly #response: DurableResponse

  /** @param more replaces parts of the deps, for tests. */
  constructor(
    context: DurableObjectState,
    environment: Bindings,
    more: Partial<Pick<ResponseDeps, 'hostedTools' | 'responseStream'>> = {},
  ) {
    super(context, environment)
    const deps = createDeps(environment, context as unknown as ExecutionContext, unsharedLedgers())
    this.#response = new DurableResponse(context.storage, { ...deps, ...more })
  }

  async start(request: StartRequest, body: RequestContent) {
    return this.#response.start(request, body)
  }

  async compact(request: StartRequest, body: RequestContent) {
    return this.#response.compact(request, body)
  }

  async follow(owner: Owner, after: number) {
    return this.#response.follow(owner, after)
  }

  async snapshot(owner: Owner) {
    return this.#response.snapshot(owner)
  }

  async ended(owner: Owner) {
    return this.#response.ended(owner)
  }

  async cancel(owner: Owner) {
    return this.#response.cancel(owner)
  }

  async remove(owner: Owner) {
    return this.#response.remove(owner)
  }

  async inputItems(owner: Owner, page: ItemPageRequest) {
    return this.#response.inputItems(owner, page)
  }

  async state(owner: Owner) {
    return this.#response.state(owner)
  }

  async context(owner: Owner) {
    return this.#response.context(owner)
  }

  async passFiles(owner: Owner) {
    return this.#response.passFiles(owner)
  }

  async release(owner: Owner) {
    return this.#response.release(owner)
  }

  async settle(owner: Owner) {
    return this.#response.settle(owner)
  }

  override async alarm() {
    await this.#response.alarm()
  }
}

logFailuresOf(ResponseStream, 'ResponseStream')
