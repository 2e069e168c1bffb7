import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/server/validators/cf-worker'
import { countedReads, type ReadBudget } from '../../lib/counted-reads.ts'
import type { HostedTool } from '../../responses/tools/hosted-tool.ts'
import type { AgentStep } from '../../wire/agents.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import type { RunError } from './run.ts'
import type { StepOutcome } from './transitions.ts'

/** A response that has ended, with what its calls cost in micro-credits. */
export interface EndedStep {
  response: ResponseObject
  cost: number
}

/** The outcome of a step whose response has ended. */
export function stepOutcome(
  step: AgentStep,
  { response, cost }: EndedStep,
  hostedTools: readonly HostedTool[],
): StepOutcome {
  const charged = { cost, hadEffects: hadEffects(response, hostedTools) }
  if (response.status === 'failed') {
    const error = response.error ?? { code: 'server_error', message: 'The response failed.' }
    return { kind: 'failed', error, ...charged, mayRepeat: true }
  }
  if (response.status !== 'completed') {
    const reason = response.incomplete_details?.reason ?? 'incomplete'
    return { kind: 'failed', error: incompleteError(reason), ...charged, mayRepeat: false }
  }
  if (response.output.some(({ type }) => type === 'mcp_approval_request')) {
    return { kind: 'failed', error: incompleteError('approval_required'), ...charged, mayRepeat: false }
  }
  const message = finalMessage(response)
  const output = message ?? ''
  const fault = step.output.format === 'json_schema' ? schemaFault(step.output.schema, output) : null
  if (fault) return { kind: 'failed', error: fault, ...charged, mayRepeat: true }
  return { kind: 'completed', output, message: message === null ? null : payloadOf(message), ...charged }
}

/** Reasons that a person can act on. */
const REASONS: Record<string, string> = {
  max_credits: 'What is left of the credit limit of the run does not cover another call.',
  insufficient_credits: 'The organization does not have enough credits.',
  max_time: 'The step took longer than it may.',
  max_turns: 'The step made as many model calls as a response may.',
  max_output_tokens: 'The output of the step was cut off at its token limit.',
  content_filter: 'The provider withheld the output.',
  cancelled: 'The response of the step was cancelled.',
  approval_required: 'The organization requires a person to approve a tool call. A run cannot wait for that.',
}

const incompleteError = (reason: string): RunError => ({
  code: reason,
  message: REASONS[reason] ?? `The response of the step is incomplete (${reason}).`,
})

/** The text of the last message; null if there is none. In a completed response, only a withdrawn turn left others incomplete. */
function finalMessage({ output }: ResponseObject): string | null {
  const last = output.findLast((item) => item.type === 'message' && item.status !== 'incomplete')
  if (last?.type !== 'message') return null
  return last.content.map((part) => (part.type === 'output_text' ? part.text : part.refusal)).join('')
}

/** `result` of a run (interface: Run): the final assistant message. */
const payloadOf = (text: string): string =>
  JSON.stringify({ role: 'assistant', parts: [{ type: 'text', text }] })

/** Items that change nothing outside of the conversation. */
const WITHOUT_EFFECT = new Set([
  'message',
  'reasoning',
  'compaction',
  'web_search_call',
  'function_call',
  'mcp_approval_request',
])

/** Whether a response called a tool that may have changed something. Unknown tools count. */
function hadEffects({ output }: ResponseObject, hostedTools: readonly HostedTool[]): boolean {
  const reading = new Set(
    hostedTools.filter(({ repeatable }) => repeatable).map(({ definition }) => definition.name),
  )
  return output.some((item) => {
    if (WITHOUT_EFFECT.has(item.type)) return false
    return item.type !== 'service_call' || !reading.has(item.name)
  })
}

/**
 * Reads of a schema and an output together. References let a short schema be applied very often, and a list is compared with
 * itself where its items have to be unique.
 */
const MOST_READS = 4_000_000

export const schemaReads = (): ReadBudget => ({ left: MOST_READS })

/** Why an output does not fit its schema; null if it does. @param budget of all comparisons that are made at once. */
export function schemaFault(
  schema: Record<string, unknown>,
  output: string,
  budget = schemaReads(),
): RunError | null {
  const invalid = (message: string): RunError => ({ code: 'invalid_output', message })
  let value: unknown
  try {
    value = JSON.parse(output)
  } catch {
    return invalid('The output of the step is not JSON.')
  }
  try {
    const validator = new CfWorkerJsonSchemaValidator().getValidator(countedReads(schema, budget))
    const { valid } = validator(countedReads(value, budget))
    return valid ? null : invalid('The output of the step does not fit its schema.')
  } catch {
    return invalid('The output of the step cannot be compared with its schema.')
  }
}
