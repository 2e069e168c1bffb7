import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { messages } from '../../../../../src/gateway/protocols/messages.ts'
import { requestEdits } from '../../../../../src/gateway/protocols/request-edits.ts'
import { bedrock } from '../../../../../src/gateway/providers/bedrock/bedrock.ts'
import { sendToProvider } from '../../../../../src/gateway/providers/send-to-provider.ts'
import { applyEdits, joinBytes } from '../../../../../src/lib/byte-edits.ts'
import { drained } from '../../../../../src/lib/slices.ts'
import { recordFetch, requestOf, type Sent } from '../upstream-recorder.ts'

// The request of the gateway beside that of the vendor's own client for the same conversation.

afterEach(() => {
  vi.unstubAllGlobals()
})

const KEYS = {
  region: 'us-east-1',
  access_key_id: 'AKIDEXAMPLE',
  secret_access_key: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
const BASE = 'https://bedrock-runtime.us-east-1.amazonaws.com'

const CONVERSATION = {
  max_tokens: 16,
  system: [{ type: 'text' as const, text: 'Be brief.', cache_control: { type: 'ephemeral' as const } }],
  messages: [
    { role: 'user' as const, content: 'Hi' },
    {
      role: 'assistant' as const,
      content: [
        { type: 'thinking' as const, thinking: 't', signature: 'sig' },
        { type: 'tool_use' as const, id: 'toolu_1', name: 'f', input: { a: 1 } },
      ],
    },
    {
      role: 'user' as const,
      content: [{ type: 'tool_result' as const, tool_use_id: 'toolu_1', content: 'ok' }],
    },
  ],
  tools: [{ name: 'f', input_schema: { type: 'object' as const } }],
  thinking: { type: 'enabled' as const, budget_tokens: 1_024 },
}

/** Sends a messages request as a call of the gateway would. */
async function sendByGateway(
  model: string,
  request: object,
  credential: Record<string, string>,
  { stream = false, headers = {}, baseUrl = BASE } = {},
): Promise<Sent> {
  const sent = recordFetch()
  const transport = bedrock.connect(baseUrl, credential, { allowedMembers: [] })
  const target = {
    operation: 'messages' as const,
    upstreamModel: model,
    stream,
    callerHeaders: new Headers(headers),
  }
  const source = new TextEncoder().encode(JSON.stringify({ model: 'caller-name', ...request, stream }))
  const outline = drained(messages.outline(source))
  const { body: edits } = drained(
    requestEdits(outline, messages, {
      upstreamModel: model,
      capabilities: [],
      bodyMembers: transport.bodyMembers?.(target) ?? null,
    }),
  )
  const body = joinBytes(applyEdits(source, edits).pieces)
  await sendToProvider(transport, requestOf({ ...target, body, now: Date.parse('2026-11-23T12:00:00Z') }))
  return sent[0] as Sent
}

/** Sends the same request by the official client. */
async function sendByClient(model: string, request: object, more: object, stream = false): Promise<Sent> {
  const sent: Sent[] = []
  const client = new AnthropicBedrock({
    awsRegion: 'us-east-1',
    maxRetries: 0,
    ...more,
    fetch: async (address: unknown, init?: RequestInit) => {
      const { method, headers, body, redirect } = init ?? {}
      const names = Object.fromEntries(new Headers(headers))
      sent.push({ address: String(address), method, headers: names, body: body as BodyInit, redirect })
      return Response.json({ content: [] })
    },
  } as ConstructorParameters<typeof AnthropicBedrock>[0])
  const call = client.messages.create({ model, ...request, stream } as never)
  await Promise.resolve(call).catch(() => {})
  return sent[0] as Sent
}

const bodyOf = ({ body }: Sent): Record<string, unknown> =>
  JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body as Uint8Array))

const KEYS_OF_CLIENT = { awsAccessKey: KEYS.access_key_id, awsSecretKey: KEYS.secret_access_key }

