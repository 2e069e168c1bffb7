import { DurableObject } from 'cloudflare:workers'
import { readAll } from '../../src/lib/bytes/read-bytes.ts'
import { sha256Hex } from '../../src/lib/crypto.ts'
import type { ItemPage, ItemPageRequest } from '../../src/responses/model/stored-items.ts'
import type { Owner, StartRequest, StartResult } from '../../src/responses/model/types.ts'

const BODY_LIMIT = 64 * 1024 * 1024

/** Stands in for the object of a response: does what the response's id says, and counts what it was asked. */
export class ScriptedResponse extends DurableObject {
  /** Digests of the bodies that were read whole. */
  readonly bodies: string[] = []

  async start(request: StartRequest, body: ReadableStream<Uint8Array>): Promise<StartResult> {
    const { responseId } = request
    const failing = responseId.includes('reset') && (await this.#isFirst())
    if (failing && responseId.includes('unread')) this.ctx.abort('reset before the body was read')
    if (failing) {
      await body.getReader().read()
      this.ctx.abort('reset while the body was read')
    }
    this.bodies.push(sha256Hex(await readAll(body, BODY_LIMIT)))
    return {
      error: null,
      recorded: true,
      compatibility: 'headgate',
      headers: {},
      events: null,
      background: false,
      held: false,
    }
  }

  async inputItems(owner: Owner, page: ItemPageRequest): Promise<ItemPage | null> {
    const item = { id: page.after ?? '', type: 'message', role: 'user', callId: null, contentKey: null }
    return owner.userId === 'user' ? { items: [{ ...item, body: '{}' }], hasMore: true } : null
  }

  async settle(): Promise<string> {
    if (this.ctx.id.name?.includes('reset') && (await this.#isFirst())) this.ctx.abort('reset')
    return 'settled'
  }

  /** The stored mark outlives the reset that the first call asks for. */
  async #isFirst(): Promise<boolean> {
    const calls = (await this.ctx.storage.get<number>('calls')) ?? 0
    await this.ctx.storage.put('calls', calls + 1)
    await this.ctx.storage.sync()
    return calls === 0
  }
}
