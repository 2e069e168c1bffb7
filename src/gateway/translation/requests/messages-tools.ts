import { invalidRequest } from '../../../lib/api-error.ts'
import { entryOf, isPresent, type Json, listOf, objectOf, present, textOf } from '../../protocols/json.ts'
import { DEFAULT_USES } from '../../protocols/server-tools.ts'
import { can, type TargetModel } from '../target-model.ts'
import { isKept, KeptTools } from './kept-tools.ts'
import { refuseKind } from './member-rules.ts'
import { constrainedSchema, fitsStrictChat } from './schemas.ts'
import { usableToolName } from './tool-names.ts'

const NO_PARAMETERS = { type: 'object', properties: {} }

interface ToolMembers {
  tools: Json[] | undefined
  tool_choice: Json | undefined
}

/**
 * `tools`, `functions` called earlier, `tool_choice`, `parallel_tool_calls` and `web_search_options` of a chat
 * completion request in the messages protocol.
 * @param called names of the tools that the conversation has called.
 * @throws ApiError for custom tools and for choices that name no tool.
 */
export function messagesToolMembers(request: Json, called: ReadonlySet<string>): ToolMembers {
  const offered = listOf(request.tools).map((tool, index) =>
    isKept(tool) ? OWN_TOOLS.of(tool) : messagesTool(tool, index),
  )
  const functions = offered.length > 0 ? narrowed(offered, request.tool_choice) : toolsOfHistory(called)
  const tools = [...functions, ...webSearch(request.web_search_options, functions)]
  if (tools.length === 0) return { tools: undefined, tool_choice: undefined }
  if (offered.length > 0) return { tools, tool_choice: messagesToolChoice(request) }
  return { tools, tool_choice: tools.length > functions.length ? undefined : { type: 'none' } }
}

const OWN_TOOLS = new KeptTools((tool) => messagesTool(tool, 0))

function messagesTool(tool: Json, index: number): Json {
  const made = objectOf(tool.function)
  if (tool.type !== 'function') refuseKind(textOf(tool.type), `tools.${index}`, 'tools')
  const parameters = objectOf(made.parameters ?? NO_PARAMETERS)
  // The vendor enforces the same schemas for calls as for answers.
  const strict = made.strict === true ? constrainedSchema(parameters) : null
  return present({
    name: usableToolName(textOf(made.name)),
    description: made.description,
    input_schema: { ...(strict ?? parameters), type: 'object' },
    strict: strict ? true : undefined,
    cache_control: tool.cache_control ?? made.cache_control,
  })
}

/** `allowed_tools` binds: the messages protocol has no such choice, so the others are not offered. */
function narrowed(tools: Json[], choice: unknown): Json[] {
  if (objectOf(choice).type !== 'allowed_tools') return tools
  const names = listOf(objectOf(objectOf(choice).allowed_tools).tools).map((tool) =>
    usableToolName(textOf(objectOf(tool.function).name)),
  )
  const offered = new Set(tools.map((tool) => textOf(tool.name)))
  const unknown = names.find((name) => !offered.has(name))
  if (unknown !== undefined) {
    throw invalidRequest(`tool_choice.allowed_tools: no function tool is named ${JSON.stringify(unknown)}.`)
  }
  const chosen = new Set(names)
  const allowed = tools.filter((tool) => chosen.has(textOf(tool.name)))
  // When none is allowed they are all offered, because earlier calls need them, and the model may choose none.
  return allowed.length === 0 ? tools : allowed
}

/**
 * The vendor refuses calls and results in a conversation without `tools`
 * (https://github.com/BerriAI/litellm/issues/4689), chat completions take them.
 */
const toolsOfHistory = (called: ReadonlySet<string>): Json[] =>
  [...called].map((name) => ({
    name,
    description: 'Was used earlier and cannot be called any more.',
    input_schema: { type: 'object' },
  }))

