import type { StreamEvent } from './conformance-rules.ts'
import { type Answer, send } from './send.ts'

type Json = Record<string, unknown>

/** A message of the gateway. */
export interface SocketEvent extends Json {
  type: string
  response?: Json & { id: string; status: string; output_text: string }
  error?: Json & { code: string; message: string }
}

/** A connection of `/v1/responses` as a client sees it. */
export interface ResponseSocket {
  send(message: Json | string | Uint8Array): void
  /** The next message. @throws when the connection closes first, or after `LIMIT_MS`. */
  next(): Promise<SocketEvent>
  /** Sends a `response.create` and resolves with the events up to the last one, or with an error before the first. */
  create(body: Json): Promise<SocketEvent[]>
  close(): void
  closed: Promise<{ code: number; reason: string }>
}

/** A message of 32 MiB takes seconds on a busy machine. */
const LIMIT_MS = 30_000
const LAST = new Set(['response.completed', 'response.failed', 'response.incomplete'])

/** Node's client takes headers, which its types do not have. */
type HeaderSocket = new (url: string, options: { headers: Record<string, string> }) => WebSocket

/** A WebSocket with headers of its own. */
export const newWebSocket = (url: string, headers: Record<string, string>): WebSocket =>
  new (WebSocket as unknown as HeaderSocket)(url, { headers })

export const socketUrl = ({ baseUrl }: { baseUrl: string }): string =>
  `${baseUrl.replace('http', 'ws')}/v1/responses`

/** @throws when the upgrade is refused. */
export async function openResponseSocket(
  address: { baseUrl: string },
  key: string,
  headers: Record<string, string> = {},
): Promise<ResponseSocket> {
  const socket = newWebSocket(socketUrl(address), { authorization: `Bearer ${key}`, ...headers })
  const closed = Promise.withResolvers<{ code: number; reason: string }>()
  const arrived: SocketEvent[] = []
  let wake = () => {}
  socket.addEventListener('message', ({ data }) => {
    arrived.push(JSON.parse(String(data)) as SocketEvent)
    wake()
  })
  socket.addEventListener('close', ({ code, reason }) => closed.resolve({ code, reason }))
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', () => reject(new Error('the upgrade was refused')))
  })
  const next = async (): Promise<SocketEvent> => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no message came')), LIMIT_MS)
    })
    const gone = closed.promise.then(({ code, reason }) => {
      if (arrived.length === 0) throw new Error(`closed: ${code} ${reason}`)
    })
    try {
      while (arrived.length === 0) {
        const arrival = new Promise<void>((resolve) => {
          wake = resolve
        })
        await Promise.race([arrival, gone, late])
      }
      return arrived.shift() as SocketEvent
    } finally {
      clearTimeout(timer)
      gone.catch(() => {})
    }
  }
  const sendMessage = (message: Json | string | Uint8Array) =>
    socket.send(
      typeof message === 'string' || message instanceof Uint8Array
        ? (message as string)
        : JSON.stringify(message),
    )
  return {
    send: sendMessage,
    next,
    create: async (body) => {
      sendMessage({ type: 'response.create', ...body })
      const events: SocketEvent[] = []
      for (;;) {
        const event = await next()
        events.push(event)
        const isRefusal = event.type === 'error' && events.length === 1
        if (isRefusal || LAST.has(event.type)) return events
      }
    },
    close: () => socket.close(),
    closed: closed.promise,
  }
}

/** The answer to an upgrade that is refused. */
export const refusedUpgrade = (
  address: { baseUrl: string },
  headers: Record<string, string>,
): Promise<Answer> =>
  send(`${address.baseUrl}/v1/responses`, {
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': Buffer.alloc(16, 1).toString('base64'),
      ...headers,
    },
  })

/** Events in the form that the rules of streams are checked in. */
export const asStreamEvents = (events: readonly SocketEvent[]): StreamEvent[] =>
  events.map(
    (data) => ({ event: data.type, id: String(data.sequence_number), data }) as unknown as StreamEvent,
  )
