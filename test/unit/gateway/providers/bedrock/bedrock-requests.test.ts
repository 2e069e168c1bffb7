import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { bedrock } from '../../../../../src/gateway/providers/bedrock/bedrock.ts'
import { counterRequest } from '../../../../../src/gateway/token-count/counters.ts'
import { sentByClient as sentByConverseClient } from '../../translation/requests/converse.ts'
import { bodyOf, CONVERSATION, clientFetch, sentByGateway } from '../sent-by-gateway.ts'
import type { Sent } from '../upstream-recorder.ts'

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

/** @returns the request of the gateway. */
async function sendByGateway(
  model: string,
  request: object,
  credential: Record<string, string>,
  { baseUrl = BASE, ...more }: { stream?: boolean; headers?: Record<string, string>; baseUrl?: string } = {},
): Promise<Sent> {
  const transport = bedrock.connect(baseUrl, credential, { allowedMembers: [] })
  return (await sentByGateway(transport, model, request, more))[0] as Sent
}

/** Sends the same request by the official client. */
async function sendByClient(model: string, request: object, more: object, stream = false): Promise<Sent> {
  const { fetch, sent } = clientFetch()
  const client = new AnthropicBedrock({ awsRegion: 'us-east-1', maxRetries: 0, ...more, fetch } as object)
  await Promise.resolve(client.messages.create({ model, ...request, stream } as never)).catch(() => {})
  return sent[0] as Sent
}

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

describe('other models of Bedrock', () => {
  const transport = bedrock.connect(BASE, KEYS, { allowedMembers: [] })
  const target = (upstreamModel: string, stream = false) => ({
    ...{ operation: 'converse' as const, upstreamModel, stream, callerHeaders: null },
  })

  it.each([
    'us.amazon.nova-pro-v1:0',
    'openai.gpt-oss-120b-1:0',
    'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123',
  ])('are called over Converse, at the address of the official client: %s', async (model) => {
    expect([transport.speaks('converse', model), transport.speaks('messages', model)]).toEqual([true, false])
    const { path } = await sentByConverseClient({ modelId: model, messages: [] })
    expect(transport.prepare(target(model), new Uint8Array()).url).toBe(BASE + path)
    const streamed = transport.prepare(target(model, true), new Uint8Array())
    expect(streamed.url).toBe(`${BASE}${path}-stream`)
    expect(streamed.headers.accept).toBe('application/vnd.amazon.eventstream')
    expect(transport.bodyMembers?.(target(model))).toBeNull()
  })

  it('are no Claude, and have the output formats that the catalogue says', () => {
    const claude = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'
    expect([transport.speaks('converse', claude), transport.speaks('messages', claude)]).toEqual([
      false,
      true,
    ])
    expect(transport.withheld?.(claude)).toEqual(['json_schema'])
    expect(transport.withheld?.('us.amazon.nova-pro-v1:0')).toEqual([])
  })

  it('are counted by Converse, without the region of a profile', () => {
    const model = 'us.amazon.nova-pro-v1:0'
    expect(transport.counter?.(model)).toBe('converse')
    const { url } = transport.prepare({ ...target(model), operation: 'input_tokens' }, new Uint8Array())
    expect(url).toBe(`${BASE}/model/amazon.nova-pro-v1%3A0/count-tokens`)
    const messages = [{ role: 'user', content: 'Hi' }]
    const body = new TextEncoder().encode(
      JSON.stringify({ model: 'm', max_tokens: 5, system: 'S', messages }),
    )
    expect(JSON.parse(new TextDecoder().decode(counterRequest('converse', body, model, null)))).toEqual({
      input: {
        converse: { system: [{ text: 'S' }], messages: [{ role: 'user', content: [{ text: 'Hi' }] }] },
      },
    })
  })

  it('have names that select no other path', () => {
    for (const name of ['.', '..', '']) expect(transport.speaks('converse', name)).toBe(false)
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
