import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { callMcpTool, createMcpTenant, entitle, listMcpTools, rpcErrorOf, sendMcp } from '../harness/mcp.ts'
import { auditEntries } from '../harness/records.ts'
import { answered, failed, inTurn } from '../harness/routed-model.ts'
import { addKey, addMember, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest, seenRequests } from '../harness/upstream.ts'
import { createAgent, definitionOf, endedRun, readRun, trigger } from './support/agents.ts'
import { addPolicy, codePolicy, someCode } from './support/dlp.ts'
import type { Json } from './support/response-calls.ts'

const AGENT_TOOLS = [
  'platform_cancel_run',
  'platform_get_agent',
  'platform_get_run',
  'platform_get_run_evals',
  'platform_list_agents',
  'platform_restart_run',
  'platform_run_agent',
]
const UNKNOWN = '00000000-0000-4000-8000-00000000000a'

let tenant: Tenant
let other: Tenant

beforeAll(async () => {
  ;[tenant, other] = await Promise.all([createMcpTenant(gateway()), createMcpTenant(gateway())])
})

const says = (text: string) => inTurn(gateway(), answered('chat', text, true))

/** Calls a tool. @returns its structured output. */
async function call<Output = Json>(name: string, input: Json = {}, key = tenant.key): Promise<Output> {
  const result = await callMcpTool(gateway(), key, name, input)
  expect(result).not.toHaveProperty('isError')
  return result.structuredContent as Output
}

/** Calls a tool that fails. @returns its error. */
async function errorOf(name: string, input: Json = {}, key = tenant.key): Promise<Json> {
  const result = await callMcpTool(gateway(), key, name, input)
  expect(result).toMatchObject({ isError: true, _meta: { 'service.dev/platform-tool-error': 1 } })
  const content = result.content as Array<{ text: string }>
  return JSON.parse(content[0]?.text ?? '') as Json
}

/** An agent whose model does not answer until it is told to. */
async function heldAgent(): Promise<{ agentId: string; text: string; signal: string }> {
  const [text, signal] = [marker(), marker()]
  const script = await registerScript(gateway(), [
    { headers: { 'content-type': 'text/event-stream' } },
    { waitForSignal: signal },
  ])
  const agentId = await createAgent(tenant, definitionOf([{ instructions: `${script} ${text}` }]))
  return { agentId, text, signal }
}

