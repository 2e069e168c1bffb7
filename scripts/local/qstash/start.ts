import type { IncomingMessage, ServerResponse } from 'node:http'
import { AdjustableClock, readAdvance } from '../adjustable-clock.ts'
import { listenOnLoopback, readBody, sendJson } from '../loopback-server.ts'
import { OptionError, type RunningStandIn } from '../stand-in-process.ts'
import { answerApi } from './api.ts'
import type { ApiParts } from './api-call.ts'
import { Broker, type BrokerParts } from './broker.ts'
import { ExpressionError, evaluateExpression } from './expression.ts'
import { viewMessage } from './message-view.ts'
import { Queues } from './queues.ts'
import { RecordStore } from './record-store.ts'
import { Schedules } from './schedules.ts'

/** How the QStash stand-in is started. */
export interface QstashOptions {
  /** TCP port on 127.0.0.1; any free one when left out. */
  readonly port?: number
  /** The token that clients have to send; `local` by default. */
  readonly token?: string
  /** The key that signs deliveries, and that of the next roll. Receivers need both. */
  readonly currentSigningKey: string
  readonly nextSigningKey: string
  /** Which of the two signs; the current one by default. */
  readonly signWith?: 'current' | 'next'
  /** File that keeps messages, schedules, queues and the DLQ over a restart; without it they end with the process. */
  readonly file?: string
  /** Milliseconds between attempts as an expression over `retried`, in place of the documented backoff. */
  readonly retryDelay?: string
  readonly clock?: AdjustableClock
  /**
   * Serves, without a token: `POST /control/advance` with `{"milliseconds": n}`, `POST /control/sign-with` with
   * `{"key": "current" | "next"}`, and `GET /control/pending`.
   */
  readonly control?: boolean
}

/** The fixed plan's limit for a message, in bytes, with room for a batch. https://upstash.com/pricing/qstash */
const REQUEST_LIMIT = 64 * 1024 * 1024

/**
 * Starts the stand-in for QStash: its REST API under `/v2`, delivery with signatures, retries, callbacks, the DLQ,
 * queues and schedules. `GET /health` answers 200 without a token.
 *
 * @throws `EADDRINUSE` for a port in use, OptionError for a file in use or a malformed option
 */
export async function startQstash(options: QstashOptions): Promise<RunningStandIn> {
  checkOptions(options)
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
  const brokerParts = makeBrokerParts(options, store, clock)
  const broker = new Broker(brokerParts)
  const schedules = new Schedules(store, broker, clock)
  const parts: ApiParts = { broker, schedules, queues: brokerParts.queues, now: clock.now }
  store.open()
  handle = (request, response) => route(options, parts, brokerParts, request, response)
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

function checkOptions({ currentSigningKey, nextSigningKey, retryDelay }: QstashOptions): void {
  if (currentSigningKey === '' || nextSigningKey === '') throw new OptionError('both signing keys are needed')
  if (retryDelay === undefined) return
  try {
    evaluateExpression(retryDelay, { retried: 0 })
  } catch (error) {
    if (error instanceof ExpressionError) throw new OptionError(`retry delay: ${error.message}`)
    throw error
  }
}

function makeBrokerParts(options: QstashOptions, store: RecordStore, clock: AdjustableClock): BrokerParts {
  return {
    store,
    clock,
    queues: new Queues(store),
    keys: { current: options.currentSigningKey, next: options.nextSigningKey },
    signWith: options.signWith ?? 'current',
    ...(options.retryDelay !== undefined && { retryDelay: options.retryDelay }),
  }
}

async function route(
  options: QstashOptions,
  parts: ApiParts,
  brokerParts: BrokerParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = request.url ?? '/'
  if (url === '/health') return sendJson(response, 200, { ready: true })
  const body = await readBody(request, REQUEST_LIMIT)
  if (url.startsWith('/control/') && options.control === true) {
    return control(parts, brokerParts, `${request.method} ${url}`, body, response)
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

function control(
  { broker, now }: ApiParts,
  brokerParts: BrokerParts,
  action: string,
  body: Buffer,
  response: ServerResponse,
): void {
  const answer = (status: number, content: object): void => sendJson(response, status, content)
  if (action === 'GET /control/pending') {
    const messages = broker.pending().map((message) => ({
      ...viewMessage(message),
      retried: message.retried,
      nextDeliveryTime: message.nextDeliveryAt,
    }))
    answer(200, { now: now(), active: broker.active(), messages })
  } else if (action === 'POST /control/advance') {
    const milliseconds = readAdvance(body)
    if (milliseconds !== undefined) brokerParts.clock.advance(milliseconds)
    if (milliseconds === undefined) answer(400, { error: 'expected {"milliseconds": n}' })
    else answer(200, { now: now() })
  } else if (action === 'POST /control/sign-with') {
    const key = /"key"\s*:\s*"(current|next)"/.exec(body.toString('utf8'))?.[1]
    if (key === 'current' || key === 'next') brokerParts.signWith = key
    if (key === undefined) answer(400, { error: 'expected {"key": "current"} or {"key": "next"}' })
    else answer(200, { key })
  } else answer(404, { error: `${action} not found` })
}
