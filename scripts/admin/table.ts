import { ENDPOINTS, type EndpointName } from '../../src/wire/endpoints/endpoints.ts'
import type { Call, Command, Option, Outcome } from './command.ts'
import { usageError } from './errors.ts'
import type { Item } from './gateway.ts'
import { idOf, MEMBERS, organizationOf, PARAMETERS } from './names.ts'
import { type Member, operationOf } from './operations.ts'

/**
 * What a command adds to its endpoint. A command is called as its endpoint, `users list` as `users.list`, and has its text, its
 * parameters and its members, unless this says otherwise.
 */
export interface Naming {
  endpoint?: EndpointName
  /** The endpoint for the installation, which `--deployment` selects. */
  deployment?: EndpointName
  summary?: string
  /** Parameters of the path and members that are positional arguments; without it the parameters, but the organization. */
  arguments?: readonly string[]
  /** Members that have an option; without it all that an option can give, but `disabled`. */
  takes?: readonly string[]
  /** Members whose option takes an id alone. */
  asGiven?: readonly string[]
  columns?: readonly string[] | ((call: Call) => readonly string[])
  /** Whether members that the endpoint requires may be left out, because `run` has them. */
  partial?: true
  /** Options besides those of the members, or in place of them, which `body` or `run` read. */
  options?: Record<string, Option>
  /** Members that are always sent. */
  set?: Item
  /** Members of the body from `options`. Those of the members' own options win. */
  body?(call: TableCall): Promise<Item> | Item
  /** Its part that is shown; without it the whole answer. */
  shows?(answer: Item, call: TableCall): Outcome
  /** A line on standard error about the answer. */
  remark?(answer: Item): string | undefined
  /** In place of one request to the endpoint. */
  run?(call: TableCall): Promise<Outcome>
}

/** Ids of the parameters of the path, as far as the command line names them. */
export type PathIds = Record<
  | 'organizationId'
  | 'userId'
  | 'groupId'
  | 'policyId'
  | 'integrationId'
  | 'connectionId'
  | 'agentId'
  | 'runId'
  | 'providerId'
  | 'modelId',
  string
>

export interface TableCall extends Call {
  /** The endpoint that the options select. */
  endpoint: EndpointName
  /** The ids that the command line names. Looked up once. */
  path(): Promise<PathIds>
  /** The id of what an option or argument names. */
  find(kind: Parameters<typeof idOf>[0], name: string): Promise<string>
  /** The request to the endpoint. */
  request(): Promise<{ path: PathIds; query: Item; body: Item }>
}

/** The commands of a table, whose keys are group and verb. */
export const commandsOf = (table: Record<string, Naming>): Command[] =>
  Object.entries(table).map(([name, naming]) => commandOf(name, naming))

function commandOf(name: string, naming: Naming): Command {
  const [group = '', verb = ''] = name.split(' ')
  const endpoint = naming.endpoint ?? (`${group}.${verb}` as EndpointName)
  const shape = shapeOf(endpoint, naming)
  return {
    group,
    verb,
    summary: naming.summary ?? imperative(ENDPOINTS[endpoint].text),
    positionals: shape.positionals.map(labelOf),
    inOrganization: shape.inOrganization,
    options: optionsOf(shape, naming),
    run: (call) => runNaming(callOf(call, endpoint, shape, naming), shape, naming),
  }
}

/** "Lists the users." as a command: "List the users". */
const imperative = (text: string) =>
  text.replace(/^\w+/, (verb) => verb.replace(/ies$/, 'y').replace(/(ch|sh)es$|s$/, '$1')).replace(/\.$/, '')

interface Shape {
  positionals: readonly string[]
  inOrganization: boolean
  isList: boolean
  /** Parameters of the path that are options. */
  parameters: readonly string[]
  /** Members that are options. */
  members: readonly Member[]
  /** All members by name. */
  known: ReadonlyMap<string, Member>
}

