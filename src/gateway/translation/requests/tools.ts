import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, listOf, objectOf, present, textOf } from '../json.ts'

const NO_PARAMETERS = { type: 'object', properties: {} }

/** Function tools of chat completions as tools of the messages protocol, narrowed to `allowed_tools`. */
export function messagesTools(request: Json): Json[] | undefined {
  const allowed = allowedNames(request.tool_choice)
  const tools = listOf(request.tools).map((tool, index) => {
    if (tool.type !== 'function') {
      throw invalidRequest(
        `tools.${index}: tools of type ${textOf(tool.type)} are not supported by this model.`,
      )
    }
    const made = objectOf(tool.function)
    return present({
      name: textOf(made.name),
      description: made.description,
      input_schema: made.parameters ?? NO_PARAMETERS,
      strict: made.strict,
      cache_control: tool.cache_control,
    })
  })
  const usable = allowed ? tools.filter((tool) => allowed.has(textOf(tool.name))) : tools
  return usable.length === 0 ? undefined : usable
}

function allowedNames(choice: unknown): Set<string> | null {
  const allowed = objectOf(objectOf(choice).allowed_tools)
  if (objectOf(choice).type !== 'allowed_tools') return null
  return new Set(listOf(allowed.tools).map((tool) => textOf(objectOf(tool.function).name)))
}

const CHOICES: Record<string, string> = { auto: 'auto', none: 'none', required: 'any' }

/** `tool_choice` and `parallel_tool_calls`; without tools there is no choice to make. */
export function messagesToolChoice(request: Json): Json | undefined {
  if (listOf(request.tools).length === 0) return undefined
  const choice = choiceOf(request.tool_choice)
  const parallel = request.parallel_tool_calls === false && choice?.type !== 'none'
  return parallel ? { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true } : choice
}

function choiceOf(choice: unknown): Json | undefined {
  if (typeof choice === 'string') {
    const type = CHOICES[choice]
    if (!type)
      throw invalidRequest(`tool_choice: ${choice.slice(0, 40)} is not one of auto, none and required.`)
    return { type }
  }
  const given = objectOf(choice)
  if (given.type === 'function') return { type: 'tool', name: textOf(objectOf(given.function).name) }
  if (given.type === 'allowed_tools') {
    return { type: objectOf(given.allowed_tools).mode === 'required' ? 'any' : 'auto' }
  }
  return undefined
}

/** Tools of the messages protocol as function tools. Server tools run at their own provider only. */
export function chatTools(request: Json): Json[] | undefined {
  const tools = listOf(request.tools).map((tool, index) => {
    if (tool.type !== undefined && tool.type !== 'custom') {
      throw invalidRequest(
        `tools.${index}: tools of type ${textOf(tool.type)} are not supported by this model.`,
      )
    }
    return {
      type: 'function',
      function: present({
        name: textOf(tool.name),
        description: tool.description,
        parameters: tool.input_schema ?? NO_PARAMETERS,
        strict: tool.strict,
      }),
    }
  })
  return tools.length === 0 ? undefined : tools
}

export function chatToolChoice(request: Json): Json | string | undefined {
  const choice = objectOf(request.tool_choice)
  if (choice.type === 'tool') return { type: 'function', function: { name: textOf(choice.name) } }
  return { auto: 'auto', any: 'required', none: 'none' }[textOf(choice.type)]
}

export const chatParallelCalls = (request: Json): boolean | undefined =>
  objectOf(request.tool_choice).disable_parallel_tool_use === true ? false : undefined
