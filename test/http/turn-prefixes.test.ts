import { describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createIntegration, mcpTool, startMcpServer } from '../harness/integrations.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { callTool, type Part, say } from './support/dlp-answers.ts'
import type { Json, ToldResponse } from './support/response-calls.ts'
import { bodyOf, CORNER_WAYS, type ResponseWay, respond, turnsScript } from './support/response-streams.ts'

// The messages that a model got in one turn are the beginning of those that it gets in the next one, byte by byte: prompt
// caches of providers depend on it, and calls that followed each other must not look as if they had been made at once.

const FUNCTION = { type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } }

async function newWorld(): Promise<{ tenant: Tenant; slug: string; tools: Json[] }> {
  const tenant = await createTenant(gateway())
  const server = await startMcpServer(gateway(), {
    tools: [mcpTool('find'), mcpTool('add')],
    results: {
      find: { content: [{ type: 'text', text: 'Ada' }] },
      add: { content: [{ type: 'text', text: 'added' }] },
    },
  })
  const { slug } = await createIntegration(gateway(), tenant, { url: server.url })
  return { tenant, slug, tools: [FUNCTION, { type: 'mcp', server_label: slug }] }
}

/** Of each message of the assistant, the names of the tools that it calls. */
function callsIn({ messages }: { messages: Json[] }): string[][] {
  return messages
    .filter(({ role }) => role === 'assistant')
    .map(({ tool_calls: calls, content }) => {
      if (Array.isArray(calls)) return calls.map((call: Json) => String((call.function as Json).name))
      const blocks = (Array.isArray(content) ? content : []) as Json[]
      return blocks.filter(({ type }) => type === 'tool_use').map(({ name }) => String(name))
    })
}

/** @throws naming the first message that a later request has rewritten. */
function expectGrowing(requests: ReadonlyArray<{ body: string }>): void {
  for (const [index, { body }] of requests.slice(0, -1).entries()) {
    const sent = JSON.stringify(bodyOf({ body }).messages).slice(0, -1)
    expect(body).toContain(sent)
    expect(requests[index + 1]?.body).toContain(sent)
  }
}

/** The outputs of the calls that a response left to its caller. */
const outputsFor = (response: ToldResponse): Json[] =>
  response.output
    .filter(({ type }) => type === 'function_call')
    .map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'Sunny.' }))

/** Continues a conversation. @param input null for the outputs of the calls of the last response. */
type Continue = (input: Json[] | null) => Promise<ToldResponse>

function stored({ key }: Tenant, { model, stream }: ResponseWay, tools: Json[]): Continue {
  let last: ToldResponse | null = null
  return async (input) => {
    const body = { model, stream, tools, ...(last && { previous_response_id: last.id }) }
    const { response } = await respond(key, { ...body, input: input ?? (last && outputsFor(last)) })
    last = response
    return response
  }
}

function sentBack({ key }: Tenant, { model, stream }: ResponseWay, tools: Json[]): Continue {
  const history: Json[] = []
  let last: ToldResponse | null = null
  return async (input) => {
    history.push(...(input ?? (last ? outputsFor(last) : [])))
    const { response } = await respond(key, { model, stream, tools, store: false, input: history })
    history.push(...response.output)
    last = response
    return response
  }
}

const WRITE = callTool('write_file', { path: 'a.txt', content: 'one' })
const LIST = callTool('list_files', {})
const WEATHER = callTool('weather', {})
const SHELL = callTool('shell', { commands: ['echo one'], timeout_ms: null, max_output_length: null })
const SEARCH = callTool('web_search', { query: 'bees' })

function turnsOf(slug: string): Array<readonly Part[]> {
  const [find, add] = [callTool(`${slug}_find`, { text: 'Ada' }), callTool(`${slug}_add`, {})]
  return [
    [LIST],
    [WRITE],
    [SHELL],
    [SEARCH],
    [find, LIST],
    [SHELL, SEARCH],
    [add],
    [callTool('unknown_one', {}), LIST, callTool('unknown_two', {})],
    [LIST, say('And the weather.'), WEATHER, find],
    [find],
    [LIST],
    [say('Done.')],
  ]
}

/** Calls that the gateway refuses are no items: they follow those that are. */
const isRefused = (name: string): boolean => name.startsWith('unknown')
const refusedLast = (names: string[]): string[] => [
  ...names.filter((name) => !isRefused(name)),
  ...names.filter(isRefused),
]

const namesOf = (turns: ReadonlyArray<readonly Part[]>): string[][] =>
  turns.map((parts) => parts.flatMap((part) => (part.kind === 'call' ? [part.name] : [])))

describe.each(CORNER_WAYS)('a model reads its turns as it made them (%s)', (_, way) => {
  it.each(['stored', 'sent back'] as const)('in a conversation that is %s', async (form) => {
    const { tenant, slug, tools } = await newWorld()
    const turns = turnsOf(slug)
    const mark = marker()
    const question = { role: 'user', content: `${await turnsScript(way.upstream, turns)} ${mark}` }
    const requests = form === 'stored' ? stored(tenant, way, tools) : sentBack(tenant, way, tools)
    await requests([question])
    await requests(null)
    await requests([{ role: 'user', content: 'Thanks.' }])

    const seen = await seenRequests(gateway(), mark)
    expect(seen).toHaveLength(turns.length + 1)
    const all = callsIn(bodyOf(seen[8] as never))
    expect(all).toEqual(namesOf(turns.slice(0, 8)).map(refusedLast))
    expectGrowing(seen.slice(0, 9))
    // Refused calls are known to the turns of their response only.
    expectGrowing(seen.slice(9))
    const known = namesOf(turns).map((names) => names.filter((name) => !isRefused(name)))
    expect(callsIn(bodyOf(seen.at(-1) as never))).toEqual(known)
  })
})
