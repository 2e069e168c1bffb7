import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createIntegration, mcpTool, startMcpServer } from '../harness/integrations.ts'
import { entitle, sendMcp } from '../harness/mcp.ts'
import { flush } from '../harness/records.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { send } from '../harness/send.ts'
import { bearer, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import { createAgent, definitionOf, endedRun, trigger } from './support/agents.ts'
import {
  CHAT_WAY,
  codePolicy,
  governedTenant,
  MESSAGES_TO_CHAT,
  MESSAGES_WAY,
  recordOf,
} from './support/dlp.ts'
import { PlacedValues } from './support/placed-values.ts'
import { ask, type Json } from './support/response-calls.ts'
import { CORNER_WAYS, postResponse } from './support/response-streams.ts'

// Texts that a caller chooses are inspected under any name. A value stands in each of them here; the only ones that leave, stay or
// are shown are those of the short lists below, each with its reason.

let tenant: Tenant
beforeAll(async () => {
  tenant = await governedTenant(codePolicy('redact', { uninspectable: { tool_result: 'allow' } }))
  await entitle(gateway(), tenant.base, tenant.userId)
})

const SCHEMA = {
  type: 'object',
  title: '@',
  $id: '@',
  properties: { '@': { type: 'string', description: '@', enum: ['@'], default: '@' } },
}
const ANNOTATION = { type: 'url_citation', url: '@', title: '@', id: '@', name: '@' }

const CHAT: Json = {
  messages: [
    { role: 'system', content: '@', name: '@', id: '@', vendor: '@' },
    {
      role: 'user',
      name: '@',
      id: '@',
      content: [
        {
          type: 'text',
          text: 'MARK @',
          id: '@',
          name: '@',
          title: '@',
          tool_use_id: '@',
          vendor: { id: '@', type: '@' },
        },
        { type: 'image_url', image_url: { url: 'https://example.com/@.png', detail: '@', id: '@' }, id: '@' },
      ],
    },
    {
      role: 'assistant',
      id: '@',
      content: '@',
      refusal: '@',
      reasoning_content: '@',
      tool_calls: [
        {
          id: '@',
          type: 'function',
          function: { name: 'f', arguments: '{"a":"@","@":1}', id: '@' },
          vendor: '@',
        },
      ],
      annotations: [{ type: 'url_citation', url_citation: ANNOTATION }],
    },
    { role: 'tool', tool_call_id: 'CALL', content: '@', name: '@', id: '@' },
    { role: 'user', content: '@' },
  ],
  tools: [
    {
      type: 'function',
      id: '@',
      function: { name: 'f', description: '@', id: '@', parameters: SCHEMA, vendor: '@' },
      vendor: { id: '@' },
    },
  ],
  response_format: { type: 'json_schema', json_schema: { name: '@', description: '@', schema: SCHEMA } },
  prediction: { type: 'content', content: [{ type: 'text', text: '@', id: '@' }] },
  user: '@',
  safety_identifier: '@',
  prompt_cache_key: '@',
  stop: ['@'],
  metadata: { '@': '@', user_id: '@' },
  litellm_metadata: { a: '@' },
  vendor: { id: '@', type: '@', model: '@', '@': '@' },
}

const MESSAGES: Json = {
  system: [{ type: 'text', text: '@', id: '@', name: '@' }],
  messages: [
    {
      role: 'user',
      id: '@',
      name: '@',
      content: [
        {
          type: 'text',
          text: 'MARK @',
          name: '@',
          title: '@',
          citations: [{ type: 'char_location', cited_text: '@', document_title: '@', id: '@' }],
        },
        {
          type: 'document',
          title: '@',
          context: '@',
          source: { type: 'text', media_type: 'text/plain', data: '@' },
        },
        { type: 'image', source: { type: 'url', url: 'https://example.com/@.png' } },
        { type: 'search_result', source: '@', title: '@', content: [{ type: 'text', text: '@' }] },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: '@' },
        {
          type: 'tool_use',
          id: '@',
          name: 'f',
          input: { a: '@', '@': '@', id: '@', type: '@', n: [{ role: '@' }] },
        },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'CALL', content: [{ type: 'text', text: '@' }] },
        { type: 'text', text: '@' },
      ],
    },
  ],
  tools: [{ name: 'f', description: '@', input_schema: SCHEMA, vendor: '@' }],
  stop_sequences: ['@'],
  metadata: { user_id: '@' },
  output_format: { type: 'json_schema', schema: SCHEMA },
  litellm_metadata: { a: '@' },
  vendor: { id: '@', type: '@' },
  '@': 1,
}

