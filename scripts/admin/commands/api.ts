import { ENDPOINTS, type Endpoint, type EndpointName } from '../../../src/wire/endpoints/endpoints.ts'
import type { Call, Command, Outcome } from '../command.ts'
import { usageError } from '../errors.ts'
import { fileOption, membersOf } from '../file-option.ts'
import type { Item } from '../gateway.ts'
import { operationOf } from '../operations.ts'
import { one } from '../table.ts'

// Every endpoint by its name, for what has no command of its own.

const COLUMNS = ['name', 'method', 'path', 'permission', 'text']

async function listEndpoints(): Promise<Outcome> {
  const items = Object.entries(ENDPOINTS).map(([name, endpoint]) => ({ name, ...endpoint }))
  return { kind: 'list', items, columns: COLUMNS, more: false }
}

async function callByName(call: Call): Promise<Outcome> {
  const name = call.positionals[0] as EndpointName
  const endpoint: Endpoint | undefined = ENDPOINTS[name]
  if (endpoint === undefined) throw usageError(`there is no endpoint "${name}": api list has them all`)
  const given = Object.fromEntries((call.options.texts('set') ?? []).map(pairOf))
  const parameters = operationOf(name).parameters
  const missing = parameters.find((parameter) => given[parameter] === undefined)
  if (missing !== undefined) throw usageError(`${name} needs --set ${missing}=<value>`)
  const isOfPath = ([parameter]: [string, string]) => parameters.includes(parameter)
  const path = Object.fromEntries(Object.entries(given).filter(isOfPath))
  const query = Object.fromEntries(Object.entries(given).filter((pair) => !isOfPath(pair)))
  const takesBody = operationOf(name).members.some((member) => member.in === 'body')
  const body: { body?: Item } = takesBody ? { body: await membersOf(call) } : {}
  return one(await call.gateway.send(name, { path, query, ...body }))
}

function pairOf(text: string): [string, string] {
  const [, name = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === '') throw usageError(`--set takes name=value, not "${text}"`)
  return [name, value]
}

export const API_COMMANDS: readonly Command[] = [
  {
    group: 'api',
    verb: 'list',
    summary: 'List the endpoints of the management API',
    positionals: [],
    inOrganization: false,
    options: {},
    run: listEndpoints,
  },
  {
    group: 'api',
    verb: 'call',
    summary: 'Call an endpoint by its name, with ids instead of names',
    positionals: ['endpoint'],
    inOrganization: false,
    options: {
      set: { value: 'name=value', describe: 'a parameter of its path or query', multiple: true },
      ...fileOption('JSON with the members of its body (- for standard input)'),
    },
    run: callByName,
  },
]
