import type { ResponseObject } from '../../wire/responses.ts'
import type { Members } from '../model/types.ts'
import { openResponsesItem } from './rendered-item.ts'

/** A response as its caller gets it, in the form of its `compatibility`. */
export function renderedResponse(response: ResponseObject): object {
  return response.compatibility === 'open_responses' ? openResponsesObject(response) : response
}

/** The response object of Open Responses (`ResponseResource` of its schema). */
function openResponsesObject({ compatibility: _, ...response }: ResponseObject): Members {
  const { output, tools, tool_choice: choice, text, reasoning } = response
  return {
    ...response,
    ...(isCancelled(response) && { status: 'cancelled', incomplete_details: null }),
    output: output.map(openResponsesItem),
    tools: tools.flatMap(functionTool),
    tool_choice: toolChoice(choice),
    text: textSettings(text),
    reasoning: reasoning && {
      ...reasoning,
      effort: oneOf(EFFORTS, reasoning.effort),
      summary: oneOf(SUMMARIES, reasoning.summary),
    },
  }
}

/** A cancelled response is incomplete here, and has a status of its own in the official API. */
const isCancelled = ({
  status,
  incomplete_details: details,
}: Omit<ResponseObject, 'compatibility'>): boolean =>
  status === 'incomplete' && details?.reason === 'cancelled'

const EFFORTS = ['none', 'low', 'medium', 'high', 'xhigh']
const SUMMARIES = ['concise', 'detailed', 'auto']
const VERBOSITIES = ['low', 'medium', 'high']
const CHOICES = ['none', 'auto', 'required']

/** A setting that Open Responses has no name for is shown as not set. */
const oneOf = (values: readonly string[], value: unknown): string | null =>
  typeof value === 'string' && values.includes(value) ? value : null

/** The specification has function tools only. Models get a schema as strict where the caller has set that (`strict: true`). */
function functionTool(tool: unknown): Members[] {
  const { type, name, description, parameters, strict } = tool as Members
  if (type !== 'function') return []
  return [
    { type, name, description: description ?? null, parameters: parameters ?? null, strict: strict === true },
  ]
}

/** A choice of tools. A choice of a tool that the specification does not have is rendered as `required`. */
function toolChoice(choice: unknown): unknown {
  if (typeof choice !== 'object' || choice === null) return oneOf(CHOICES, choice) ?? 'auto'
  const { type, tools, mode } = choice as Members
  if (type === 'function') return choice
  if (type !== 'allowed_tools') return 'required'
  const functions = (Array.isArray(tools) ? tools : []).filter(
    (tool) => (tool as Members).type === 'function',
  )
  return { type, tools: functions, mode: oneOf(CHOICES, mode) ?? 'auto' }
}

/** Settings of text. The specification repeats a JSON schema by its name: its member `schema` is null. */
function textSettings({ format, verbosity, ...text }: ResponseObject['text']): Members {
  const { type, name, description, strict } = format as Members
  const schema = { type, name, description: description ?? null, schema: null, strict: strict === true }
  const shown = oneOf(VERBOSITIES, verbosity)
  return {
    ...text,
    format: type === 'json_schema' ? schema : format,
    ...(shown !== null && { verbosity: shown }),
  }
}
