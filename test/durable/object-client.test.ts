import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { sha256Hex } from '../../src/lib/crypto.ts'
import type { StartRequest } from '../../src/responses/model/types.ts'
import { responseStreamClient } from '../../src/responses/object/object-client.ts'

const OWNER = { organizationId: 'organization', userId: 'user' }

function newResponse(kind = '') {
  const responseId = `resp_${kind}_${crypto.randomUUID()}`
  const object = responseStreamClient(env.SCRIPTED_RESPONSES, responseId)
  const admission = { responseId } as StartRequest
  const bodies = () =>
    runInDurableObject(env.SCRIPTED_RESPONSES.getByName(responseId), (instance) => instance.bodies)
  return { object, start: (body: ReadableStream<Uint8Array>) => object.start(admission, body), bodies }
}

/** A body of a request as the platform gives it. */
const bodyOf = (bytes: Uint8Array) => new Response(bytes).body as ReadableStream<Uint8Array>

const bytesOf = (length: number) => new Uint8Array(length).map((_, index) => index % 251)

describe('the client of a response over real RPC', () => {
  it.each([0, 1, 100_000, 50 * 1024 * 1024])('hands over a body of %d bytes', async (length) => {
    const { start, bodies } = newResponse()
    const bytes = bytesOf(length)
    expect(await start(bodyOf(bytes))).toMatchObject({ error: null, events: null })
    expect(await bodies()).toEqual([sha256Hex(bytes)])
  })

  it('hands over a body of many pieces', async () => {
    const { start, bodies } = newResponse()
    const pieces = Array.from({ length: 50 }, (_, index) => new Uint8Array(index + 1).fill(index))
    const { readable, writable } = new IdentityTransformStream()
    const writing = (async () => {
      const writer = writable.getWriter()
      for (const piece of pieces) await writer.write(piece.slice())
      await writer.close()
    })()
    await start(readable)
    await writing
    expect(await bodies()).toEqual([sha256Hex(new Uint8Array(pieces.flatMap((piece) => [...piece])))])
  })

  it('does not begin a response again when its object was reset while it read the body', async () => {
    const { start, bodies } = newResponse('reset')
    await expect(start(bodyOf(bytesOf(1_000_000)))).rejects.toMatchObject({ kind: 'internal', status: 500 })
    expect(await bodies()).toEqual([])
  })

  it('begins it at most once when its object was reset before', async () => {
    const { start, bodies } = newResponse('reset-unread')
    const outcome = await start(bodyOf(bytesOf(1_000_000))).catch((error) => error)
    const begun = await bodies()
    // Whether the runtime had begun to send the body by then is its own affair.
    if (outcome instanceof Error) expect(begun).toEqual([])
    else expect(begun).toEqual([sha256Hex(bytesOf(1_000_000))])
  })

  it('asks once more after a reset', async () => {
    expect(await newResponse('reset').object.settle(OWNER)).toBe('settled')
  })

  it('gives items as the object does', async () => {
    const { object } = newResponse()
    const page = { limit: 1, order: 'asc', after: 'msg_1' } as const
    expect(await object.inputItems(OWNER, page)).toMatchObject({ items: [{ id: 'msg_1' }], hasMore: true })
    expect(await object.inputItems({ ...OWNER, userId: 'other' }, page)).toBeNull()
  })

  it('tells nothing of what the object throws', async () => {
    // The scripted object has no such method.
    const failure = await newResponse()
      .object.state(OWNER)
      .catch((error) => error)
    expect(failure).toMatchObject({ kind: 'internal', message: 'The response could not be reached.' })
    expect(String(failure.cause)).toMatch(/state/)
  })
})
