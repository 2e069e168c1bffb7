import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { configurationOf } from '../../src/deps.ts'
import { keyIdOf } from '../../src/identity/principal.ts'
import { socketClient, socketsName } from '../../src/responses/sockets/socket-client.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  type Caller,
  clientOf,
  MODEL,
  newCaller,
  newResponse,
  query,
  requestOf,
  seedModel,
  settledCalls,
  speaking,
  stubOf,
  until,
} from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

interface Message extends Record<string, unknown> {
  type: string
  sequence_number?: number
  error?: { code: string }
  response?: { id: string; status: string; output_text: string }
}

async function connect({ principal, owner }: Caller) {
  const socket = await socketClient(env.RESPONSE_SOCKETS)({
    owner,
    credential: principal.credential,
    ip: null,
    headers: [],
    compatibility: null,
  })
  if (!socket) throw new Error('no connection')
  const messages: Message[] = []
  let closed: { code: number } | null = null
  socket.addEventListener('message', ({ data }) => messages.push(JSON.parse(String(data)) as Message))
  socket.addEventListener('close', ({ code }) => {
    closed = { code }
  })
  socket.accept()
  const stub = () => env.RESPONSE_SOCKETS.getByName(socketsName(owner))
  return {
    messages,
    isClosed: () => closed,
    create: (body: object) =>
      socket.send(JSON.stringify({ type: 'response.create', model: MODEL, max_output_tokens: 100, ...body })),
    close: () => socket.close(1000),
    evict: () => evictDurableObject(stub()),
    /** Runs its alarm, which starts an object that was removed. */
    wake: () => runDurableObjectAlarm(stub()),
    abort: () =>
      runInDurableObject(stub(), (_, state) => state.abort('the test ends this object')).catch(() => {}),
    attached: () => runInDurableObject(stub(), (_, state) => attachmentOf(state)),
    /** Changes the state of the connection behind its object. */
    change: (change: object) =>
      runInDurableObject(stub(), (_, state) => {
        const attachment = { ...attachmentOf(state), ...change }
        state.getWebSockets()[0]?.serializeAttachment(attachment)
      }),
    /** The last event of so many turns. */
    ends: async (count: number) => {
      const ends = () =>
        messages.filter(({ type }) => type === 'response.completed' || type === 'response.failed')
      await until(() => expect(ends(), JSON.stringify(messages.at(-1))).toHaveLength(count))
      return ends()
    },
  }
}

const attachmentOf = (state: DurableObjectState) =>
  state.getWebSockets()[0]?.deserializeAttachment() as Record<string, unknown>

const asked = requestOf(model)

const answers = (text: string) => {
  model.answer = (request) => {
    request.say(text)
    request.finish()
  }
}

describe('a connection', () => {
  it('continues what is not stored after it has hibernated', async () => {
    const caller = await newCaller()
    const socket = await connect(caller)
    answers('Hello')
    socket.create({ input: 'one', store: false })
    const [first] = await socket.ends(1)
    await socket.evict()
    socket.create({ input: 'two', store: false, previous_response_id: first?.response?.id })
    const [, second] = await socket.ends(2)
    expect(second?.response?.status).toBe('completed')
    expect(model.requests[1]?.body).toContain('one')
    socket.close()
    expect(await settledCalls(caller.organization)).toHaveLength(2)
  })

  it('sends the rest of a response that was being sent when its object was removed', async () => {
    const caller = await newCaller()
    const { response, asked: request } = await speaking(model, caller)
    const socket = await connect(caller)
    await socket.change({
      running: {
        responseId: response.responseId,
        after: 2,
        continues: false,
        held: false,
        compatibility: 'headgate',
      },
    })
    await socket.evict()
    request.say(' there')
    request.finish()
    await socket.wake()
    const [end] = await socket.ends(1)
    expect(end?.response).toMatchObject({ status: 'completed', output_text: 'Hello there' })
    expect(socket.messages.map(({ sequence_number: number }) => number)).toEqual(
      socket.messages.map((_, index) => index + 3),
    )
    // It takes the next message.
    answers('Hello')
    socket.create({ input: 'two' })
    await socket.ends(2)
    socket.close()
  })

  it('says so when the response that it was creating is gone', async () => {
    const caller = await newCaller()
    const socket = await connect(caller)
    const { responseId } = newResponse(caller)
    await socket.change({
      running: { responseId, after: 0, continues: false, held: false, compatibility: 'headgate' },
    })
    await socket.evict()
    await socket.wake()
    await until(() => expect(socket.messages).toMatchObject([{ type: 'error', status: 500 }]))
    answers('Hello')
    socket.create({ input: 'two' })
    await socket.ends(1)
    socket.close()
  })

  it('is closed when its object dies, and its response goes on', async () => {
    const caller = await newCaller()
    const socket = await connect(caller)
    socket.create({ input: 'one' })
    const request = await asked(1)
    request.say('Hello ')
    await until(() => expect(JSON.stringify(socket.messages)).toContain('Hello '))
    await socket.abort()
    await until(() => expect(socket.isClosed()).not.toBeNull())
    request.say('there')
    request.finish()
    const id = socket.messages[0]?.response?.id ?? ''
    const row = async () => (await query('SELECT status FROM responses WHERE id = $1', id))[0]
    await until(async () => expect(await row()).toEqual({ status: 'completed' }))
  })

  it('reads the rights of its key again after it has hibernated', async () => {
    const caller = await newCaller()
    const socket = await connect(caller)
    answers('Hello')
    socket.create({ input: 'one' })
    await socket.ends(1)
    await query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', keyIdOf(caller.principal))
    await socket.evict()
    socket.create({ input: 'two' })
    await until(() => expect(socket.isClosed()).toEqual({ code: 1008 }))
    expect(socket.messages.at(-1)).toMatchObject({
      type: 'error',
      status: 401,
      error: { code: 'key_revoked' },
    })
    expect(model.requests).toHaveLength(1)
  })

  it('holds what is not stored for as long as it is open, and not longer', async () => {
    const caller = await newCaller()
    const socket = await connect(caller)
    answers('Hello')
    socket.create({ input: 'one', store: false })
    const [end] = await socket.ends(1)
    const id = end?.response?.id ?? ''
    const { RESPONSE_WINDOW_MS } = configurationOf(env)
    passTime(2 * RESPONSE_WINDOW_MS)
    await runDurableObjectAlarm(stubOf(caller, id))
    socket.create({ input: 'two', store: false, previous_response_id: id })
    const [, second] = await socket.ends(2)
    expect(second?.response?.status).toBe('completed')
    // The connection can only continue the newer one: the older one is released, and its window is over.
    const client = clientOf(caller, id)
    await until(async () => {
      await runDurableObjectAlarm(stubOf(caller, id))
      expect(await client.snapshot(caller.owner)).toBeNull()
    })
    socket.close()
    const next = clientOf(caller, second?.response?.id ?? '')
    await until(async () => expect(await next.context(caller.owner)).toBeNull())
    expect(await next.snapshot(caller.owner)).toMatchObject({ status: 'completed' })
  })

  it('attaches no more than it needs to its socket', async () => {
    const socket = await connect(await newCaller())
    expect(Object.keys(await socket.attached()).toSorted()).toEqual([
      'compatibility',
      'credential',
      'headers',
      'ip',
      'last',
      'openedAt',
      'owner',
      'running',
    ])
    socket.close()
  })
})
