import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, objectIn, present, textOf } from '../../protocols/json.ts'
import { KeptTools } from './kept-tools.ts'
import { nameAt, objectsAt, optionalFlag, optionalObject, optionalText } from './read-values.ts'
import { fitsStrictChat } from './schemas.ts'
import { usableToolName } from './tool-names.ts'

/** A tool under its caller's name. */
export interface NamedTool {
  name: string
  /** Name of the `namespace` tool that contains it. */
  namespace: string | null
  kind: 'function' | 'custom'
}

/** A tool of a request that a model can be given: hosted tools, which only their own provider runs, are none. */
interface OfferedTool extends NamedTool {
  upstreamName: string
  definition: Json
  place: string
  /** Whether it is of this service, and has the name that its definition has. */
  isOwn: boolean
}

/** Definitions of tools of this service that stand among those of a request, from an index on. */
export interface OwnDefinitions {
  definitions: readonly Json[]
  at: number
}

/**
 * The upstream name of a tool. It depends on the tool alone, and every upstream accepts it unchanged. Where two tools
 * of a request would have the same one, the later tool gets another (`upstreamTools`).
 */
export const upstreamToolName = (namespace: string | null, name: string): string =>
  usableToolName(fullName(namespace, name))

const fullName = (namespace: string | null, name: string) =>
  namespace === null ? name : `${namespace}__${name}`

/**
 * @param tools of a responses request.
 * @returns the caller's tools by their upstream names.
 * @throws ApiError invalid_request for an invalid tool, and for two tools of one name.
 */
export const upstreamTools = (tools: unknown): ReadonlyMap<string, NamedTool> =>
  new Map(
    offeredTools(tools).map(({ upstreamName, name, namespace, kind }) => [
      upstreamName,
      { name, namespace, kind },
    ]),
  )

/** The tools of a request, with the names and choices that are sent upstream. */
export class ResponsesTools {
  readonly #offered: readonly OfferedTool[]
  readonly #byKey: ReadonlyMap<string, OfferedTool>
  /** Tools by the name alone, for choices that name no namespace. */
  readonly #byName: ReadonlyMap<string, OfferedTool>

  /**
   * @param own tools that are left out of `tools`; null for none.
   * @throws ApiError invalid_request for an invalid tool, and for two tools of one name.
   */
  constructor(tools: unknown, own: OwnDefinitions | null = null) {
    this.#offered = offeredTools(tools, own)
    this.#byKey = new Map(this.#offered.map((tool) => [keyOf(tool.namespace, tool.name), tool]))
    this.#byName = new Map(this.#offered.map((tool) => [tool.name, tool]))
  }

  /** @returns the upstream name of a called or chosen tool, offered or not. */
  nameOf(namespace: string | null, name: string): string {
    return this.#byKey.get(keyOf(namespace, name))?.upstreamName ?? upstreamToolName(namespace, name)
  }

