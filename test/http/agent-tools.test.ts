import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import {
  createIntegration,
  type IntegrationItem,
  type McpServer,
  mcpTool,
  startMcpServer,
} from '../harness/integrations.ts'
import { answered, failed, inTurn } from '../harness/routed-model.ts'
import { administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { createAgent, definitionOf, endedRun, resultText, runDetails, trigger } from './support/agents.ts'
import { callTool, say } from './support/dlp-answers.ts'
import type { Json } from './support/response-calls.ts'
import { bodyOf, turnsScript } from './support/response-streams.ts'

let tenant: Tenant
let server: McpServer
let crm: IntegrationItem

beforeAll(async () => {
  ;({ tenant, server, crm } = await newWorld())
})

async function newWorld() {
  const own = await createTenant(gateway())
  const result = (text: string) => ({ content: [{ type: 'text', text }] })
  const mcp = await startMcpServer(gateway(), {
    tools: [mcpTool('find', { annotations: { readOnlyHint: true } }), mcpTool('add')],
    results: { find: result('Ada, 36'), add: result('added') },
  })
  const integration = await createIntegration(gateway(), own, { url: mcp.url })
  return { tenant: own, server: mcp, crm: integration }
}

const management = () => administrator(gateway())
const stepOf = (instructions: string, slug = crm.slug, more: Json = {}) => ({
  instructions,
  tools: { hosted: [], integrations: [{ integration: slug }] },
  ...more,
})
const run = async (step: Json, who = tenant) => {
  const { runId } = await trigger(who, await createAgent(who, definitionOf([step])))
  return endedRun(who, runId)
}

describe('a step', () => {
  it('calls tools of its integrations, and of no other', async () => {
    const mark = marker()
    const script = await turnsScript('chat', [
      [callTool(`${crm.slug}_find`, { text: 'Ada' })],
      [say('Ada is 36.')],
    ])
    const ended = await run(stepOf(`${script} ${mark}`))
    expect(resultText(ended)).toBe('Ada is 36.')
    const [first] = await seenRequests(gateway(), mark)
    const names = (bodyOf(first as never).tools as Array<{ function: { name: string } }>).map(
      (tool) => tool.function.name,
    )
    expect(names).toEqual(expect.arrayContaining([`${crm.slug}_find`, `${crm.slug}_add`]))
  })

  it('that called a tool with effects is not repeated by itself, and warns a person', async () => {
    const calls = await server.calls('add')
    const script = await inTurn(gateway(), ...(await addThenFail(crm.slug)), answered('chat', 'Done.', true))
    const ended = await run(stepOf(script, crm.slug, { max_attempts: 3 }))
    expect(ended.status).toBe('failure')
    expect(await server.calls('add')).toBe(calls + 1)
    const { attempts } = await runDetails(tenant, ended.runId)
    expect(attempts).toMatchObject([{ attempt: 1, status: 'failed', had_effects: true }])
    const rerun = await management().ask('POST', `${tenant.base}/runs/${ended.runId}/rerun`)
    expect(rerun.warning).toMatch(/may have changed something/)
    expect(resultText(await endedRun(tenant, ended.runId))).toBe('Done.')
    expect(await server.calls('add')).toBe(calls + 1)
  })

  it('fails at a call that a person would have to approve', async () => {
    const guarded = await newWorld()
    await management().ask('PUT', `${guarded.tenant.base}/tools`, {
      approvals: [{ integration: guarded.crm.slug, calls: 'effects' }],
    })
    const script = await turnsScript('chat', [[callTool(`${guarded.crm.slug}_add`, { text: 'Bob' })]])
    const ended = await run(stepOf(script, guarded.crm.slug), guarded.tenant)
    expect(ended.status).toBe('failure')
    const { error } = await runDetails(guarded.tenant, ended.runId)
    expect(error).toMatchObject({ code: 'approval_required' })
    expect(await guarded.server.calls('add')).toBe(0)
  })

  it('without a connection to its integration fails with the reason', async () => {
    const ended = await run(stepOf('Hello.', 'no-such-service'))
    expect(ended.status).toBe('failure')
    const { error } = await runDetails(tenant, ended.runId)
    expect(error).toMatchObject({ message: expect.stringContaining('no-such-service') })
  })
})

/** Answers of a model that adds, and then is not there. */
async function addThenFail(slug: string) {
  const call = [
    { id: 'call_add', type: 'function', function: { name: `${slug}_add`, arguments: '{"text":"Bob"}' } },
  ]
  const frame = (data: unknown) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
  const chunk = (delta: Json, finish: string | null) =>
    frame({
      ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
      choices: [{ index: 0, delta, finish_reason: finish }],
    })
  const sse = [
    chunk({ role: 'assistant', tool_calls: call.map((each) => ({ index: 0, ...each })) }, null),
    chunk({}, 'tool_calls'),
    frame('[DONE]'),
  ]
  return [
    [{ headers: { 'content-type': 'text/event-stream' } }, { sse }, { end: true as const }],
    failed(400),
  ]
}
