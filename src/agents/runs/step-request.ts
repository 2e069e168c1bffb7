import { ApiError } from '../../lib/api-error.ts'
import type { AgentStep } from '../../wire/agents.ts'
import { type Reference, renderTemplate } from '../definitions/template.ts'
import { currentStep, outputOf, type RunState } from './run.ts'
import { inputValue, type RunInputs } from './run-inputs.ts'

/** Types of `allowed_tools` for the families of tools (`responses/engine/hosted-choice`). */
const FAMILY_TYPES = {
  shell: 'shell',
  files: 'file_operations',
  web_search: 'web_search',
  browser: 'computer',
}

/**
 * The body of `POST /v1/responses` of the current step. It runs in the background, in the run's conversation.
 * @param inputs of the run.
 */
export function stepRequest(run: RunState, inputs: RunInputs): Record<string, unknown> {
  const step = currentStep(run)
  const text = renderedInstructions(run, inputs)
  return {
    model: step.model,
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }],
    conversation: run.conversationId,
    background: true,
    store: true,
    metadata: { run_id: run.id, step: String(run.step), attempt: String(run.attempt) },
    ...toolMembers(step),
    ...(step.output.format === 'json_schema' && { text: { format: schemaFormat(step.output) } }),
    ...(step.max_output_tokens !== undefined && { max_output_tokens: step.max_output_tokens }),
    ...(step.max_tool_calls !== undefined && { max_tool_calls: step.max_tool_calls }),
  }
}

/** Characters of instructions with the values of their placeholders, each of which may stand in them often. */
const LONGEST_INSTRUCTIONS = 10_000_000

/**
 * The instructions of the current step with the values of their placeholders.
 * @throws ApiError invalid_request `instructions_too_long`.
 */
export function renderedInstructions(run: RunState, inputs: RunInputs): string {
  const resolve = (reference: Reference) =>
    reference.kind === 'input'
      ? inputValue(run.definition, inputs, reference.name)
      : outputOf(run, reference.step)
  const text = renderTemplate(currentStep(run).instructions, resolve, LONGEST_INSTRUCTIONS)
  if (text !== null) return text
  const message = `The instructions of the step have more than ${LONGEST_INSTRUCTIONS} characters with the values of their placeholders.`
  throw new ApiError('invalid_request', message, { code: 'instructions_too_long' })
}

const schemaFormat = ({ name, schema }: Extract<AgentStep['output'], { format: 'json_schema' }>) => ({
  type: 'json_schema',
  name,
  schema,
})

/** Tools are offered by `tools`, and restricted by `tool_choice`, as in any response. */
function toolMembers({ tools: { hosted, integrations } }: AgentStep): Record<string, unknown> {
  const servers = integrations.map(({ integration, connection_id: connection }) => ({
    type: 'mcp',
    server_label: integration,
    ...(connection !== undefined && { connection_id: connection }),
  }))
  const offered = servers.length > 0 ? { tools: servers } : {}
  if (hosted === undefined) return offered
  const families = hosted.map((family) => ({ type: FAMILY_TYPES[family] }))
  const allowed = [...families, ...servers.map(({ type, server_label }) => ({ type, server_label }))]
  if (allowed.length === 0) return { ...offered, tool_choice: 'none' }
  return { ...offered, tool_choice: { type: 'allowed_tools', mode: 'auto', tools: allowed } }
}
