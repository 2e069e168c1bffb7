import { interruptedOutcome } from '../../gateway/calls/call-outcome.ts'
import { addUsage } from '../../governance/credits.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import { type EmittedEvent, EventWriter, streamError } from '../emitter/event-writer.ts'
import { contextItemOf } from '../items/output-items.ts'
import type { EventLog } from '../log/event-log.ts'
import { replayResponse } from '../log/replay.ts'
import { storableItem } from '../object/final-response.ts'
import type { Progress, UnsettledCall } from '../object/response-head.ts'
import { outputTextOf, responseUsage } from '../object/response-members.ts'
import type { ResponseState } from '../object/response-state.ts'

/** What is left to tell of a response whose producer died, and what it has become. */
export interface Recovered {
  response: ResponseObject
  /** Closes what was open, then ends the response. */
  events: EmittedEvent[]
  /** The call that was under way, and what it comes to; null when there was none. */
  call: UnsettledCall | null
}

/** What is known of the calls of a response. */
export type KnownCalls = Pick<Progress, 'usage' | 'openCall'>

const INTERRUPTED = {
  code: 'server_error',
  message: 'The response was interrupted. What was generated up to here is kept.',
}

/**
 * Ends a response that was interrupted, from its stored events: what readers were told stays true, every item and part
 * that is open is closed as incomplete, then `error` and `response.failed` follow (design: Responses). Its usage
 * is what the calls that were settled are charged for, and an estimate of the one that was not.
 * @param payloads of all stored events in order, at least the first one. @param lastSequence of the last of them.
 * @param now milliseconds since the epoch.
 * @throws SyntaxError for a payload that is not JSON.
 */
export function interruptedResponse(
  payloads: Iterable<string>,
  lastSequence: number,
  { usage, openCall }: KnownCalls,
  now: number,
): Recovered {
  const events: EmittedEvent[] = []
  const writer = new EventWriter(lastSequence, (event) => events.push(event))
  const told = replayResponse(payloads, writer, openCall?.after)
  const call = openCall && {
    call: openCall.open.call,
    outcome: interruptedOutcome(openCall.open, told.callBytes, now),
  }
  if (!told.inProgress) writer.write('response.in_progress', { response: told.response })
  for (const item of told.items) item.close('incomplete')
  const output = told.items.map(({ item }) => item)
  const response: ResponseObject = {
    ...told.response,
    status: 'failed',
    error: INTERRUPTED,
    output,
    output_text: outputTextOf(output),
    usage: responseUsage(call?.outcome.usage ? addUsage(usage, call.outcome.usage) : usage),
  }
  return { response, events: [...events, ...terminalEvents(response, lastSequence + events.length)], call }
}

/**
 * What is left to tell of a response that nobody generates any more: its end if that is stored, else that it was
 * interrupted, which is stored now. A failed response adds nothing to its conversation: only what its readers saw of it
 * is stored.
 * @param now milliseconds since the epoch.
 */
export function endingEvents(state: ResponseState, log: EventLog, now: number): EmittedEvent[] {
  const { final } = state
  if (final) return terminalEvents(final.response, log.lastSequence)
  const { progress, store, unsettled } = state.known
  const { response, events, call } = interruptedResponse(log.payloads(), log.lastSequence, progress, now)
  const outputItems = response.output.map((item) => storableItem(contextItemOf(item, null)))
  state.storeFinal({ response, outputItems })
  const ended = { ...progress, openCall: null }
  const calls = call ? [...unsettled, call] : unsettled
  state.enter('ending', { pendingWrite: store, progress: ended, unsettled: calls })
  return events
}

/** How many events `terminalEvents` are. */
export const terminalCount = ({ status }: ResponseObject): number => (status === 'failed' ? 2 : 1)

/** The events that end a response that has ended: one, or `error` before it for a failed one (interface: Events). */
export function terminalEvents(response: ResponseObject, lastSequence: number): EmittedEvent[] {
  const events: EmittedEvent[] = []
  const writer = new EventWriter(lastSequence, (event) => events.push(event))
  if (response.status === 'failed') {
    writer.write('error', streamError((response.error ?? INTERRUPTED).message))
  }
  writer.write(response.status === 'failed' ? 'response.failed' : 'response.completed', { response })
  return events
}
