import { errorText, logEvent } from '../../lib/log.ts'
import { resumedEmitter } from '../emitter/create-emitter.ts'
import type { EventLog } from '../log/event-log.ts'
import { PHASES } from '../model/phases.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { ResponseState } from '../store/response-state.ts'
import { storedTools } from '../tools/integrations/requested-tools.ts'
import { toolRules } from '../tools/tool-rules.ts'
import { ResponseEngine, type RunningResponse } from './engine.ts'
import { withdrawTurn } from './interrupted-turn.ts'

/** A response whose object keeps restarting is not resumed more often. */
const MOST_RESTARTS = 5

/**
 * Resumes a response whose object restarted between two turns, before the result of a tool, or in a turn that may be asked again.
 * The caller's rights are read again for its next turn.
 * @returns null when it cannot be resumed. Never throws.
 */
export function resumeResponse(
  deps: ResponseDeps,
  state: ResponseState,
  log: EventLog,
): RunningResponse | null {
  try {
    return resumed(deps, state, log)
  } catch (error) {
    logEvent('error', 'response_not_resumed', { error: errorText(error) })
    return null
  }
}

function resumed(deps: ResponseDeps, state: ResponseState, log: EventLog): RunningResponse | null {
  const { known: head, request } = state
  if (!request || head.restarts >= MOST_RESTARTS) return null
  if (PHASES[head.phase].restart === 'ask_again' && !withdrawTurn(state, log, deps.clock())) return null
  state.change({ restarts: head.restarts + 1 })
  deps.waitUntil(state.settleCalls())
  const { owner } = head
  const { settings } = request
  const offered = new Set(request.hostedTools)
  const hosted = deps.hostedTools.filter(({ definition }) => offered.has(definition.name))
  const { integrations } = request
  const tools = toolRules(settings, [...hosted, ...(integrations ? storedTools(integrations) : [])])
  const emitter = resumedEmitter(deps, head, settings, tools, log, state.turns.flat())
  const run = {
    owner,
    state,
    log,
    request,
    tools,
    emitter,
    ready: null,
    context: null,
    approved: [],
    generates: true,
  }
  return { engine: new ResponseEngine(deps, run), emitter }
}