const HEADERS = [
  'user-agent',
  'x-request-id',
  'idempotency-key',
  'provider-version',
  'anthropic-version',
  'anthropic-beta',
  'openai-beta',
  'x-claude-code-session-id',
  'openai-organization',
  'traceparent',
  'referer',
  'cookie',
  'x-forwarded-for',
  'x-custom',
]

/** Ids that pair a call with its result have to arrive as they are, and so do the names of members. */
describe.each([
  [
    CHAT_WAY,
    CHAT,
    [
      'messages.2.tool_calls.0.id',
      'response_format.json_schema.schema.properties.@ (name)',
      'tools.0.function.parameters.properties.@ (name)',
      'vendor.@ (name)',
    ],
  ],
  [
    MESSAGES_WAY,
    MESSAGES,
    [
      '@ (name)',
      'messages.1.content.1.id',
      'output_format.schema.properties.@ (name)',
      'tools.0.input_schema.properties.@ (name)',
    ],
  ],
  [
    MESSAGES_TO_CHAT,
    MESSAGES,
    [
      'messages.1.content.1.id',
      'output_format.schema.properties.@ (name)',
      'tools.0.input_schema.properties.@ (name)',
    ],
  ],
] as const)('a request of $name', (way, template, unchanged) => {
  it('has no text that is not inspected', async () => {
    const values = new PlacedValues()
    const mark = marker()
    const filled = JSON.stringify(values.fill(template)).replace('MARK', mark)
    const callId = /"id":"(KX-[^"]*)","(?:type":"function|name":"f)"/.exec(filled)?.[1] ?? ''
    const headers = Object.fromEntries(HEADERS.map((name) => [name, values.at(`header ${name}`)]))
    const answer = await send(`${gateway().baseUrl}${way.route.path}?beta=${values.at('query')}`, {
      method: 'POST',
      headers: { ...headers, ...bearer(tenant.key) },
      body: JSON.stringify({
        ...way.route.request('', { model: way.model }),
        ...JSON.parse(filled.replace('CALL', callId)),
      }),
    })
    const { body, headers: sent } = await seenRequest(gateway(), mark)
    expect(values.in(body)).toEqual(unchanged)
    expect(values.in(JSON.stringify(sent))).toEqual([])
    expect(values.in(answer.rawHeaders.join())).toEqual([])
    await recordOf(tenant, answer)
    expect(await values.inDatabase()).toEqual([])
  })
})

const part = (type: string, more: Json) => ({
  type,
  id: '@',
  name: '@',
  title: '@',
  filename: '@',
  signature: '@',
  detail: '@',
  vendor: { id: '@', type: '@' },
  '@': 1,
  ...more,
})
const item = (type: string, more: Json): Json => ({
  type,
  id: '@',
  vendor: { id: '@', type: '@' },
  origin: '@',
  signature: '@',
  redacted: '@',
  object: '@',
  '@': '@',
  status: 'completed',
  ...more,
})