  /**
   * The tools as function tools of chat completions.
   * @param rules those of the chat completions by default; the rules of the messages protocol for strict schemas are applied
   *   to its functions later.
   */
  asFunctions(rules: keyof typeof STRICT = 'chat'): Json[] | undefined {
    const tools = this.#offered.map((tool) =>
      tool.isOwn ? OWN_FUNCTIONS[rules].of(tool.definition) : functionOf(tool, STRICT[rules]),
    )
    return tools.length === 0 ? undefined : tools
  }

  /**
   * `tool_choice` of chat completions; undefined without tools. A list of allowed tools does not change the tools,
   * because prompt caches begin with them: the response engine refuses other calls. Tools of the provider are not
   * offered, so they cannot be chosen.
   * @throws ApiError for choices that name no tool.
   */
  choice(given: unknown): Json | string | undefined {
    const choice = isPresent(given) ? this.#choiceOf(given) : undefined
    return this.#offered.length === 0 ? undefined : choice
  }

  /** `parallel_tool_calls`: only false is sent, because true is the default of all models. */
  parallel(given: unknown): boolean | undefined {
    const parallel = optionalFlag(given, 'parallel_tool_calls')
    return parallel === false && this.#offered.length > 0 ? false : undefined
  }

  #choiceOf(given: unknown): Json | string {
    if (given === 'auto' || given === 'none' || given === 'required') return given
    const choice = typeof given === 'string' ? {} : (optionalObject(given, 'tool_choice') ?? {})
    if (typeof choice.type !== 'string') {
      throw invalidRequest(
        "tool_choice: Input should be 'auto', 'none', 'required' or an object with a type.",
      )
    }
    if (choice.type === 'allowed_tools') return this.#allowed(choice)
    return this.#chosen(choice, 'tool_choice') ?? 'auto'
  }

  #allowed(choice: Json): Json | string {
    const { mode } = choice
    if (mode !== 'auto' && mode !== 'required') {
      throw invalidRequest("tool_choice.mode: Input should be 'auto' or 'required'.")
    }
    const allowed = objectsAt(choice.tools, 'tool_choice.tools')
    const chosen = allowed.map(({ value, place }) => this.#chosen(value, place))
    // None of the offered tools is allowed.
    if (chosen.every((tool) => tool === undefined)) return 'none'
    return (allowed.length === 1 && mode === 'required' && chosen[0]) || mode
  }

  /** @returns the choice of one tool; undefined for a tool that is not offered because its provider would run it. */
  #chosen(tool: Json, place: string): Json | undefined {
    if (tool.type !== 'function' && tool.type !== 'custom') return undefined
    const name = nameAt(tool.name, `${place}.name`)
    const namespace = optionalText(tool.namespace, `${place}.namespace`) ?? null
    const found = this.#byKey.get(keyOf(namespace, name)) ?? this.#byName.get(name)
    if (found) return { type: 'function', function: { name: found.upstreamName } }
    throw invalidRequest(`${place}.name: no tool is named ${JSON.stringify(name.slice(0, 80))}.`)
  }
}

const keyOf = (namespace: string | null, name: string): string => JSON.stringify([namespace, name])

function offeredTools(tools: unknown, own: OwnDefinitions | null = null): OfferedTool[] {
  const given = isPresent(tools) ? objectsAt(tools, 'tools') : []
  const ofThisService = (own?.definitions ?? []).map(ownTool)
  const at = own?.at ?? given.length
  const found = [
    ...given.slice(0, at).flatMap(givenTools),
    ...ofThisService,
    ...given.slice(at).flatMap(givenTools),
  ]
  const usedNames = new Set<string>()
  const keys = new Set<string>()
  return found.map((tool) => {
    const { namespace, name, place } = tool
    const key = keyOf(namespace, name)
    if (keys.has(key)) {
      throw invalidRequest(`${place}.name: two tools are named ${JSON.stringify(name.slice(0, 80))}.`)
    }
    keys.add(key)
    const upstreamName = freeName(fullName(namespace, name), usedNames)
    usedNames.add(upstreamName)
    return { ...tool, upstreamName, isOwn: tool.isOwn && upstreamName === name }
  })
}

function givenTools({ value, place }: { value: Json; place: string }): FoundTool[] {
  if (nameAt(value.type, `${place}.type`) !== 'namespace') return toolsOf(value, place, null)
  const namespace = nameAt(value.name, `${place}.name`)
  return objectsAt(value.tools, `${place}.tools`).flatMap((inner) =>
    toolsOf(inner.value, inner.place, namespace),
  )
}

const ownTool = (definition: Json): FoundTool => ({
  kind: 'function',
  namespace: null,
  name: textOf(definition.name),
  definition,
  place: 'tools',
  isOwn: true,
})

/** A function `a__b` collides with a function `b` of the namespace `a`. The space makes the name a hashed one. */
function freeName(name: string, used: ReadonlySet<string>): string {
  let free = usableToolName(name)
  for (let count = 2; used.has(free); count++) free = usableToolName(`${name} ${count}`)
  return free
}

