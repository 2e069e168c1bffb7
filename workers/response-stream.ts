import { DurableObject } from 'cloudflare:workers'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import type { ItemPageRequest } from '../src/responses/items/store.ts'
import { LiveResponse } from '../src/responses/live-response.ts'
import type { Admission, Owner, ResponseStreamObject } from '../src/responses/types.ts'

/** The Durable Object behind a response, named by its id. A shell: what is here is storage, alarm and name. */
export class ResponseStream extends DurableObject<Bindings> implements ResponseStreamObject {
  readonly #response: LiveResponse

  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, environment)
    const deps = createDeps(environment, context as unknown as ExecutionContext)
    this.#response = new LiveResponse(context.storage, deps)
  }

  async start(admission: Admission, body: ReadableStream<Uint8Array>) {
    return this.#response.start(admission, body)
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

  async settle(owner: Owner) {
    return this.#response.settle(owner)
  }

  override async alarm() {
    await this.#response.alarm()
  }
}