const RESPONSE: Json = {
  instructions: '@',
  metadata: { id: '@', type: '@', '@': '@' },
  prompt_cache_key: '@',
  user: '@',
  safety_identifier: '@',
  vendor: { id: '@', type: '@', model: '@', role: '@' },
  text: {
    format: {
      type: 'json_schema',
      name: '@',
      schema: {
        type: 'object',
        title: '@',
        properties: { a: { type: 'string', description: '@' } },
        required: ['a'],
        additionalProperties: false,
      },
    },
    verbosity: '@',
  },
  reasoning: { effort: 'low', summary: '@', vendor: '@' },
  include: ['@'],
  tools: [
    {
      type: 'function',
      name: 'f',
      description: '@',
      parameters: { type: 'object', title: '@', $id: '@' },
      id: '@',
      vendor: '@',
    },
    {
      type: 'custom',
      name: 'g',
      description: '@',
      format: { type: 'grammar', syntax: '@', definition: '@' },
    },
  ],
  input: [
    item('message', { role: 'developer', content: '@', name: '@', phase: '@' }),
    item('message', {
      role: 'user',
      content: [
        part('input_text', { text: '@' }),
        part('input_text', { text: 'x', annotations: [ANNOTATION] }),
      ],
    }),
    item('message', {
      role: 'assistant',
      content: [
        part('output_text', { text: '@', logprobs: [{ token: '@' }], annotations: [ANNOTATION] }),
        part('refusal', { refusal: '@' }),
      ],
    }),
    item('reasoning', {
      summary: [part('summary_text', { text: '@' })],
      content: [part('reasoning_text', { text: '@' })],
      encrypted_content: '@',
    }),
    item('function_call', { call_id: '@', name: 'f', namespace: '@', arguments: '{"a":"@","@":1}' }),
    item('function_call_output', { call_id: 'CALL', output: [part('input_text', { text: '@' })] }),
    item('custom_tool_call', { call_id: 'd', name: 'g', input: '@' }),
    item('custom_tool_call_output', { call_id: 'd', output: '@' }),
    item('mcp_call', {
      name: '@',
      server_label: '@',
      arguments: '{"a":"@"}',
      output: '@',
      error: null,
      approval_request_id: '@',
    }),
    item('mcp_list_tools', {
      server_label: '@',
      tools: [{ name: '@', description: '@', input_schema: { type: '@' }, annotations: { title: '@' } }],
      error: '@',
    }),
    item('mcp_approval_request', { name: '@', server_label: '@', arguments: '{"a":"@"}' }),
    item('web_search_call', {
      action: {
        type: 'search',
        query: '@',
        queries: ['@'],
        sources: [{ type: 'url', url: '@', id: '@' }],
        id: '@',
      },
      results: [{ title: '@', url: '@', text: '@' }],
    }),
    item('file_search_call', {
      queries: ['@'],
      results: [{ filename: '@', text: '@', attributes: { id: '@' } }],
    }),
    item('computer_call', {
      action: { type: 'type', text: '@' },
      pending_safety_checks: [{ id: '@', code: '@', message: '@' }],
    }),
    item('computer_call_output', {
      output: { type: 'computer_screenshot', image_url: 'https://@.example/x.png' },
      acknowledged_safety_checks: [{ id: '@', code: '@' }],
    }),
    item('code_interpreter_call', {
      code: '@',
      outputs: [
        { type: 'logs', logs: '@' },
        { type: 'image', url: '@' },
      ],
    }),
    item('image_generation_call', { result: '@', revised_prompt: '@' }),
    item('local_shell_call', {
      action: { type: 'exec', command: ['@'], env: { '@': '@' }, user: '@', working_directory: '@' },
    }),
    item('local_shell_call_output', { output: '@' }),
    item('shell_call', {
      call_id: 's',
      action: { commands: ['@'] },
      output: [{ stdout: '@', stderr: '@', outcome: { type: 'exit', exit_code: 0 }, created_by: '@' }],
      environment: { type: '@' },
    }),
    item('shell_call_output', { call_id: 's', output: [{ stdout: '@', outcome: { type: '@' } }] }),
    item('apply_patch_call', { operation: { type: 'create_file', path: '@', diff: '@' } }),
    item('apply_patch_call_output', { output: '@' }),
    item('tool_search_call', { execution: '@', arguments: { a: '@' } }),
    item('tool_search_output', { tools: [{ name: '@', description: '@' }] }),
    item('additional_tools', {
      role: 'developer',
      tools: [{ type: 'function', name: '@', description: '@' }],
    }),
    item('configuration_update', { instructions: '@' }),
    item('program', { code: '@' }),
    item('program_output', { output: '@' }),
    item('message', { role: 'user', content: 'MARK' }),
  ],
}
/** Ids that a later item names: of a call, by its output; of a request for approval, by its answer. */
const CALL_ID = 'input.4.call_id'
const NAMED_IDS = [CALL_ID, 'input.8.approval_request_id']

describe.each(CORNER_WAYS)('a request of responses (%s)', (_, { model, stream }) => {
  it('has no text that is not inspected, sent, stored or shown', async () => {
    const values = new PlacedValues()
    const mark = marker()
    const filled = JSON.stringify(values.fill(RESPONSE)).replace('MARK', mark)
    const callId = /"call_id":"(KX-[^"]*)"/.exec(filled)?.[1] ?? ''
    const body = JSON.parse(filled.replace('CALL', callId))
    const answer = await postResponse(tenant.key, { model, stream, ...body })
    expect(answer.status, answer.text).toBe(200)
    expect(values.in(answer.text)).toEqual([])
    expect(values.in((await seenRequest(gateway(), mark)).body)).toEqual([CALL_ID])
    const [id, conversation] = [/"(resp_\w+)"/, /"(conv_\w+)"/].map((form) => form.exec(answer.text)?.[1])
    for (const [path, shown] of [
      [`responses/${id}`, []],
      [`responses/${id}?stream=true`, []],
      [`responses/${id}/input_items?limit=100`, NAMED_IDS],
      [`conversations/${conversation}/items?limit=100`, NAMED_IDS],
    ] as const) {
      const read = await ask(tenant.key, 'GET', `/v1/${path}`)
      expect([read.status, values.in(read.text)], path).toEqual([200, shown])
    }
    await recordOf(tenant, answer)
    expect(await values.inDatabase()).toEqual(NAMED_IDS.map((id) => `response_items: ${id}`))
  })
})

