import { type ApiAnswer, type ApiCall, parseBody } from './api-call.ts'
import { readPublish } from './api-messages.ts'

/** `POST /v2/schedules/{destination}` */
export function createSchedule(call: ApiCall): ApiAnswer {
  return { status: 201, body: call.schedules.create(readPublish(call, call.match[0] ?? '')) }
}

/** `GET /v2/schedules` */
export function listSchedules({ schedules }: ApiCall): ApiAnswer {
  return { status: 200, body: schedules.list() }
}

/** `GET /v2/schedules/{scheduleId}` */
export function getSchedule({ schedules, match: [scheduleId = ''] }: ApiCall): ApiAnswer {
  return { status: 200, body: schedules.view(scheduleId) }
}

/** `DELETE /v2/schedules/{scheduleId}` */
export function deleteSchedule({ schedules, match: [scheduleId = ''] }: ApiCall): ApiAnswer {
  schedules.delete(scheduleId)
  return { status: 200, body: {} }
}

/** `PATCH /v2/schedules/{scheduleId}/pause` and `/resume` */
export function pauseSchedule({ schedules, match: [scheduleId = '', action] }: ApiCall): ApiAnswer {
  schedules.setPaused(scheduleId, action === 'pause')
  return { status: 200, body: {} }
}

/** `POST /v2/queues` */
export function upsertQueue({ queues, broker, body, now }: ApiCall): ApiAnswer {
  const { queueName, parallelism, paused } = (parseBody(body) ?? {}) as Record<string, unknown>
  const settings = {
    ...(parallelism !== undefined && { parallelism: Number(parallelism) }),
    ...(typeof paused === 'boolean' && { paused }),
  }
  queues.upsert(String(queueName ?? ''), settings, now())
  broker.pump()
  return { status: 200, body: {} }
}

/** `GET /v2/queues` */
export function listQueues({ queues, broker }: ApiCall): ApiAnswer {
  return { status: 200, body: queues.list(broker.pending()) }
}

/** `GET /v2/queues/{queueName}` */
export function getQueue({ queues, broker, match: [name = ''] }: ApiCall): ApiAnswer {
  return { status: 200, body: queues.view(name, broker.pending()) }
}

/** `DELETE /v2/queues/{queueName}` */
export function deleteQueue({ queues, broker, match: [name = ''] }: ApiCall): ApiAnswer {
  queues.delete(name)
  broker.pump()
  return { status: 200, body: {} }
}

/** `POST /v2/queues/{queueName}/pause` and `/resume` */
export function pauseQueue({ queues, broker, match: [name = '', action], now }: ApiCall): ApiAnswer {
  queues.upsert(name, { paused: action === 'pause' }, now())
  broker.pump()
  return { status: 200, body: {} }
}