function shapeOf(endpoint: EndpointName, naming: Naming): Shape {
  const { parameters, members, isList } = operationOf(endpoint)
  const own = parameters.filter((name) => name !== 'organizationId')
  const positionals = naming.arguments ?? own
  const isOption = ({ name, kind }: Member) =>
    naming.takes?.includes(name) ?? (['text', 'number', 'texts'].includes(kind) && name !== 'disabled')
  return {
    positionals,
    inOrganization: parameters.includes('organizationId') && !positionals.includes('organizationId'),
    isList: isList && naming.run === undefined,
    parameters: own.filter((name) => !positionals.includes(name)),
    members: members.filter((member) => isOption(member) && !positionals.includes(member.name)),
    known: new Map(members.map((member) => [member.name, member])),
  }
}

const optionName = (member: string) => MEMBERS[member]?.option ?? member.replaceAll('_', '-')
const labelOf = (name: string) => PARAMETERS[name]?.label ?? optionName(name)

const LIST_OPTIONS: Record<string, Option> = {
  limit: { value: 'number', describe: 'show at most so many (100)' },
  all: { describe: 'show all' },
}

function optionsOf({ isList, parameters, members }: Shape, naming: Naming): Record<string, Option> {
  return {
    ...(isList && LIST_OPTIONS),
    ...Object.fromEntries(parameters.map((name) => [labelOf(name), parameterOption(name)])),
    ...Object.fromEntries(members.map((member) => [optionName(member.name), memberOption(member, naming)])),
    ...(naming.deployment && {
      deployment: { describe: 'changes to providers and models, in place of an organization' },
    }),
    ...naming.options,
  }
}

const parameterOption = (name: string): Option => ({
  value: labelOf(name),
  describe: `name or id of the ${labelOf(name)}`,
  required: true,
})

function memberOption(member: Member, { partial }: Naming): Option {
  const { name, kind, nullable, choices, preset, required } = member
  const { value, named } = MEMBERS[name] ?? {}
  const description = member.description ?? optionName(name).replaceAll('-', ' ')
  const text = description.replace(/\.$/, '').replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())
  const shown = choices.map((choice) => choice.replaceAll('_', '-'))
  const described = [
    shown.length > 0 ? `${text}: ${listed(shown)}` : text,
    nullable && kind === 'number' && ', or none',
    preset !== undefined && choices.length > 0 && kind !== 'texts' && ` (${preset})`,
  ]
  return {
    value: value ?? named ?? (kind === 'number' ? 'number' : choices.length > 0 ? optionName(name) : 'text'),
    describe: described.filter(Boolean).join(''),
    required: required && !partial,
    multiple: kind === 'texts',
    choices: shown,
  }
}

const listed = (choices: readonly string[]) =>
  choices.length < 2 ? choices.join('') : `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`

function callOf(call: Call, endpoint: EndpointName, shape: Shape, naming: Naming): TableCall {
  const selected =
    naming.deployment !== undefined && call.options.flag('deployment') ? naming.deployment : endpoint
  let organization: Promise<string> | undefined
  let ids: Promise<PathIds> | undefined
  // The members of a call are read on use: it connects to its gateway when it first needs it.
  const own = Object.create(call) as TableCall
  const organizationId = () => (organization ??= ownOrganization(own, shape))
  return Object.assign(own, {
    endpoint: selected,
    path: () => (ids ??= pathIds(own, shape, organizationId)),
    find: async (kind: Parameters<typeof idOf>[0], name: string) =>
      idOf(kind, call.gateway, kind === 'organization' ? '' : await organizationId(), name),
    request: () => requestOf(own, shape, naming),
  })
}

/** The organization that the command works in; empty where it works in none. */
async function ownOrganization(call: TableCall, { inOrganization }: Shape): Promise<string> {
  if (!inOrganization || !ENDPOINTS[call.endpoint].path.includes('{organizationId}')) return ''
  // The gateway comes first: its profile may name the organization.
  const { gateway } = call
  return organizationOf(gateway, call.options.text('organization') ?? call.environment.HEADGATE_ORGANIZATION)
}

