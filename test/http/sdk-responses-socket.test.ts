import OpenAI from 'openai'
import type { ResponsesServerEvent } from 'openai/resources/responses/responses'
import { ResponsesWSBase } from 'openai/resources/responses/ws-base'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { newWebSocket } from '../harness/response-socket.ts'
import { CHAT_MODEL, openAiUrl } from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'

type Listener = (...values: never[]) => void

/** Node's own WebSocket in the form that the SDK takes. */
class NodeSocket {
  readonly platformSocket: WebSocket
  readonly #target: EventTarget
  readonly #wrapped = new Map<Listener, (event: Event) => void>()

  constructor(socket: WebSocket) {
    this.platformSocket = socket
    this.#target = socket
  }

  get readyState() {
    return this.platformSocket.readyState
  }

  send(data: string | ArrayBufferLike | ArrayBufferView) {
    this.platformSocket.send(data as string)
  }

  close(code?: number, reason?: string) {
    this.platformSocket.close(code, reason)
  }

  on(type: string, listener: Listener) {
    const wrapped = (event: Event) => {
      const { data, code, reason } = event as Partial<MessageEvent & CloseEvent>
      const values = { message: [data, false], close: [code, reason] }[type] ?? [
        new Error('the connection failed'),
      ]
      listener(...(values as never[]))
    }
    this.#wrapped.set(listener, wrapped)
    this.#target.addEventListener(type, wrapped)
  }

  off(type: string, listener: Listener) {
    const wrapped = this.#wrapped.get(listener)
    if (wrapped) this.#target.removeEventListener(type, wrapped)
  }

  once(type: string, listener: Listener) {
    this.on(type, (...values) => listener(...values))
  }
}

/** The client of the SDK without the package `ws`, which its `ResponsesWS` needs on Node. */
class ResponsesSocket extends ResponsesWSBase<NodeSocket> {
  constructor(client: OpenAI) {
    super(client)
    this._connectInitial()
  }

  protected override _createSocket(url: URL, headers: Record<string, string>): NodeSocket {
    return new NodeSocket(newWebSocket(url.href, headers))
  }
}

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const connect = (apiKey = tenant.key) => new ResponsesSocket(new OpenAI({ apiKey, baseURL: openAiUrl() }))

/** The events of one response. @throws the error that ends it. */
async function eventsOf(socket: ResponsesSocket, message: OpenAI.Responses.ResponseCreateParams) {
  socket.send({ type: 'response.create', ...message } as Parameters<ResponsesSocket['send']>[0])
  const events: ResponsesServerEvent[] = []
  for await (const event of socket.stream()) {
    if (event.type === 'error') throw event.error
    if (event.type === 'close') throw new Error('closed')
    if (event.type !== 'message') continue
    events.push(event.message)
    if (event.message.type === 'response.completed') return events
  }
  throw new Error('the iterator ended')
}

describe("the official SDK's WebSocket client", () => {
  it('creates responses and continues them', async () => {
    const socket = connect()
    const first = await eventsOf(socket, { model: CHAT_MODEL, input: 'hello', store: false })
    expect(first.map(({ type }) => type)).toContain('response.output_text.delta')
    const last = first.at(-1)
    const previous = last?.type === 'response.completed' ? last.response.id : ''
    const request = { model: CHAT_MODEL, input: 'again', store: false, previous_response_id: previous }
    expect((await eventsOf(socket, request)).at(-1)).toMatchObject({
      response: { status: 'completed', previous_response_id: previous },
    })
    socket.close()
  })

  it('throws the error of a message, and goes on', async () => {
    const socket = connect()
    const request = { model: CHAT_MODEL, input: 'hello', previous_response_id: 'resp_missing' }
    await expect(eventsOf(socket, request)).rejects.toMatchObject({
      error: { type: 'error', error: { code: 'previous_response_not_found' } },
    })
    socket.close()
  })
})