/**
 * Types of tools that run at this side or at a provider (interface: Responses;
 * https://platform.openai.com/docs/api-reference/responses/create#responses-create-tools), with versions such as
 * `web_search_2025_08_26`.
 */
const HOSTED_TOOLS =
  /^(mcp|(local_)?shell|web_search(_preview)?|web_fetch|file_search|file_operations|files?|browser|computer(_use)?(_preview)?|code_interpreter|image_generation|apply_patch|tool_search|service)([_-]\d[\d_-]*)?$/

type FoundTool = Omit<OfferedTool, 'upstreamName'>

function toolsOf(tool: Json, place: string, namespace: string | null): FoundTool[] {
  const kind = tool.type
  if (kind !== 'function' && kind !== 'custom') {
    if (typeof kind === 'string' && HOSTED_TOOLS.test(kind)) return []
    throw invalidRequest(`${place}.type: no tool has the type ${JSON.stringify(String(kind).slice(0, 80))}.`)
  }
  return [
    { kind, namespace, name: nameAt(tool.name, `${place}.name`), definition: tool, place, isOwn: false },
  ]
}

type StrictRule = (schema: Json) => boolean
type TranslatedTool = Pick<OfferedTool, 'kind' | 'upstreamName' | 'definition' | 'place'>

/** Whether a schema whose tool asks for strict arguments is sent as strict. */
const STRICT = { chat: fitsStrictChat, messages: () => true } satisfies Record<string, StrictRule>

const ownFunctions = (strictOf: StrictRule) =>
  new KeptTools((definition) =>
    functionOf({ ...ownTool(definition), upstreamName: textOf(definition.name) }, strictOf),
  )

const OWN_FUNCTIONS = { chat: ownFunctions(STRICT.chat), messages: ownFunctions(STRICT.messages) }

function functionOf(tool: TranslatedTool, strictOf: StrictRule): Json {
  const made = tool.kind === 'custom' ? customFunction(tool) : plainFunction(tool, strictOf)
  return { type: 'function', function: made }
}

function plainFunction({ upstreamName, definition, place }: TranslatedTool, strictOf: StrictRule): Json {
  const given = optionalObject(definition.parameters, `${place}.parameters`) ?? {}
  // The vendor refuses schemas of anything but objects, and none at all in some servers of its protocol.
  const parameters = isPresent(given.type) ? given : { type: 'object', properties: {}, ...given }
  // Responses make functions strict by default, as far as the schema allows. Here only an explicit flag is sent: chat
  // completions refuse schemas that do not fit.
  const strict = optionalFlag(definition.strict, `${place}.strict`) === true && strictOf(parameters)
  return present({
    name: upstreamName,
    description: optionalText(definition.description, `${place}.description`),
    parameters,
    strict: strict ? true : undefined,
  })
}

/** A custom tool, which takes free text, as a function with one argument. */
function customFunction({ upstreamName, definition, place }: TranslatedTool): Json {
  const format = optionalObject(definition.format, `${place}.format`) ?? {}
  const grammar = optionalText(format.definition, `${place}.format.definition`)
  const syntax = optionalText(format.syntax, `${place}.format.syntax`) ?? 'given'
  const description =
    grammar === undefined ? 'Free text.' : `Text that fits this grammar (${syntax}):\n${grammar}`
  return present({
    name: upstreamName,
    description: optionalText(definition.description, `${place}.description`),
    parameters: {
      type: 'object',
      properties: { input: { type: 'string', description } },
      required: ['input'],
      additionalProperties: false,
    },
  })
}

/** The input of a custom tool as the arguments of the function in its place. @returns JSON. */
export const customToolArguments = (input: string): string => JSON.stringify({ input })

/**
 * The reverse: the input of a custom tool from the arguments of its function. Malformed arguments are the input
 * themselves; a call without arguments has an empty one.
 */
export function customToolInput(written: string): string {
  const input = objectIn(written)?.input
  if (typeof input === 'string') return input
  return written === '{}' ? '' : written
}
