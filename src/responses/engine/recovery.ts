import { addUsage } from '../../calls/usage.ts'
import { interruptedOutcome } from '../../gateway/call-outcome.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import { EventWriter } from '../emitter/event-writer.ts'
import { contextItemOf } from '../emitter/output-items.ts'
import { replayResponse } from '../emitter/replay.ts'
import { storedItemOf } from '../items/item-bytes.ts'
import type { EventLog } from '../log/event-log.ts'
import type { EmittedEvent } from '../model/events.ts'
import type { Progress, UnsettledCall } from '../model/response-head.ts'
import { outputTextOf, responseUsage } from '../model/response-members.ts'
import type { ResponseState } from '../store/response-state.ts'

const INTERRUPTED = {
  code: 'server_error',
  message: 'The response was interrupted. What was generated up to here is kept.',
}

/**
 * Ends an interrupted response from its stored events. These stay valid: open items and parts are closed as incomplete,
 * then `error` and `response.failed` follow. Its usage is that of the settled calls and an estimate of the open one.
 * @param payloads of all stored events in order. @param lastSequence of the last of them.
 * @param now milliseconds since the epoch.
 * @returns the final response, the events to append, the open call with its outcome, and numbers (`StoredNumbers`).
 * @throws Error for a log without its first event, SyntaxError for a payload that is not JSON.
 * @internal Tests end a log that was cut off at every event.
 */
export function interruptedResponse(
  payloads: Iterable<string>,
  lastSequence: number,
  { usage, openCall }: Pick<Progress, 'usage' | 'openCall'>,
  now: number,
): {
  response: ResponseObject
  events: EmittedEvent[]
  call: UnsettledCall | null
  itemNumbers: number[][]
} {
  const events: EmittedEvent[] = []
  const writer = new EventWriter(lastSequence, (event) => events.push(event))
  const replayed = replayResponse(payloads, writer, openCall?.after)
  const call = interruptedCall(openCall, replayed.callBytes, now)
  if (!replayed.inProgress) writer.write('response.in_progress', { response: replayed.response })
  for (const item of replayed.items) item.close('incomplete')
  const output = replayed.items.map(({ item }) => item)
  const response: ResponseObject = {
    ...replayed.response,
    status: 'failed',
    error: INTERRUPTED,
    output,
    output_text: outputTextOf(output),
    usage: responseUsage(call?.outcome.usage ? addUsage(usage, call.outcome.usage) : usage),
  }
  writer.writeEnd(response)
  return { response, events, call, itemNumbers: writer.itemNumbers }
}

/** A call that a restart has cut off. @param textBytes of its answer that are known. @param now milliseconds since the epoch. */
export const interruptedCall = (
  openCall: Progress['openCall'],
  textBytes: number,
  now: number,
): UnsettledCall | null =>
  openCall && { call: openCall.open.call, outcome: interruptedOutcome(openCall.open, textBytes, now) }

/**
 * The events that end a response without a running engine: its stored end, or else its interruption, which is stored now.
 * A failed response adds nothing to its conversation; the output that its readers got is stored.
 * @param now milliseconds since the epoch.
 */
export function endingEvents(state: ResponseState, log: EventLog, now: number): EmittedEvent[] {
  const { final } = state
  if (final) {
    const events: EmittedEvent[] = []
    new EventWriter(log.lastSequence, (event) => events.push(event)).writeEnd(final.response)
    return events
  }
  const { progress, store, unsettled, cost = 0 } = state.known
  const { response, events, call, itemNumbers } = interruptedResponse(
    log.payloads(),
    log.lastSequence,
    progress,
    now,
  )
  const outputItems = response.output.map((item) => storedItemOf(contextItemOf(item, null)))
  state.storeFinal({ response, outputItems, itemNumbers })
  const ended = { ...progress, openCall: null }
  const calls = call ? [...unsettled, call] : unsettled
  const total = cost + (call?.outcome.cost ?? 0)
  state.enter('ending', { pendingWrite: store, progress: ended, unsettled: calls, cost: total })
  return events
}
