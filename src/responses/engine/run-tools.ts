import { ApiError } from '../../lib/api-error.ts'
import { newId } from '../../lib/ids.ts'
import type { ResponseDeps } from '../object/response-deps.ts'
import type { EngineRun } from './engine.ts'
import { runToolCall, type StoredToolCall, type ToolCaller } from './run-tool-call.ts'

/**
 * Executes the server-side calls of a turn in their order; consecutive ones of tools that only read run at the same time.
 * Each is stored before it is dispatched, and with its result: after a restart only a call that may be repeated runs
 * again.
 * @throws ApiError for a call that may have been executed before a restart, and what `runToolCall` throws.
 */
export async function runTools(
  deps: ResponseDeps,
  run: EngineRun,
  caller: ToolCaller,
  signal: AbortSignal,
): Promise<void> {
  const { state, emitter, tools } = run
  const calls = state.toolCalls
  const isReading = ({ upstreamName }: StoredToolCall) => tools.hosted.get(upstreamName)?.repeatable === true
  for (let index = 0; index < calls.length; ) {
    let end = index + 1
    while (end < calls.length && calls.slice(index, end + 1).every(isReading)) end++
    const together = Array.from({ length: end - index }, (_, offset) => index + offset)
    for (const each of together) dispatch(run, calls, each)
    state.storeToolCalls(calls)
    const executing = together.map((each) => execute(deps, run, calls, each, caller, signal))
    // All of them have ended before a failure is told: none runs on unseen.
    const failure = (await Promise.allSettled(executing)).find(({ status }) => status === 'rejected')
    if (failure?.status === 'rejected') throw failure.reason
    index = end
  }
  for (const { callId, result } of calls) if (result) emitter.addResult(callId, result)
}

function dispatch({ tools }: EngineRun, calls: StoredToolCall[], index: number): void {
  const call = calls[index]
  if (!call || call.result !== null) return
  const mayRepeat = tools.hosted.get(call.upstreamName)?.repeatable
  if (call.state === 'dispatched' && !mayRepeat) throw interruptedTool()
  calls[index] = { ...call, state: 'dispatched' }
}

async function execute(
  deps: ResponseDeps,
  { state, request, tools, emitter }: EngineRun,
  calls: StoredToolCall[],
  index: number,
  caller: ToolCaller,
  signal: AbortSignal,
): Promise<void> {
  const call = calls[index]
  if (!call || call.result !== null) return
  const identity = { ...request.identity, callId: newId('call'), at: deps.clock() }
  const tool = tools.hosted.get(call.upstreamName)
  const result = await runToolCall(deps, tool, call, identity, caller, signal)
  calls[index] = { ...call, state: 'done', result }
  state.storeToolCalls(calls)
  emitter.addResult(call.callId, result)
}

/** The call may have been executed, and a second execution could do harm. */
const interruptedTool = () =>
  new ApiError('internal', 'The response was interrupted while a tool ran.', { code: 'server_error' })