/** https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool */
const WEB_SEARCH = { type: 'web_search_20250305', name: 'web_search', max_uses: DEFAULT_USES }
const PLACE_MEMBERS = ['city', 'region', 'country', 'timezone']

function webSearch(options: unknown, functions: Json[]): Json[] {
  if (!isPresent(options)) return []
  if (functions.some((tool) => tool.name === WEB_SEARCH.name)) {
    throw invalidRequest(`web_search_options: cannot be used beside a tool named ${WEB_SEARCH.name}.`)
  }
  const approximate = objectOf(objectOf(objectOf(options).user_location).approximate)
  const place = present(Object.fromEntries(PLACE_MEMBERS.map((name) => [name, approximate[name]])))
  const located = Object.keys(place).length > 0
  return [present({ ...WEB_SEARCH, user_location: located ? { type: 'approximate', ...place } : undefined })]
}

const CHOICES: Record<string, string> = { auto: 'auto', none: 'none', required: 'any' }

function messagesToolChoice(request: Json): Json | undefined {
  const choice = choiceOf(request.tool_choice)
  const single = request.parallel_tool_calls === false && choice?.type !== 'none'
  return single ? { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true } : choice
}

function choiceOf(choice: unknown): Json | undefined {
  if (!isPresent(choice)) return undefined
  if (typeof choice === 'string') {
    const type = entryOf(CHOICES, choice)
    if (type) return { type }
    throw invalidRequest("tool_choice: Input should be 'auto', 'none', 'required' or an object.")
  }
  const given = objectOf(choice)
  if (given.type === 'function') {
    return { type: 'tool', name: usableToolName(textOf(objectOf(given.function).name)) }
  }
  if (given.type === 'allowed_tools') {
    const allowed = objectOf(given.allowed_tools)
    if (listOf(allowed.tools).length === 0) return { type: 'none' }
    return { type: allowed.mode === 'required' ? 'any' : 'auto' }
  }
  return refuseKind(textOf(given.type), 'tool_choice', 'choices')
}

/**
 * Tools of the messages protocol as function tools.
 * @throws ApiError naming a tool that only its own provider has.
 */
export function chatTools(request: Json): Json[] | undefined {
  const tools = listOf(request.tools).map((tool, index) => {
    if (isPresent(tool.type) && tool.type !== 'custom') {
      refuseKind(textOf(tool.type), `tools.${index}`, 'tools')
    }
    const schema = objectOf(tool.input_schema ?? NO_PARAMETERS)
    return {
      type: 'function',
      function: present({
        name: usableToolName(textOf(tool.name)),
        description: tool.description,
        parameters: schema,
        strict: tool.strict === true && fitsStrictChat(schema) ? true : undefined,
      }),
    }
  })
  return tools.length === 0 ? undefined : tools
}

const CHAT_CHOICES: Record<string, string> = { auto: 'auto', any: 'required', none: 'none' }

/** `tool_choice` of the messages protocol as that of chat completions. */
export function chatToolChoice(request: Json): Json | string | undefined {
  const choice = objectOf(request.tool_choice)
  const type = textOf(choice.type)
  if (type === 'tool') return { type: 'function', function: { name: usableToolName(textOf(choice.name)) } }
  return entryOf(CHAT_CHOICES, type)
}

/** `disable_parallel_tool_use`, which has no effect where no tool may be called. */
export function chatParallelCalls(request: Json): boolean | undefined {
  const choice = objectOf(request.tool_choice)
  return choice.disable_parallel_tool_use === true && choice.type !== 'none' ? false : undefined
}

/** Whether a chat completion request lets the model call a function. */
export const mayCallTools = (request: Json): boolean =>
  listOf(request.tools).length > 0 && request.tool_choice !== 'none'

/** Whether the model may reason beside the tools it is given. */
export const reasonsBeside = (tools: Json[] | undefined, target: TargetModel): boolean =>
  tools === undefined || !can(target, 'tools_without_reasoning')
