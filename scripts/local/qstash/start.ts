import type { ServerResponse } from 'node:http'
import { type RunningServer, sendJson } from '../../node/loopback-server.ts'
import type { MessageQueue } from '../../node/qstash/message-queue.ts'
import { viewMessage } from '../../node/qstash/message-view.ts'
import { type QueueOptions, startQueue } from '../../node/qstash/server.ts'
import { AdjustableClock, readAdvance } from '../adjustable-clock.ts'

/** Options of the QStash stand-in. */
export interface QstashOptions extends Omit<QueueOptions, 'clock' | 'control' | 'token' | 'route'> {
  /** The token that clients have to send; `local` by default. */
  readonly token?: string
  readonly clock?: AdjustableClock
  /** Serves, without a token, `POST /control/advance` with `{"milliseconds": n}` and `GET /control/pending`. */
  readonly control?: boolean
}

/**
 * Starts the stand-in for QStash, whose clock tests can move.
 *
 * @throws `EADDRINUSE` for a port in use, OptionError for a file in use or a malformed option
 */
export function startQstash(options: QstashOptions): Promise<RunningServer> {
  const { token = 'local', clock = new AdjustableClock(), control: isControlled, ...settings } = options
  return startQueue({
    ...settings,
    token,
    clock,
    control: (broker, action, body, response) => {
      if (isControlled !== true || !/^\w+ \/control\//.test(action)) return false
      control(broker, clock, action, body, response)
      return true
    },
  })
}

function control(
  broker: MessageQueue,
  clock: AdjustableClock,
  action: string,
  body: Buffer,
  response: ServerResponse,
): void {
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
