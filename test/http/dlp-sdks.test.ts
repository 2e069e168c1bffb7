import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import {
  anthropicClients,
  CHAT_MODEL,
  failureOf,
  MESSAGES_MODEL,
  openAiClients,
  openAiUrl,
  userMessage,
  watchedFetch,
} from '../harness/sdk-clients.ts'
import type { Tenant } from '../harness/tenant.ts'
import { codePolicy, governedTenant, someCode } from './support/dlp.ts'
import { answerScript, callTool, say, think } from './support/dlp-answers.ts'

let redacting: Tenant
let blocking: Tenant
const HIDDEN = '[REDACTED:CODE]'

beforeAll(async () => {
  redacting = await governedTenant(codePolicy('redact'))
  blocking = await governedTenant(codePolicy('block'))
})

const parts = (code: string) => [
  think(`so ${code}`),
  say(`it is ${code}`),
  callTool('find', { code, n: 1 }),
  callTool('tell', { to: [code] }),
]
const MODELS = [
  [CHAT_MODEL, 'chat'],
  [MESSAGES_MODEL, 'messages'],
] as const

describe.each(openAiClients)('%s', (_, Client) => {
  const clientOf = ({ key }: Tenant, fetch = globalThis.fetch) =>
    new Client({ apiKey: key, baseURL: openAiUrl(), fetch })

  it.each(MODELS)('puts the edited answer of %s together', async (model, upstream) => {
    const script = await answerScript(upstream, parts(someCode()), [3])
    const request = { model, messages: userMessage(script), max_tokens: 100 }
    const streamed = await clientOf(redacting)
      .chat.completions.stream({ ...request, stream_options: { include_usage: true } })
      .finalChatCompletion()
    const whole = await clientOf(redacting).chat.completions.create(request)
    for (const { choices, usage } of [streamed, whole]) {
      const [choice] = choices
      expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { content: `it is ${HIDDEN}` } })
      const calls = choice?.message.tool_calls as Array<{ function: { name: string; arguments: string } }>
      expect(calls.map(({ function: called }) => [called.name, JSON.parse(called.arguments)])).toEqual([
        ['find', { code: HIDDEN, n: 1 }],
        ['tell', { to: [HIDDEN] }],
      ])
      expect(usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 5 })
    }
  })

  it('does not repeat what is blocked', async () => {
    const code = someCode()
    const { fetch, attempts } = watchedFetch()
    const failure = await failureOf(
      clientOf(blocking, fetch).chat.completions.create({ model: CHAT_MODEL, messages: userMessage(code) }),
    )
    expect(failure).toMatchObject({ status: 400, code: 'dlp_blocked' })
    expect(attempts).toHaveLength(1)
    const script = await answerScript('chat', parts(code), [3])
    const stream = clientOf(blocking).chat.completions.stream({
      model: CHAT_MODEL,
      messages: userMessage(script),
    })
    const broken = await failureOf(stream.finalChatCompletion())
    expect(String(broken.message)).toContain('data-loss prevention')
    expect(String(broken.message)).not.toContain(code)
  })
})

describe.each(anthropicClients)('%s', (_, Client) => {
  const clientOf = ({ key }: Tenant, fetch = globalThis.fetch) =>
    new Client({ apiKey: key, baseURL: gateway().baseUrl, fetch })

  it.each(MODELS)('puts the edited answer of %s together', async (model, upstream) => {
    const script = await answerScript(upstream, parts(someCode()), [3])
    const request = { model, max_tokens: 100, messages: [{ role: 'user' as const, content: script }] }
    const streamed = await clientOf(redacting).messages.stream(request).finalMessage()
    const whole = await clientOf(redacting).messages.create(request)
    for (const { content, usage, stop_reason } of [streamed, whole]) {
      expect(content).toMatchObject([
        { type: 'thinking', thinking: `so ${HIDDEN}`, signature: '' },
        { type: 'text', text: `it is ${HIDDEN}` },
        { type: 'tool_use', name: 'find', input: { code: HIDDEN, n: 1 } },
        { type: 'tool_use', name: 'tell', input: { to: [HIDDEN] } },
      ])
      expect(stop_reason).toBe('tool_use')
      expect(usage).toMatchObject({ output_tokens: 5 })
    }
  })

  it('does not repeat what is blocked', async () => {
    const code = someCode()
    const { fetch, attempts } = watchedFetch()
    const request = { model: MESSAGES_MODEL, max_tokens: 100 }
    const failure = await failureOf(
      clientOf(blocking, fetch).messages.create({ ...request, messages: [{ role: 'user', content: code }] }),
    )
    expect(failure).toMatchObject({ status: 400, error: { error: { type: 'invalid_request_error' } } })
    expect(attempts).toHaveLength(1)
    const script = await answerScript('messages', parts(code), [3])
    const stream = clientOf(blocking).messages.stream({
      ...request,
      messages: [{ role: 'user', content: script }],
    })
    const broken = await failureOf(stream.finalMessage())
    expect(String(broken.message)).toContain('data-loss prevention')
    expect(String(broken.message)).not.toContain(code)
  })
})
