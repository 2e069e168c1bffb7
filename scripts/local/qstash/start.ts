import type { IncomingMessage, ServerResponse } from 'node:http'
import { AdjustableClock, readAdvance } from '../adjustable-clock.ts'
import { listenOnLoopback, readBody, sendJson } from '../loopback-server.ts'
import { RecordStore } from '../record-store.ts'
import { OptionError, type RunningStandIn } from '../stand-in-process.ts'
import { answerApi } from './api.ts'
import { MessageQueue } from './message-queue.ts'
import { viewMessage } from './message-view.ts'
import { Schedules } from './schedules.ts'

/** Options of the QStash stand-in. */
export interface QstashOptions {
  /** TCP port on 127.0.0.1; any free one when left out. */
  readonly port?: number
  /** The token that clients have to send; `local` by default. */
  readonly token?: string
  /** The key that signs deliveries, and the one after it. Receivers need both. */
  readonly currentSigningKey: string
  readonly nextSigningKey: string
  /** File that keeps messages, schedules and the DLQ over a restart; without it they end with the process. */
  readonly file?: string
  readonly clock?: AdjustableClock
  /** Serves, without a token, `POST /control/advance` with `{"milliseconds": n}` and `GET /control/pending`. */
  readonly control?: boolean
}

/** The fixed plan's limit for a message, in bytes. https://upstash.com/pricing/qstash */
const REQUEST_LIMIT = 50 * 1024 * 1024

/**
 * Starts the stand-in for QStash: its REST API under `/v2`, delivery with signatures, retries, the DLQ and
 * schedules. `GET /health` answers 200 without a token.
 *
 * @throws `EADDRINUSE` for a port in use, OptionError for a file in use or a malformed option
 */
export async function startQstash(options: QstashOptions): Promise<RunningStandIn> {
  const { currentSigningKey, nextSigningKey } = options
  if (currentSigningKey === '' || nextSigningKey === '') throw new OptionError('both signing keys are needed')
  const clock = options.clock ?? new AdjustableClock()
  let handle: (request: IncomingMessage, response: ServerResponse) => Promise<void> = async (
    _request,
    response,
  ) => sendJson(response, 503, { error: 'starting' })
  const http = await listenOnLoopback(options.port ?? 0, (request, response) => handle(request, response))
  let store: RecordStore
  try {
    store = new RecordStore(options.file)
  } catch (error) {
    await http.close()
    throw error
  }
  const broker = new MessageQueue({ store, clock, signingKey: currentSigningKey })
  const schedules = new Schedules(store, broker, clock)
  const parts = { broker, schedules, clock }
  store.open()
  handle = (request, response) => route(options, parts, request, response)
  schedules.start()
  broker.pump()
  let closing: Promise<void> | undefined
  const shutDown = async (): Promise<void> => {
    schedules.close()
    broker.close()
    await http.close()
    store.close()
  }
  const close = (): Promise<void> => {
    closing ??= shutDown()
    return closing
  }
  return { port: http.port, url: http.url, close }
}

interface Parts {
  readonly broker: MessageQueue
  readonly schedules: Schedules
  readonly clock: AdjustableClock
}

async function route(
  options: QstashOptions,
  parts: Parts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = request.url ?? '/'
  if (url === '/health') return sendJson(response, 200, { ready: true })
  const body = await readBody(request, REQUEST_LIMIT)
  if (url.startsWith('/control/') && options.control === true) {
    return control(parts, `${request.method} ${url}`, body, response)
  }
  if (request.headers.authorization !== `Bearer ${options.token ?? 'local'}`) {
    return sendJson(response, 401, { error: 'invalid token' })
  }
  const answer = answerApi(parts, {
    method: request.method ?? 'GET',
    url,
    headers: request.headers,
    body,
    callerIp: request.socket.remoteAddress ?? '127.0.0.1',
  })
  sendJson(response, answer.status, answer.body)
}

function control({ broker, clock }: Parts, action: string, body: Buffer, response: ServerResponse): void {
  if (action === 'GET /control/pending') {
    const messages = broker.pending().map((message) => ({
      ...viewMessage(message),
      retried: message.retried,
      nextDeliveryTime: message.nextDeliveryAt,
    }))
    sendJson(response, 200, { now: clock.now(), active: broker.active(), messages })
    return
  }
  const milliseconds = action === 'POST /control/advance' ? readAdvance(body) : undefined
  if (milliseconds !== undefined) clock.advance(milliseconds)
  if (milliseconds !== undefined) sendJson(response, 200, { now: clock.now() })
  else sendJson(response, 400, { error: 'expected GET pending, or POST advance with {"milliseconds": n}' })
}
