import { resumedEmitter } from '../emitter/emission.ts'
import type { ResponseEmitter } from '../emitter/emitter.ts'
import type { EventLog } from '../log/event-log.ts'
import { eventSink, laterTurns } from '../object/admission.ts'
import type { ResponseDeps } from '../object/response-deps.ts'
import type { ResponseState } from '../object/response-state.ts'
import { ResponseEngine } from './engine.ts'
import { toolRules } from './tool-rules.ts'

/** A response that dies again and again in the same place is not tried for ever. */
const MOST_RESTARTS = 5

/**
 * Takes up a response whose object died between two turns, or before the result of a tool, from what is stored of it. Its
 * next turn is made under the rights that its caller has by then.
 * @returns null when it cannot go on.
 */
export function resumeResponse(
  deps: ResponseDeps,
  state: ResponseState,
  log: () => EventLog,
): { engine: ResponseEngine; emitter: ResponseEmitter } | null {
  const { known: head, request } = state
  if (!request || head.restarts >= MOST_RESTARTS) return null
  state.change({ restarts: head.restarts + 1 })
  deps.waitUntil(state.settleCalls())
  const { settings } = request
  const tools = toolRules(settings, deps.hostedTools?.(settings) ?? [])
  const turns = Array.from({ length: head.progress.turns }, (_, index) => state.turn(index + 1))
  const told = { payloads: log().payloads(), lastSequence: log().lastSequence }
  const emission = { settings, tools, emit: eventSink(log) }
  const emitter = resumedEmitter(deps, head, emission, told, turns.flat())
  const engine = new ResponseEngine(deps, {
    ...laterTurns(deps, state, request, log),
    owner: head.owner,
    tools,
    emitter,
    ready: null,
    context: null,
  })
  return { engine, emitter }
}
