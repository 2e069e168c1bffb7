import { AzureOpenAI } from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { SCRIPTED_AZURE } from '../../scripts/local/model-upstream/vendors/azure/azure.ts'
import { MAKERS, type MakerKind } from '../../src/gateway/providers/makers/makers.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import {
  answered,
  callRouted,
  createRoutedModel,
  failed,
  inTurn,
  PRICES,
  recordedCall,
  routedRequest,
} from '../harness/routed-model.ts'
import {
  failureOf,
  newestAnthropic,
  newestOpenAi,
  openAiUrl,
  SCRIPTED_TEXT,
  textOf,
  userMessage,
} from '../harness/sdk-clients.ts'
import { jsonOf } from '../harness/send.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest } from '../harness/upstream.ts'

// Makers over chat completions, and Azure OpenAI, by the management API and official clients.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const openai = () => new newestOpenAi({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
const anthropic = () => new newestAnthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })
const KINDS = Object.keys(MAKERS) as MakerKind[]

describe.each(KINDS)('a provider of the kind %s', (kind) => {
  it('is made with a key alone, unless it is a server of one’s own', async () => {
    const { ask } = administrator(gateway())
    const made = ask('POST', '/providers', { name: uniqueName('maker'), kind, credential: 'sk-one' })
    const { baseUrl } = MAKERS[kind]
    if (baseUrl.startsWith('http:')) await expect(made).rejects.toThrow(/private|https|internal/)
    else expect(await made).toMatchObject({ kind, base_url: baseUrl })
  })

  it('answers chat completions and messages, whole and streamed', async () => {
    const model = await createRoutedModel(gateway(), [kind])
    for (const stream of [false, true]) {
      for (const dialect of ['chat', 'messages'] as const) {
        const script = await inTurn(gateway(), answered('chat', 'Hello.', stream))
        const request = routedRequest(dialect, model, script, { stream })
        const answer = await callRouted(gateway(), tenant, request)
        expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Hello.')])
        const { record } = await recordedCall(gateway(), tenant, model, answer)
        expect(record.usage).toMatchObject({ input: 11, output: 7 })
      }
    }
  })
})

describe('members that a maker does not take', () => {
  it('are named to the caller, and are sent once the operator allows them', async () => {
    const model = await createRoutedModel(gateway(), ['mistral'])
    const ask = async () => {
      const script = await inTurn(gateway(), answered('chat', 'Hello.', true))
      const members = { max_tokens: undefined, max_completion_tokens: 50, store: false, stream: true }
      const answer = await callRouted(gateway(), tenant, routedRequest('chat', model, script, members))
      expect(answer.text).toContain('Hello.')
      const { body } = await seenRequest(gateway(), script)
      return { dropped: answer.headers['x-headgate-dropped'], sent: Object.keys(JSON.parse(body)).sort() }
    }
    const sent = ['max_tokens', 'messages', 'model', 'stream']
    expect(await ask()).toEqual({ dropped: 'store', sent })
    const { ask: manage } = administrator(gateway())
    const { routes } = await manage<{ routes: Array<{ provider_id: string }> }>('GET', `/models/${model.id}`)
    await manage('PUT', `/providers/${routes[0]?.provider_id}`, { allowed_members: ['store'] })
    expect(await ask()).toEqual({ dropped: undefined, sent: [...sent, 'store'].sort() })
  })
})

describe('errors of makers', () => {
  it('with status 200, wrapped in a list, or about a missing model, move on to the next route', async () => {
    const under200 = { error: { code: 502, message: 'Provider returned error', metadata: {} } }
    const overloaded = [{ error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE' } }]
    const faults = [
      failed(200, JSON.stringify(under200)),
      failed(503, JSON.stringify(overloaded)),
      failed(404, '{"error":{"code":"DeploymentNotFound","message":"x"}}'),
      failed(400, '{"error":{"code":"tool_use_failed","message":"x"}}'),
    ]
    for (const fault of faults) {
      const model = await createRoutedModel(gateway(), ['openrouter', 'gemini-openai'])
      const script = await inTurn(gateway(), fault, answered('chat', 'From the second.', false))
      const answer = await callRouted(gateway(), tenant, routedRequest('chat', model, script))
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('From the second.')])
      const { attempts } = await recordedCall(gateway(), tenant, model, answer)
      expect(attempts.at(-1)).toBe('1 200')
    }
  })

  it('reach callers of messages with their text, and callers of chat completions unchanged', async () => {
    const model = await createRoutedModel(gateway(), ['mistral'])
    const body = '{"object":"error","message":{"detail":[{"loc":["body","n"],"msg":"Too many"}]},"code":1}'
    const script = await inTurn(gateway(), failed(422, body), failed(422, body))
    const inMessages = await callRouted(gateway(), tenant, routedRequest('messages', model, script))
    expect(jsonOf(inMessages)).toMatchObject({
      error: { type: 'invalid_request_error', message: 'n: Too many' },
    })
    const inChat = await callRouted(gateway(), tenant, routedRequest('chat', model, script))
    expect([inChat.status, inChat.text]).toEqual([422, body])
  })

  it('say in the body when to come back', async () => {
    const model = await createRoutedModel(gateway(), ['gemini-openai'])
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.07s' }]
    const body = JSON.stringify([{ error: { code: 429, message: 'Quota.', details } }])
    const script = await inTurn(gateway(), failed(429, body))
    const answer = await callRouted(gateway(), tenant, routedRequest('chat', model, script))
    expect([answer.status, answer.headers['retry-after'], answer.text]).toEqual([429, '35', body])
  })
})