async function pathIds(
  call: TableCall,
  { positionals, parameters }: Shape,
  ownId: () => Promise<string>,
): Promise<PathIds> {
  const organizationId = await ownId()
  const ids: Record<string, string> = { organizationId }
  for (const name of [...positionals, ...parameters]) {
    const parameter = PARAMETERS[name]
    if (parameter === undefined) continue
    const text = call.positionals[positionals.indexOf(name)] ?? call.options.text(parameter.label) ?? ''
    const { named } = parameter
    ids[name] = named ? await idOf(named, call.gateway, organizationId, text) : text
  }
  return ids as PathIds
}

async function requestOf(call: TableCall, { positionals, members, known }: Shape, naming: Naming) {
  const values: Record<Member['in'], Item> = { query: {}, body: { ...(await naming.body?.(call)) } }
  const path = await call.path()
  for (const [index, name] of positionals.entries()) {
    const member = known.get(name)
    if (member)
      values[member.in][name] = await memberValue(call, member, call.positionals[index] ?? '', naming)
  }
  for (const member of members) {
    const text = call.options.texts(optionName(member.name)) ?? call.options.text(optionName(member.name))
    if (text !== undefined) values[member.in][member.name] = await memberValue(call, member, text, naming)
  }
  return { path, query: values.query, body: { ...values.body, ...naming.set } }
}

/** What a text of the command line stands for. */
async function memberValue(call: TableCall, member: Member, text: string | string[], naming: Naming) {
  if (Array.isArray(text)) return text
  const { name, kind, nullable, choices } = member
  if (nullable && text === 'none') return null
  if (kind === 'number') return call.options.number(optionName(name)) ?? Number(text)
  const { named } = MEMBERS[name] ?? {}
  if (named && !naming.asGiven?.includes(name)) return call.find(named, text)
  return choices.find((choice) => choice.replaceAll('_', '-') === text) ?? text
}

async function runNaming(call: TableCall, shape: Shape, naming: Naming): Promise<Outcome> {
  if (naming.run) return naming.run(call)
  if (shape.isList) return listOf(call, naming)
  const { path, query, body } = await call.request()
  const takesBody = ['POST', 'PUT'].includes(ENDPOINTS[call.endpoint].method)
  const hasBody = takesBody && ([...shape.known.values()].some((each) => each.in === 'body') || naming.set)
  const item = await call.gateway.send(call.endpoint, { path, query, ...(hasBody && { body }) })
  const remark = naming.remark?.(item)
  if (remark !== undefined) call.note(remark)
  return naming.shows?.(item, call) ?? { kind: 'item', item }
}

async function listOf(call: TableCall, naming: Naming): Promise<Outcome> {
  const most = call.options.flag('all') ? Number.MAX_SAFE_INTEGER : (call.options.number('limit') ?? 100)
  if (most < 1) throw usageError('--limit takes a number from 1')
  const { path, query } = await call.request()
  const request = { path, query: { ...query, limit: Math.min(200, most) } }
  const items: Item[] = []
  let more = false
  for await (const page of call.gateway.pages(call.endpoint, request as never)) {
    const { data, next_cursor: next } = page as unknown as { data: Item[]; next_cursor: string | null }
    items.push(...data)
    more = next !== null || items.length > most
    if (items.length >= most) break
    if (more) call.progress(`${items.length} read`)
  }
  const columns = typeof naming.columns === 'function' ? naming.columns(call) : (naming.columns ?? ['id'])
  return { kind: 'list', items: items.slice(0, most), columns, more }
}

/** An answer of which one member, a list, is shown. */
export const rowsOf =
  (member: string, columns: readonly string[]) =>
  (answer: Item): Outcome => ({ kind: 'list', items: answer[member] as Item[], columns, more: false })

/** One object as a result. */
export const one = (item: object): Outcome => ({ kind: 'item', item: item as Item })
