import { afterEach, describe, expect, it } from 'vitest'
import { checkResponseStream } from '../harness/conformance.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, callEntries } from '../harness/records.ts'
import { asStreamEvents, openResponseSocket, type ResponseSocket } from '../harness/response-socket.ts'
import { createTenant } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'

const open: ResponseSocket[] = []
afterEach(() => {
  for (const socket of open.splice(0)) socket.close()
})

async function connect(key: string, headers: Record<string, string> = {}): Promise<ResponseSocket> {
  const socket = await openResponseSocket(gateway(), key, headers)
  open.push(socket)
  return socket
}

const MODEL = 'scripted-chat'

describe('a response on a WebSocket', () => {
  it('has the events of a stream as messages', async () => {
    const tenant = await createTenant(gateway())
    const socket = await connect(tenant.key)
    const events = await socket.create({ model: MODEL, input: 'Hello' })
    expect(checkResponseStream(asStreamEvents(events))).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { status: 'completed' } })
    const again = await socket.create({ model: MODEL, input: 'Hello again' })
    expect(again.at(-1)).toMatchObject({ type: 'response.completed' })
    const entries = await callEntries(gateway(), tenant, 3)
    expect(entries.map(({ action, status }) => `${action} ${status}`).toReversed()).toEqual([
      'GET /v1/responses 101',
      'WEBSOCKET /v1/responses 200',
      'WEBSOCKET /v1/responses 200',
    ])
  })

  it('continues one that is not stored', async () => {
    const tenant = await createTenant(gateway())
    const socket = await connect(tenant.key)
    const [first, second, third] = [marker(), marker(), marker()]
    const one = await socket.create({ model: MODEL, input: first, store: false })
    const previous = one.at(-1)?.response?.id
    const two = await socket.create({ model: MODEL, input: second, store: false, previous_response_id: previous })
    expect(two.at(-1)?.response).toMatchObject({ status: 'completed', previous_response_id: previous })
    const seen = await seenRequest(gateway(), second)
    expect(seen.body).toContain(first)
    const three = await socket.create({
      model: MODEL,
      input: third,
      store: false,
      previous_response_id: two.at(-1)?.response?.id,
    })
    expect(three.at(-1)?.response).toMatchObject({ status: 'completed' })
    const messages = (JSON.parse((await seenRequest(gateway(), third)).body) as { messages: unknown[] }).messages
    expect(messages).toHaveLength(5)
    expect(await auditEntryOf).toBeDefined()
  })
})