describe('Claude on Bedrock beside the official client', () => {
  const models = [
    'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    'global.anthropic.claude-opus-4-8',
    'anthropic.claude-3-haiku-20240307-v1:0',
    'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/claude-abc123',
  ]
  it.each(models.flatMap((model) => [true, false].map((stream) => [model, stream] as const)))(
    'is sent to the same address with the same body: %s, streamed %s',
    async (model, stream) => {
      const own = await sendByGateway(model, CONVERSATION, KEYS, { stream })
      const official = await sendByClient(model, CONVERSATION, KEYS_OF_CLIENT, stream)
      // Both forms of a colon are valid; a slash has to be encoded.
      const decoded = ({ address }: Sent) => String(address).replaceAll('%3A', ':')
      expect(decoded(own)).toBe(decoded(official))
      // The version is pinned: later ones refuse sampling members.
      const { anthropic_version: _, ...body } = bodyOf(official)
      expect(bodyOf(own)).toEqual({ ...body, anthropic_version: 'bedrock-2023-05-31' })
      expect(Object.keys(own.headers).filter((name) => name.startsWith('x-amz'))).toEqual([
        'x-amz-content-sha256',
        'x-amz-date',
      ])
      expect(own.headers.authorization).toMatch(
        /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/20261123\/us-east-1\/bedrock\/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, /,
      )
    },
  )

  it('has known betas in the body, and no header of the caller', async () => {
    const betas = 'context-1m-2025-08-07, interleaved-thinking-2025-05-14'
    const headers = { 'anthropic-beta': `${betas},claude-code-20250219`, 'anthropic-version': '2026-10-21' }
    const own = await sendByGateway(models[0] ?? '', CONVERSATION, KEYS, { headers })
    expect(bodyOf(own).anthropic_beta).toEqual(betas.split(', '))
    expect(Object.keys(own.headers)).not.toContain('anthropic-beta')
    expect(Object.keys(own.headers)).not.toContain('anthropic-version')
  })

  it('takes an API key in place of a signature', async () => {
    const own = await sendByGateway(models[0] ?? '', CONVERSATION, { region: 'us-east-1', api_key: 'key' })
    expect(own.headers.authorization).toBe('Bearer key')
    expect(Object.keys(own.headers).filter((name) => name.startsWith('x-amz'))).toEqual([])
  })

  it('signs a session token', async () => {
    const own = await sendByGateway(models[0] ?? '', CONVERSATION, { ...KEYS, session_token: 'SESSION' })
    expect(own.headers['x-amz-security-token']).toBe('SESSION')
    expect(own.headers.authorization).toContain('x-amz-security-token')
  })

  it('refuses what the platform would answer differently', async () => {
    const format = { type: 'json_schema', schema: { type: 'object' } }
    await expect(sendByGateway('m', { ...CONVERSATION, output_config: { format } }, KEYS)).rejects.toThrow(
      /^output_config.format: /,
    )
    await expect(sendByGateway('m', { ...CONVERSATION, inference_geo: 'us' }, KEYS)).rejects.toThrow(
      /^inference_geo: /,
    )
    const own = await sendByGateway('m', { ...CONVERSATION, output_config: { effort: 'low' } }, KEYS)
    expect(bodyOf(own).output_config).toEqual({ effort: 'low' })
  })
})

describe('the messages API of Bedrock', () => {
  it('gets the body of the protocol, signed for its service', async () => {
    const baseUrl = 'https://bedrock-mantle.us-east-1.api.aws/anthropic'
    const own = await sendByGateway('anthropic.claude-opus-4-8', CONVERSATION, KEYS, { baseUrl })
    expect(own.address).toBe(`${baseUrl}/v1/messages`)
    expect(bodyOf(own)).toEqual({ model: 'anthropic.claude-opus-4-8', ...CONVERSATION, stream: false })
    expect(own.headers['anthropic-version']).toBe('2023-06-01')
    expect(own.headers.authorization).toContain('/us-east-1/bedrock-mantle/aws4_request')
  })
})
