import { objectOf } from '../../gateway/protocols/json.ts'
import type { ToolFamily } from '../../identity/tool-rights.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { ServiceTool } from './hosted-tool.ts'

type ToolChoice = ResponseSettings['tool_choice']
type ToolEntry = { type: string; name?: unknown; [member: string]: unknown }

/**
 * The families of tools that a type names, in `tools` and in `tool_choice`, with versions such as `web_search_2025_08_26`
 * (https://platform.openai.com/docs/api-reference/responses/create#responses-create-tools).
 */
const FAMILIES_OF_TYPE: ReadonlyArray<[RegExp, readonly ToolFamily[]]> = [
  [/^(local_)?shell$/, ['shell', 'files']],
  [/^(file_operations|files?)$/, ['files']],
  [/^(web_search(_preview)?|web_fetch)([_-]\d[\d_-]*)?$/, ['web_search']],
  [/^(computer(_use)?(_preview)?|browser)$/, ['browser']],
]

/**
 * The types under which `tools` shows families, in this order (interface: Response object, tools). The first family of a type
 * has to be on; the others are shown with it.
 */
const SHOWN_TYPES = ['shell', 'file_operations', 'web_search', 'computer']

const familiesOf = (type: unknown): readonly ToolFamily[] =>
  FAMILIES_OF_TYPE.find(([pattern]) => typeof type === 'string' && pattern.test(type))?.[1] ?? []

/**
 * The active tools: the entries of the caller without those for tools of this service that are off, and one for each further
 * tool of this service.
 */
export function shownTools(listed: readonly ToolEntry[], hosted: Iterable<ServiceTool>): ToolEntry[] {
  const active = new Set([...hosted].map(({ family }) => family))
  const shown = listed.filter(({ type }) => {
    const [family] = familiesOf(type)
    return family === undefined || active.has(family)
  })
  for (const type of SHOWN_TYPES) {
    const [family] = familiesOf(type)
    const isShown = shown.some((entry) => familiesOf(entry.type).includes(family as ToolFamily))
    if (active.has(family as ToolFamily) && !isShown) shown.push({ type })
  }
  return shown
}

/**
 * The tools of this service that entries of `tool_choice` name: by their type, or as functions by their names. The entries are
 * read once: a request may have many of them, and a model may call many tools.
 */
class NamedTools {
  readonly #functions = new Set<unknown>()
  readonly #families = new Set<ToolFamily>()
  /** Labels of integrations, and those of which every tool is named. */
  readonly #labels = new Set<unknown>()
  readonly #wholeLabels = new Set<unknown>()
  /** Names of tools, by the label of their integration. */
  readonly #inside = new Map<unknown, Set<unknown>>()

  constructor(entries: readonly unknown[]) {
    for (const entry of entries) this.#add(objectOf(entry))
  }

  #add({ type, name, server_label: label }: Record<string, unknown>): void {
    if (type === 'function') this.#functions.add(name)
    else if (type !== 'mcp') for (const family of familiesOf(type)) this.#families.add(family)
    else {
      this.#labels.add(label)
      if (name === undefined || name === null) this.#wholeLabels.add(label)
      else this.#inside.set(label, (this.#inside.get(label) ?? new Set()).add(name))
    }
  }

  has(tool: ServiceTool): boolean {
    const { name } = tool.definition
    if (this.#functions.has(name)) return true
    if (tool.family !== null && this.#families.has(tool.family)) return true
    if (tool.purpose === 'search') return tool.scope.entries.some(({ label }) => this.#labels.has(label))
    if (tool.purpose !== 'integration') return false
    const { server_label: label, name: ownName } = tool.members
    const inside = this.#inside.get(label)
    return this.#wholeLabels.has(label) || inside?.has(ownName) === true || inside?.has(name) === true
  }
}

/** Whether a choice allows a tool of this service. */
export function hostedChoice(choice: ToolChoice): (tool: ServiceTool) => boolean {
  if (choice === 'none') return () => false
  if (typeof choice !== 'object' || choice === null) return () => true
  const named = new NamedTools(entriesOf(choice))
  return (tool) => named.has(tool)
}

const entriesOf = (choice: ToolEntry): readonly unknown[] => {
  if (choice.type !== 'allowed_tools') return [choice]
  return Array.isArray(choice.tools) ? choice.tools : []
}

/**
 * The choice with the functions under which a model gets the tools of this service: each once, in the place of the first entry
 * that names it. Entries that name none of them stay as they are.
 */
export function modelChoice(choice: ToolChoice, hosted: readonly ServiceTool[]): ToolChoice {
  if (typeof choice !== 'object' || choice === null || hosted.length === 0) return choice
  const tools = withFunctions(entriesOf(choice), hosted)
  if (choice.type === 'allowed_tools') return { ...choice, tools }
  const [only] = tools
  if (tools.length === 1 && only) return only as ToolChoice
  return { type: 'allowed_tools', mode: 'required', tools } as ToolChoice
}

function withFunctions(entries: readonly unknown[], hosted: readonly ServiceTool[]): unknown[] {
  const tools: unknown[] = []
  const added = new Set<ServiceTool>()
  /** Entries that were read before, of which a request may have as many as it likes. */
  const known = new Set<string>()
  for (const entry of entries) {
    const { type, name, server_label: label } = objectOf(entry)
    const isOwn = type === 'mcp' || familiesOf(type).length > 0
    const key = JSON.stringify([type, label, name])
    if (isOwn && known.has(key)) continue
    const named = isOwn ? new NamedTools([entry]) : null
    const found = named ? hosted.filter((tool) => named.has(tool)) : []
    if (found.length === 0) tools.push(entry)
    else known.add(key)
    for (const tool of found) {
      if (!added.has(tool)) tools.push({ type: 'function', name: tool.definition.name })
      added.add(tool)
    }
  }
  return tools
}
