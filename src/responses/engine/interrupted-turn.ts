import { addUsage } from '../../calls/usage.ts'
import { newId } from '../../lib/ids.ts'
import { logEvent } from '../../lib/log.ts'
import { EventWriter } from '../emitter/event-writer.ts'
import { replayResponse } from '../emitter/replay.ts'
import type { EventLog } from '../log/event-log.ts'
import type { ResponseState } from '../store/response-state.ts'
import { interruptedCall } from './recovery.ts'

/** Maximum number of repetitions. Without it, a turn that crashes its object would be repeated, and charged, without an end. */
const MOST_REPETITIONS = 2

/**
 * Withdraws a model call that a restart of the object has interrupted. The response is then between two turns, and its
 * next turn is another governed call. The interrupted one is charged by an estimate: its provider may have generated.
 * Its events are removed if no reader has got them; otherwise its items stay, as incomplete, before those of the
 * repetition, and no model gets them in this response.
 * @param now milliseconds since the epoch.
 * @returns false for a response that does not repeat turns, or not this one again. Then nothing has changed.
 */
export function withdrawTurn(state: ResponseState, log: EventLog, now: number): boolean {
  const { turn, progress, unsettled, cost = 0, responseId } = state.known
  if (!turn || turn.interruptions >= MOST_REPETITIONS || log.lastSequence < turn.after) return false
  const { openCall, usage, otherOutput = 0 } = progress
  const writer = new EventWriter(log.lastSequence, (event) => log.append(event))
  const { items, callBytes } = replayResponse(log.payloads(), writer, turn.after)
  const call = interruptedCall(openCall, callBytes, now)
  if (turn.shown) {
    for (const item of items) item.close('incomplete')
    log.flush()
  } else log.cut(turn.after)
  const used = call?.outcome.usage ?? null
  state.enter('between_turns', {
    progress: {
      ...progress,
      usage: used ? addUsage(usage, used) : usage,
      otherOutput: otherOutput + (used?.output ?? 0),
      openCall: null,
      nextCallId: newId('call'),
    },
    unsettled: call ? [...unsettled, call] : unsettled,
    cost: cost + (call?.outcome.cost ?? 0),
    turn: { ...turn, interruptions: turn.interruptions + 1 },
  })
  logEvent('warn', 'turn_asked_again', { response_id: responseId, interruptions: turn.interruptions + 1 })
  return true
}
