import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createMcpTenant } from '../harness/mcp.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, type Tenant } from '../harness/tenant.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { MCP_ROUTE } from '../matrices/routes.ts'
import {
  createAgent,
  definitionOf,
  endedRun,
  post,
  resultText,
  runDetails,
  trigger,
} from './support/agents.ts'

// Bodies of the endpoints that parse JSON into a tree. Those of models are in large-bodies.test.ts.

/** Interface, Limits. */
const LIMIT = 52_428_800
/** Limit of the inputs of a run (docs/agents.md). */
const MOST_INPUT_BYTES = 10_000_000

let tenant: Tenant
let agentId: string

beforeAll(async () => {
  tenant = await createMcpTenant(gateway())
  const script = await inTurn(gateway(), answered('chat', 'Done.', true))
  const inputs = [{ name: 'text', required: false }]
  agentId = await createAgent(tenant, definitionOf([{ instructions: script }], { inputs }))
})

const ask = (
  method: string,
  path: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  send(gateway().baseUrl + path, {
    method,
    headers: { ...bearer(tenant.key), 'content-type': 'application/json', ...headers },
    body,
  })

const CONNECTIONS = '/v1/integrations/connections'
const ENDPOINTS: Array<[method: string, path: string, headers?: Record<string, string>]> = [
  ['POST', '/v1/agents/runs'],
  ['POST', `${CONNECTIONS}/tickets/default`],
  ['PUT', `${CONNECTIONS}/conn_0000000000000000000000/shares/00000000-0000-4000-8000-000000000003`],
  ['POST', MCP_ROUTE.path, MCP_ROUTE.headers],
]

describe.each(ENDPOINTS)('%s %s', (method, path, headers = {}) => {
  it('refuses a body over 50 MB, counted after decompression', async () => {
    const body = gzipSync(Buffer.alloc(LIMIT + 1, ' '), { level: 1 })
    const answer = await ask(method, path, body, { ...headers, 'content-encoding': 'gzip' })
    expect(jsonOf(answer)).toEqual({ message: `The request body is larger than ${LIMIT} bytes.` })
    expect(answer.status).toBe(413)
  })

  it('refuses a body of more values than a tree may have, and names the bound', async () => {
    const values = `[${'[],'.repeat(250_000)}[]]`
    const known = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', agentId, connection_id: 'conn_x' })
    const names = ['inputs', 'connection_id', 'permission', 'params']
    const body = `${known.slice(0, -1)},${names.map((name) => `"${name}":${values}`).join()}}`
    const answer = await ask(method, path, body, headers)
    expect(answer.text).toMatch(/may hold at most 200000 values/)
    expect(answer.status).toBe(400)
    expect(answer.text.length).toBeLessThan(1_000)
  })
})

describe('a run', () => {
  it('may be requested with members that are not read, of any size', async () => {
    const body = JSON.stringify({ padding: ['x'.repeat(9_000_000)], agentId, more: { a: [] } })
    expect((await ask('POST', '/v1/agents/runs', body)).status).toBe(202)
  })

  it('may have inputs up to their bound, which are there when it is restarted', async () => {
    const text = 'é'.repeat(MOST_INPUT_BYTES / 2 - 100)
    const { runId } = await trigger(tenant, agentId, { text })
    expect(resultText(await endedRun(tenant, runId))).toBe('Done.')
    const again = await ask('POST', `/v1/runs/${runId}/restart`, '')
    expect(again.status).toBe(202)
    const restarted = String(jsonOf(again).runId)
    expect(resultText(await endedRun(tenant, restarted))).toBe('Done.')
  })

  it('is refused with larger ones, by the bound and not as a large body', async () => {
    const inputs = [{ name: 'text', value: 'x'.repeat(MOST_INPUT_BYTES) }]
    const answer = await post(tenant, '/v1/agents/runs', { agentId, inputs })
    const message = `inputs: may have at most ${MOST_INPUT_BYTES} bytes.`
    expect(jsonOf(answer)).toEqual(refusalBody('agents', { status: 400, message }))
    expect(answer.status).toBe(400)
  })

  it('fails at a step whose instructions become too long by their placeholders', async () => {
    const instructions = '{{text}}'.repeat(20)
    const inputs = [{ name: 'text' }]
    const long = await createAgent(tenant, definitionOf([{ instructions }], { inputs }))
    const { runId } = await trigger(tenant, long, { text: 'x'.repeat(600_000) })
    expect((await endedRun(tenant, runId)).status).toBe('failure')
    expect(await runDetails(tenant, runId)).toMatchObject({ error: { code: 'instructions_too_long' } })
  })
})

describe('a webhook', () => {
  it('over its limit is refused with that limit', async () => {
    const answer = await ask('POST', `/v1/agents/${agentId}/triggers/inbox`, 'x'.repeat(1_048_577))
    expect(jsonOf(answer)).toEqual({ message: 'The request body is larger than 1048576 bytes.' })
    expect(answer.status).toBe(413)
  })
})