it('an id of a call that has not the form of one is a text', async () => {
  const values = new PlacedValues()
  const [mark, callId] = [marker(), `the call of ${values.at('id')}`]
  const input = [
    { type: 'function_call', call_id: callId, name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: callId, output: mark },
  ]
  const answer = await postResponse(tenant.key, { model: CHAT_WAY.model, input })
  expect(answer.status, answer.text).toBe(200)
  const { body } = await seenRequest(gateway(), mark)
  expect(body.split('the call of [REDACTED:CODE]')).toHaveLength(3)
  expect(values.in(body)).toEqual([])
  expect(await values.inDatabase()).toEqual([])
})

describe('other requests', () => {
  it('for a model or an agent that is not there are recorded without its name', async () => {
    const values = new PlacedValues()
    const models = (name: string) => [values.at(name), `agent/${values.at(name)}`]
    for (const owner of [tenant, await governedTenant(codePolicy('block'))]) {
      for (const { name, route } of [CHAT_WAY, MESSAGES_WAY]) {
        for (const model of models(name)) {
          const body = JSON.stringify(route.request('x', { model }))
          const url = gateway().baseUrl + route.path
          await recordOf(owner, await send(url, { method: 'POST', headers: bearer(owner.key), body }))
        }
      }
      for (const model of models('responses')) await recordOf(owner, await postResponse(owner.key, { model }))
    }
    expect(await values.inDatabase()).toEqual([])
  })

  it('for missing resources are recorded without the id', async () => {
    const values = new PlacedValues()
    for (const [method, path] of [
      ['GET', 'models/@'],
      ['GET', 'responses/@?stream=@'],
      ['GET', 'responses/@/input_items?after=@'],
      ['POST', 'responses/@/cancel'],
      ['GET', 'conversations/@/items?after=@'],
      ['GET', 'conversations/@/items/@'],
      ['GET', 'agents/@'],
      ['GET', 'agents/list?search=@'],
      ['GET', 'runs/@'],
      ['POST', 'runs/@/restart'],
      ['GET', 'runs/@/evals'],
      ['POST', 'integrations/connections/@/default'],
      ['GET', 'nothing/@'],
      ['@', 'models'],
    ] as const) {
      const at = `${method} ${path}`
      await ask(tenant.key, String(values.fill(method, at)), `/v1/${values.fill(path, at)}`)
    }
    await flush(gateway(), tenant)
    expect(await values.inDatabase()).toEqual([])
  })

  it('of the MCP endpoint', async () => {
    const values = new PlacedValues()
    const server = await startMcpServer(gateway(), { tools: [mcpTool('echo')] })
    const { slug } = await createIntegration(gateway(), tenant, { url: server.url })
    const call = {
      arguments: {
        text: '@',
        '@': '@',
        n: [{ id: '@', type: '@' }],
        name: '@',
        query: '@',
        integration: '@',
      },
      _meta: { progressToken: '@', '@': '@' },
    }
    for (const [method, name] of [
      ...[`${slug}_echo`, `${slug}_@`, '@', 'platform_@'].map((tool) => ['tools/call', tool]),
      ...['search_tools', 'execute_tool', 'start_run'].map((tool) => ['tools/call', `platform_${tool}`]),
      ['@', 'x'],
      ['initialize', 'x'],
    ] as const) {
      const params = values.body({
        name,
        ...call,
        clientInfo: { name: '@', version: '@' },
        protocolVersion: '@',
      })
      const answer = await sendMcp(gateway(), tenant.key, String(values.fill(method, 'method')), params)
      await recordOf(tenant, answer)
    }
    expect(values.in(JSON.stringify(await server.requests()))).toEqual([])
    expect(await values.inDatabase()).toEqual([])
  })

  it('of runs of agents', async () => {
    const values = new PlacedValues()
    const script = await inTurn(gateway(), answered('chat', 'Done.', false))
    const agentId = await createAgent(tenant, {
      ...definitionOf([{ instructions: `${script} Greet {{who}}.` }]),
      inputs: [{ name: 'who', required: true }],
    })
    const { runId } = await trigger(tenant, agentId, {
      who: values.at('input'),
      [values.at('name')]: values.at('undeclared'),
    })
    await endedRun(tenant, runId)
    const metadata = values.body({ '@': '@', id: '@' })
    const body = JSON.stringify({ model: `agent/${agentId}`, input: values.at('text'), metadata })
    const answer = await ask(tenant.key, 'POST', '/v1/responses', { body })
    expect([answer.status, values.in(answer.text)], answer.text).toEqual([200, []])
    expect(await values.inDatabase()).toEqual([])
  })
})
