import { TOOL_FAMILIES } from '../../identity/tool-rights.ts'
import { ApiError } from '../../lib/api-error.ts'
import { apiErrorOf } from '../../responses/model/error-data.ts'
import { messageBody } from '../../responses/sockets/message-body.ts'
import type { AgentDeps } from '../agent-deps.ts'
import { isTransient } from '../runs/advance-run.ts'
import type { RunState } from '../runs/run.ts'
import { ownerOf } from '../runs/run.ts'
import type { EndedStep } from '../runs/step-output.ts'
import { findResponseOf, principalOf, responseStart, waitForResponseOf } from '../runs/step-response.ts'
import { selectRunCost } from '../runs/verdicts.store.ts'

/** Why a call of the judge did not begin. */
export interface JudgeRefusal {
  kind: 'later' | 'failed' | 'final'
  code: string
  /** Message for the user of the run. */
  message: string
  retryAfterSeconds?: number | undefined
}

/**
 * Begins a call of the judge: a response without tools that is not stored, with the rights that the run's user has at this
 * moment. Its object admits, charges and records it as any call of a model. Beginning it again is refused by its object.
 * @param run at the judged step. @param body of `POST /v1/responses`.
 * @returns null when it has begun.
 */
export async function beginJudging(
  deps: AgentDeps,
  run: RunState,
  responseId: string,
  body: Record<string, unknown>,
): Promise<JudgeRefusal | null> {
  const creditLimit = await creditsLeft(deps, run)
  try {
    const principal = await principalOf(deps, run)
    const request = {
      ...responseStart(deps, run, `EVALUATE /v1/runs/${run.id} step ${run.step}`),
      responseId,
      principal: { ...principal, tools: { ...principal.tools, off: TOOL_FAMILIES } },
      ...(creditLimit !== null && { creditLimit }),
    }
    const object = deps.responseObject(run.organizationId, responseId)
    const result = await object.start(request, messageBody(JSON.stringify(body)))
    if (result.error !== null) return refusalOf(apiErrorOf(result.error))
    return 'refusal' in result ? { kind: 'failed', ...refused(result.refusal) } : null
  } catch (error) {
    if (error instanceof ApiError && error.kind === 'unauthorized') return refusalOf(error)
    throw error
  }
}

/** Rest of the run's credit limit; null without a limit. */
async function creditsLeft(
  deps: AgentDeps,
  { id, organizationId, definition }: RunState,
): Promise<number | null> {
  const { max_credits: most } = definition.limits
  if (most === undefined) return null
  return Math.max(0, most - (await selectRunCost(deps.database, { organizationId, runId: id })))
}

function refusalOf(error: ApiError): JudgeRefusal {
  const { retryAfterSeconds, message } = error
  if (isTransient(error)) return { kind: 'later', code: error.code ?? error.kind, message, retryAfterSeconds }
  const code = error.code ?? (error.limit === 'credits' ? 'insufficient_credits' : error.kind)
  return { kind: 'final', code, message }
}

const refused = ({ code, message }: { code: string; message: string }) => ({ code, message })

/**
 * Waits for the end of a call of the judge.
 * @returns the ended response; `running`, or null if it has not begun.
 */
export async function endOfJudging(
  deps: AgentDeps,
  run: RunState,
  responseId: string,
): Promise<EndedStep | 'running' | null> {
  await waitForResponseOf(deps, ownerOf(run), responseId, deps.configuration.RUN_DELIVERY_MS)
  return findResponseOf(deps, ownerOf(run), responseId)
}