describe('the scripted Azure', () => {
  it('is one that the official client reads', async () => {
    const client = new AzureOpenAI({
      endpoint: `${gateway().standIns.modelUpstream}/vendors/azure`,
      apiKey: SCRIPTED_AZURE.key,
      apiVersion: '2024-10-21',
      maxRetries: 0,
    })
    const request = { model: SCRIPTED_AZURE.deployment, messages: userMessage('script:canned') }
    const whole = await client.chat.completions.create(request)
    expect(whole.choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    const { choices } = await client.chat.completions.stream(request).finalChatCompletion()
    expect(choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    const missing = await failureOf(client.chat.completions.create({ ...request, model: 'another' }))
    expect([missing.status, missing.code]).toEqual([404, 'DeploymentNotFound'])
  })
})

describe.each([
  ['v1', ''],
  ['dated', '/openai'],
])('Azure OpenAI, %s', (_, path) => {
  let model: string
  beforeAll(async () => {
    model = await azureModel(path)
  })

  it('answers chat completions; chunks of its filters pass', async () => {
    const request = { model, messages: userMessage('script:canned') }
    const { data, response } = await openai().chat.completions.create(request).withResponse()
    expect(data.choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    expect(JSON.stringify(data)).toContain('prompt_filter_results')
    const { record } = await auditEntryOf(gateway(), tenant, response.headers.get('x-request-id'))
    expect(record.usage).toMatchObject({ output: data.usage?.completion_tokens })

    const stream = openai().chat.completions.stream({ ...request, stream_options: { include_usage: true } })
    const chunks: string[] = []
    stream.on('chunk', (chunk) => chunks.push(JSON.stringify(chunk)))
    const { choices, usage } = await stream.finalChatCompletion()
    expect([choices[0]?.message.content, choices[0]?.finish_reason]).toEqual([SCRIPTED_TEXT, 'stop'])
    expect(usage?.total_tokens).toBeGreaterThan(0)
    expect(chunks[0]).toContain('prompt_filter_results')
    expect(chunks.at(-1)).toContain('content_filter_offsets')
  })

  it('answers messages and responses; chunks of its filters are passed over', async () => {
    const ask = { model, max_tokens: 100, messages: [{ role: 'user' as const, content: 'script:canned' }] }
    const whole = await anthropic().messages.create(ask)
    expect([whole.model, textOf(whole)]).toEqual([model, SCRIPTED_TEXT])
    const streamed = await anthropic().messages.stream(ask).finalMessage()
    expect([streamed.model, textOf(streamed), streamed.stop_reason]).toEqual([
      model,
      SCRIPTED_TEXT,
      'end_turn',
    ])
    const response = await openai().responses.stream({ model, input: 'script:canned' }).finalResponse()
    expect(response.output_text).toBe(SCRIPTED_TEXT)
  })

  it('refuses filtered content, which is no refusal of the gateway', async () => {
    const content = `azure-filtered ${marker()}`
    const chat = await failureOf(openai().chat.completions.create({ model, messages: userMessage(content) }))
    expect([chat.status, chat.code]).toEqual([400, 'content_filter'])
    const messages = [{ role: 'user' as const, content }]
    const error = await failureOf(anthropic().messages.create({ model, max_tokens: 100, messages }))
    expect([error.status, error.type]).toEqual([400, 'invalid_request_error'])
    expect(String(error.message)).toContain('management policy')
  })

  it('passes errors on, with the wait', async () => {
    const script = await registerScript(gateway(), failed(429, undefined, { 'retry-after': '7' }))
    const error = await failureOf(openai().chat.completions.create({ model, messages: userMessage(script) }))
    expect(error.status).toBe(429)
    expect((error.headers as Headers).get('retry-after')).toBe('7')
  })
})

/** A model of a deployment of the scripted Azure. @param path of the base URL, which selects the API. */
async function azureModel(path: string): Promise<string> {
  const { ask } = administrator(gateway())
  const id = uniqueName('azure')
  const provider = await ask('POST', '/providers', {
    name: id,
    kind: 'azure-openai',
    base_url: `${gateway().standIns.modelUpstream}/vendors/azure${path}`,
    credential: { api_key: SCRIPTED_AZURE.key },
  })
  await ask('PUT', `/models/${id}`, {
    owned_by: 'azure',
    context_window: 100_000,
    max_output_tokens: 1_000,
    prices: PRICES,
    routes: [{ provider_id: provider.id, upstream_model: SCRIPTED_AZURE.deployment }],
  })
  return id
}
