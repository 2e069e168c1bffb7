import type { IncomingMessage, ServerResponse } from 'node:http'
import { secretsEqual } from '../../../src/lib/crypto.ts'
import { listenOnLoopback, type RunningServer, readBody, sendJson } from '../loopback-server.ts'
import { RecordStore } from '../record-store.ts'
import { OptionError } from '../start-error.ts'
import { answerApi } from './api.ts'
import type { DeliveryRoute } from './delivery.ts'
import { MessageQueue } from './message-queue.ts'
import { type QueueClock, SYSTEM_CLOCK } from './queue-clock.ts'
import type { DeadMessage } from './queued-message.ts'
import { Schedules } from './schedules.ts'

/** Options of the message queue. */
export interface QueueOptions {
  /** TCP port on 127.0.0.1; any free one when left out. */
  readonly port?: number
  /** The token that clients have to send. */
  readonly token: string
  /** The key that signs deliveries, and the one after it. Receivers need both. */
  readonly currentSigningKey: string
  readonly nextSigningKey: string
  /** File that keeps messages, schedules and the DLQ over a restart; without it they end with the process. */
  readonly file?: string
  readonly clock?: QueueClock
  /** Where deliveries connect to, if that is not the host of their URL. */
  readonly route?: DeliveryRoute
  /** Whether it delivers only after `resume`. */
  readonly isPaused?: boolean
  /** Gets each message whose retries are exhausted. */
  onDeadLetter?(letter: DeadMessage): void
  /** Answers requests that need no token. @returns whether it has answered this one */
  control?(broker: MessageQueue, action: string, body: Buffer, response: ServerResponse): boolean
}

export interface RunningQueue extends RunningServer {
  /**
   * Begins no more deliveries, and waits for those under way; messages are accepted all the same.
   * @param limitMs after which they are abandoned, and made again later
   */
  pause(limitMs: number): Promise<void>
  /** Delivers again. */
  resume(): void
}

/** The fixed plan's limit for a message, in bytes. https://upstash.com/pricing/qstash */
const REQUEST_LIMIT = 50 * 1024 * 1024

/**
 * Starts a message queue with the interface of QStash: its REST API under `/v2`, delivery with signatures, retries, the DLQ and
 * schedules. `GET /health` answers 200 without a token.
 *
 * @throws `EADDRINUSE` for a port in use, OptionError for a file in use or a malformed option
 */
export async function startQueue(options: QueueOptions): Promise<RunningQueue> {
  const { currentSigningKey, nextSigningKey, clock = SYSTEM_CLOCK, route: deliveryRoute } = options
  if (currentSigningKey === '' || nextSigningKey === '') throw new OptionError('both signing keys are needed')
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
  const broker = new MessageQueue({
    store,
    clock,
    signingKey: currentSigningKey,
    route: deliveryRoute ?? null,
    onDeadLetter: options.onDeadLetter ?? (() => {}),
  })
  const schedules = new Schedules(store, broker, clock)
  if (options.isPaused) await broker.pause(0)
  store.open()
  handle = (request, response) => route(options, { broker, schedules }, request, response)
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
  return {
    port: http.port,
    url: http.url,
    pause: (limitMs) => broker.pause(limitMs),
    resume: () => broker.resume(),
    close,
  }
}

async function route(
  options: QueueOptions,
  parts: { broker: MessageQueue; schedules: Schedules },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = request.url ?? '/'
  if (url === '/health') return sendJson(response, 200, { ready: true })
  const body = await readBody(request, REQUEST_LIMIT)
  if (options.control?.(parts.broker, `${request.method} ${url}`, body, response)) return
  if (!secretsEqual(request.headers.authorization ?? '', `Bearer ${options.token}`)) {
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