describe.concurrent('tools for agents', () => {
  it('serve the official client from the list of agents to the verdicts and a restart', async () => {
    const definition = definitionOf(
      [{ name: 'Greet', instructions: `${await says('Hello Ada.')} {{who}}`, objective: 'Greets.' }],
      { inputs: [{ name: 'who' }], metadata: { team: 'demo' } },
    )
    const agentId = await createAgent(tenant, definition)
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    const requestInit = { headers: { authorization: `Bearer ${tenant.key}` } }
    const address = new URL(`${gateway().baseUrl}/v1/mcp?integrations=platform`)
    await client.connect(new StreamableHTTPClientTransport(address, { requestInit }))
    // The client checks each output against the schema that it has listed.
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(AGENT_TOOLS))
    const use = async (name: string, input: Json = {}) => {
      const { structuredContent, isError } = await client.callTool({ name, arguments: input })
      expect(isError ?? false).toBe(false)
      return structuredContent as Json
    }

    const { items } = (await use('platform_list_agents', { query: definition.name })) as { items: Json[] }
    expect(items).toMatchObject([{ agentId, name: definition.name, metadata: { team: 'demo' } }])
    const started = await use('platform_run_agent', {
      agent_id: agentId,
      inputs: [{ name: 'who', value: 'Ada' }],
    })
    expect(started).toMatchObject({ agentId, runId: expect.any(String), status: expect.any(String) })
    const { runId } = started as { runId: string }
    const read = await vi.waitFor(
      async () => {
        const run = await use('platform_get_run', { run_id: runId, include: ['result', 'steps'] })
        if (run.status === 'in_progress') throw new Error('the run is in progress')
        return run
      },
      { timeout: 15_000, interval: 100 },
    )
    const { steps, ...run } = read
    expect(run).toEqual(await readRun(tenant, runId))
    expect(run).toMatchObject({ status: 'success', result: expect.stringContaining('Hello Ada.') })
    expect(steps).toEqual([
      {
        stepNumber: 1,
        name: 'Greet',
        attempt: 1,
        status: 'completed',
        error: null,
        createdAtUtc: expect.any(String),
        endedAtUtc: expect.any(String),
      },
    ])
    expect(await use('platform_get_run_evals', { run_id: runId })).toMatchObject({
      runId,
      steps: [{ stepNumber: 1, name: 'Greet' }],
    })
    expect(await use('platform_get_agent', { agent_id: agentId.toUpperCase() })).toMatchObject({
      agentId,
      inputs: ['who'],
      modelsInUse: ['scripted-chat'],
      recentRunIds: [runId],
    })
    const again = (await use('platform_restart_run', { run_id: runId })) as { runId: string }
    expect(again.runId).not.toBe(runId)
    expect((await endedRun(tenant, again.runId)).status).toBe('success')
    await client.close()
  })

  it('state truly what they change', async () => {
    const tools = await listMcpTools(gateway(), tenant.key, { query: '?integrations=platform' })
    const hints = Object.fromEntries(
      tools
        .filter(({ name }) => AGENT_TOOLS.includes(name))
        .map(({ name, annotations, outputSchema, inputSchema }) => {
          expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
          expect(outputSchema).toMatchObject({ type: 'object' })
          const { readOnlyHint, destructiveHint = null, idempotentHint = null } = annotations as Json
          return [name, [readOnlyHint, destructiveHint, idempotentHint]]
        }),
    )
    const reads = [true, null, null]
    const runs = [false, true, null]
    expect(hints).toEqual({
      platform_list_agents: reads,
      platform_get_agent: reads,
      platform_get_run: reads,
      platform_get_run_evals: reads,
      platform_run_agent: runs,
      platform_restart_run: runs,
      platform_cancel_run: [false, true, true],
    })
  })

  it('list agents in pages', async () => {
    const owner = await createMcpTenant(gateway())
    const step = { instructions: 'x' }
    for (const name of ['b', 'a', 'c']) await createAgent(owner, definitionOf([step], { name }))
    type List = { items: Array<{ name: string }>; total: number; next_cursor: string | null }
    const first = await call<List>('platform_list_agents', { limit: 2 }, owner.key)
    expect([first.items.map(({ name }) => name), first.total]).toEqual([['a', 'b'], 3])
    const cursor = first.next_cursor ?? ''
    const second = await call<List>('platform_list_agents', { limit: 2, cursor }, owner.key)
    expect([second.items.map(({ name }) => name), second.next_cursor]).toEqual([['c'], null])
    for (const wrong of ['x', Buffer.from('["offset",-1]').toString('base64url')]) {
      const input = { cursor: wrong }
      expect(await errorOf('platform_list_agents', input, owner.key)).toMatchObject({ code: 'invalid_input' })
    }
  })

  it('wait for a run that ends soon', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: await says('Soon.') }]))
    const run = await call('platform_run_agent', { agent_id: agentId, wait_seconds: 25 })
    expect(run).toMatchObject({ status: 'success', result: expect.stringContaining('Soon.') })
    const read = { run_id: run.runId, include: [] }
    expect(await call('platform_get_run', read)).not.toHaveProperty('result')
  })

  it('start one run for an idempotency key, which the HTTP surface shares', async () => {
    const text = marker()
    const agentId = await createAgent(
      tenant,
      definitionOf([{ instructions: `${await says('Once.')} ${text} {{a}}` }], { inputs: [{ name: 'a' }] }),
    )
    const key = marker()
    const inputs = [{ name: 'a', value: '1' }]
    const input = { agent_id: agentId, inputs, idempotency_key: key }
    const runs = await Promise.all([1, 2, 3].map(() => call('platform_run_agent', input)))
    const overHttp = await trigger(tenant, agentId, { a: '1' }, { headers: { 'idempotency-key': key } })
    expect(new Set([...runs.map(({ runId }) => runId), overHttp.runId]).size).toBe(1)
    const { runId } = overHttp
    await endedRun(tenant, runId)
    expect(await seenRequests(gateway(), text)).toHaveLength(1)
    const changed = { ...input, inputs: [{ name: 'a', value: '2' }] }
    expect(await errorOf('platform_run_agent', changed)).toMatchObject({ code: 'conflict', retryable: false })
    const restart = { run_id: runId, idempotency_key: key }
    const [one, two] = [
      await call('platform_restart_run', restart),
      await call('platform_restart_run', restart),
    ]
    expect(two).toEqual(one)
  })

  it('cancel a run with its turn in flight, and leave a cancelled one so', async () => {
    const { agentId, text, signal } = await heldAgent()
    const { runId } = await call<{ runId: string }>('platform_run_agent', { agent_id: agentId })
    await seenRequest(gateway(), text)
    const cancelled = await call('platform_cancel_run', { run_id: runId })
    expect(cancelled).toMatchObject({ runId, status: 'cancelled', endedAtUtc: expect.any(String) })
    await seenRequest(gateway(), text, ({ clientClosedAt }) => clientClosedAt !== null)
    await upstreamControl(gateway()).release(signal)
    expect(await call('platform_cancel_run', { run_id: runId })).toEqual(cancelled)
    const changes = (await auditEntries(gateway(), tenant)).filter(
      ({ kind, record }) => kind === 'change' && record.resource === `runs/${runId}`,
    )
    expect(changes).toMatchObject([{ action: 'run.cancelled', user_id: tenant.userId }])
  })

  it('do not cancel a run that has ended', async () => {
    const ended = await createAgent(tenant, definitionOf([{ instructions: await says('Over.') }]))
    const run = await call('platform_run_agent', { agent_id: ended, wait_seconds: 25 })
    expect(await errorOf('platform_cancel_run', { run_id: run.runId })).toEqual({
      code: 'conflict',
      message: 'The run has ended (success).',
      retryable: false,
    })
  })

  it('answer missing inputs, malformed ids and unknown ones in the form of the interface', async () => {
    const agentId = await createAgent(
      tenant,
      definitionOf([{ instructions: '{{City}}' }], { inputs: [{ name: 'City' }] }),
    )
    expect(await errorOf('platform_run_agent', { agent_id: agentId })).toEqual({
      code: 'invalid_input',
      message: expect.stringContaining('"City"'),
      retryable: false,
    })
    const inputs = [{ name: 'City' }]
    const malformed: Array<[tool: string, input: Json]> = [
      ['platform_run_agent', { agent_id: agentId, inputs }],
      ['platform_run_agent', { agent_id: agentId, wait_seconds: 26 }],
      ['platform_run_agent', { agent_id: agentId, idempotency_key: ' ' }],
      ['platform_run_agent', {}],
      ['platform_get_agent', { agent_id: 'x' }],
      ['platform_get_run', { run_id: agentId, include: ['all'] }],
      ...['platform_get_run', 'platform_cancel_run', 'platform_restart_run', 'platform_get_run_evals'].map(
        (tool): [string, Json] => [tool, { run_id: 'x' }],
      ),
    ]
    for (const [tool, input] of malformed) {
      expect([tool, await errorOf(tool, input)]).toEqual([
        tool,
        { code: 'invalid_input', message: expect.any(String), retryable: false },
      ])
    }
    for (const tool of AGENT_TOOLS.filter((name) => name !== 'platform_list_agents')) {
      const entity = tool.endsWith('_agent') ? 'Agent' : 'Run'
      expect(await errorOf(tool, { [`${entity.toLowerCase()}_id`]: UNKNOWN })).toEqual({
        code: 'not_found',
        message: `${entity} ${UNKNOWN} not found.`,
        retryable: false,
      })
    }
  })

  it('keep runs from colleagues, and agents from other organizations', async () => {
    const { agentId, text, signal } = await heldAgent()
    const { runId } = await trigger(tenant, agentId)
    await seenRequest(gateway(), text)
    const colleague = await addMember(gateway(), tenant.base)
    await entitle(gateway(), tenant.base, colleague)
    const { key } = await addKey(gateway(), tenant.base, colleague)
    for (const stranger of [key, other.key]) {
      for (const tool of ['platform_get_agent', 'platform_run_agent']) {
        expect(await errorOf(tool, { agent_id: agentId }, stranger)).toMatchObject({ code: 'not_found' })
      }
      for (const tool of [
        'platform_get_run',
        'platform_cancel_run',
        'platform_restart_run',
        'platform_get_run_evals',
      ]) {
        expect(await errorOf(tool, { run_id: runId }, stranger)).toMatchObject({ code: 'not_found' })
      }
      const { total } = await call<{ total: number }>('platform_list_agents', { query: text }, stranger)
      expect(total).toBe(0)
    }
    expect((await readRun(tenant, runId)).status).toBe('in_progress')
    expect(await seenRequests(gateway(), text)).toHaveLength(1)
    await upstreamControl(gateway()).release(signal)
  })

  it('need the scope agents of a key', async () => {
    const { key } = await addKey(gateway(), tenant.base, tenant.userId, { scopes: ['mcp'] })
    const names = (await listMcpTools(gateway(), key, { query: '?integrations=platform' })).map(
      ({ name }) => name,
    )
    expect(names).toContain('platform_whoami')
    expect(names.filter((name) => AGENT_TOOLS.includes(name))).toEqual([])
    const direct = { name: 'platform_list_agents' }
    const delegated = { name: 'platform_execute_tool', arguments: direct }
    for (const request of [direct, delegated]) {
      const error = await rpcErrorOf(sendMcp(gateway(), key, 'tools/call', request))
      expect(error).toMatchObject({ code: -32602, status: 200 })
    }
  })

  it('show results as the policies of the moment let them pass, and errors of steps', async () => {
    const owner = await createMcpTenant(gateway())
    const code = someCode()
    const agentId = await createAgent(
      owner,
      definitionOf([{ instructions: await inTurn(gateway(), answered('chat', `It is ${code}.`, true)) }]),
    )
    const { runId } = await trigger(owner, agentId)
    await endedRun(owner, runId)
    const before = await call<{ result: string }>('platform_get_run', { run_id: runId }, owner.key)
    expect(before.result).toContain(code)
    await addPolicy(owner, codePolicy('redact'))
    const after = await callMcpTool(gateway(), owner.key, 'platform_get_run', { run_id: runId })
    expect(JSON.stringify(after)).not.toContain(code)
    expect(after.structuredContent).toMatchObject({ status: 'success' })

    const script = await inTurn(gateway(), failed(400, '{"error":{"message":"not today","code":"no"}}'))
    const failing = await createAgent(owner, definitionOf([{ instructions: script }]))
    const run = await call('platform_run_agent', { agent_id: failing, wait_seconds: 25 }, owner.key)
    expect(run).toMatchObject({ status: 'failure', result: null })
    const input = { run_id: run.runId, include: ['steps'] }
    expect(await call('platform_get_run', input, owner.key)).toMatchObject({
      steps: [{ status: 'failed', error: { code: expect.any(String), message: expect.any(String) } }],
    })
  })
})
