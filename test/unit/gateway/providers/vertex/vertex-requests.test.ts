import { generateKeyPairSync } from 'node:crypto'
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk'
import { GoogleGenAI } from '@google/genai'
import { JWT } from 'google-auth-library'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { credentialOf } from '../../../../../src/gateway/providers/credential.ts'
import { vertex } from '../../../../../src/gateway/providers/vertex/vertex.ts'
import { bodyOf, CONVERSATION, clientFetch, sentByGateway } from '../sent-by-gateway.ts'
import type { Sent } from '../upstream-recorder.ts'

// The request of the gateway beside that of the vendor's own clients for the same conversation.

afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2_048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})
const accountOf = (email: string) => ({
  type: 'service_account',
  client_email: email,
  private_key: privateKey,
  project_id: 'my-project',
})

const NOW = Date.parse('2026-11-23T12:00:00Z')
let accounts = 0

/** @returns the exchange and the request of the gateway; each call has an account of its own, as tokens are kept. */
async function sendByGateway(model: string, request: object, more = {}, location = 'us-east5') {
  const parts = { ...accountOf(`account-${++accounts}@my-project.iam.gserviceaccount.com`), location }
  const { parts: checked } = credentialOf(vertex.credential, parts)
  vertex.check?.(checked)
  const transport = vertex.connect(vertex.defaultBaseUrl?.(checked) ?? '', checked, { allowedMembers: [] })
  const [exchange, sent] = await sentByGateway(transport, model, request, more)
  return { exchange: exchange as Sent, sent: sent as Sent, parts }
}

async function sendByClient(model: string, request: object, { stream = false, headers = {} } = {}) {
  const { fetch, sent } = clientFetch()
  const client = new AnthropicVertex({
    region: 'us-east5',
    projectId: 'my-project',
    maxRetries: 0,
    authClient: { getRequestHeaders: async () => new Headers({ authorization: 'Bearer ya29.x' }) },
    fetch,
  } as object)
  const call = client.messages.create({ model, ...request, stream } as never, { headers })
  await Promise.resolve(call).catch(() => {})
  return sent[0] as Sent
}

describe('Claude on Vertex beside the official client', () => {
  it.each([
    ['claude-sonnet-4-5@20250929', false],
    ['claude-sonnet-4-5@20250929', true],
    ['claude-opus-4-8', true],
  ])('is sent to the same address with the same body and headers: %s, streamed %s', async (model, stream) => {
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07' }
    const { sent } = await sendByGateway(model, CONVERSATION, { stream, headers })
    const official = await sendByClient(model, CONVERSATION, { stream, headers })
    expect(sent.address).toBe(official.address)
    // The version is pinned: later ones refuse sampling members.
    const { anthropic_version: _, ...body } = bodyOf(official)
    const { stream: own, ...rest } = bodyOf(sent)
    expect({ ...rest, stream: own }).toEqual({ ...body, stream, anthropic_version: 'vertex-2023-10-16' })
    for (const name of ['authorization', 'anthropic-beta', 'content-type']) {
      expect(sent.headers[name]).toBe(official.headers[name])
    }
    expect(Object.keys(sent.headers)).not.toContain('anthropic-version')
  })

  it('has known betas alone in its header', async () => {
    const headers = { 'provider-beta': 'claude-code-20250219,web-search-2025-03-05' }
    const { sent } = await sendByGateway('claude-opus-4-8', CONVERSATION, { headers })
    expect(sent.headers['anthropic-beta']).toBe('web-search-2025-03-05')
  })

  it.each([
    ['global', 'https://aiplatform.googleapis.com'],
    ['us', 'https://aiplatform.us.rep.googleapis.com'],
    ['eu', 'https://aiplatform.eu.rep.googleapis.com'],
    ['europe-west1', 'https://europe-west1-aiplatform.googleapis.com'],
  ])('has the location %s in host and path', async (location, host) => {
    const { sent } = await sendByGateway('claude-opus-4-8', CONVERSATION, {}, location)
    expect(String(sent.address)).toMatch(`${host}/v1/projects/my-project/locations/${location}/`)
  })
})

describe('the token of a service account', () => {
  it('is asked for with the assertion of the official library', async () => {
    vi.useFakeTimers({ now: NOW, toFake: ['Date'] })
    const { exchange, parts } = await sendByGateway('claude-opus-4-8', CONVERSATION)
    const asked: Array<{ url: unknown; data: unknown }> = []
    const scopes = ['https://www.googleapis.com/auth/cloud-platform']
    const client = new JWT({ email: parts.client_email, key: privateKey, scopes })
    const transporter = {
      request: async ({ url, data }: { url: unknown; data: unknown }) => {
        asked.push({ url, data })
        return { data: { access_token: 'ya29.x', expires_in: 3_599 } }
      },
    }
    Object.assign(client, { transporter })
    Object.assign((client as unknown as { gtoken?: object }).gtoken ?? {}, { transporter })
    await client.authorize()
    expect(exchange.address).toBe('https://oauth2.googleapis.com/token')
    const own = new URLSearchParams(String(exchange.body))
    const official = new URLSearchParams(asked[0]?.data as Record<string, string>)
    expect(own.get('grant_type')).toBe(official.get('grant_type'))
    const claimsOf = (form: URLSearchParams) =>
      JSON.parse(Buffer.from(form.get('assertion')?.split('.')[1] ?? '', 'base64url').toString())
    expect(claimsOf(own)).toEqual(claimsOf(official))
  })

  it.each([
    ['private_key', { private_key: 'no key' }],
    ['project_id', { project_id: '..' }],
    ['token_uri', { token_uri: 'https://attacker.example/token' }],
    ['token_uri', { token_uri: 'https://googleapis.com.attacker.example/token' }],
    ['location', { location: 'us/../..' }],
  ])('is not asked for with another %s', (name, more) => {
    const { parts } = credentialOf(vertex.credential, { ...accountOf('a@b.c'), ...more })
    expect(() => vertex.check?.(parts)).toThrow(`\`${name}\``)
  })

  it('takes a key whose line breaks are escaped', () => {
    const escaped = { ...accountOf('a@b.c'), private_key: privateKey.replaceAll('\n', '\\n') }
    expect(() => vertex.check?.(credentialOf(vertex.credential, escaped).parts)).not.toThrow()
  })
})

describe('other models on Vertex', () => {
  const parts = { ...accountOf('other@my-project.iam.gserviceaccount.com'), location: 'global' }
  const transport = vertex.connect('https://aiplatform.googleapis.com', parts, { allowedMembers: [] })
  const place = 'https://aiplatform.googleapis.com/v1/projects/my-project/locations/global'
  const target = { callerHeaders: null, stream: false }
  const urlOf = (
    operation: 'generate_content' | 'chat_completions' | 'input_tokens',
    model: string,
    stream = false,
  ) => transport.prepare({ ...target, operation, upstreamModel: model, stream }, new Uint8Array()).url

  it('are Gemini over its own protocol, and those of publishers over chat completions', () => {
    const gemini = `${place}/publishers/google/models/gemini-3-pro-preview`
    expect(urlOf('generate_content', 'gemini-3-pro-preview')).toBe(`${gemini}:generateContent`)
    expect(urlOf('generate_content', 'gemini-3-pro-preview', true)).toBe(
      `${gemini}:streamGenerateContent?alt=sse`,
    )
    expect(urlOf('input_tokens', 'gemini-3-pro-preview')).toBe(`${gemini}:countTokens`)
    expect(urlOf('chat_completions', 'meta/llama-4')).toBe(`${place}/endpoints/openapi/chat/completions`)
    const speaks = (model: string) =>
      (['messages', 'generate_content', 'chat_completions'] as const).filter((each) =>
        transport.speaks(each, model),
      )
    expect(['claude-opus-4-8', 'gemini-2.5-flash', 'meta/llama-4'].map(speaks)).toEqual([
      ['messages'],
      ['generate_content'],
      ['chat_completions'],
    ])
    expect(transport.withheld?.('gemini-2.5-flash')).toEqual([])
    // https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/function-calling has none.
    expect(transport.omitsCallIds).toBe(true)
  })

  it('are called where the official client calls them', async () => {
    const { fetch, sent } = clientFetch()
    vi.stubGlobal('fetch', fetch)
    const client = new GoogleGenAI({
      vertexai: true,
      project: 'my-project',
      location: 'global',
      apiVersion: 'v1',
      googleAuthOptions: { authClient: { getRequestHeaders: async () => new Headers() } as never },
    })
    const request = { model: 'gemini-3-pro-preview', contents: 'Hi' }
    await client.models.generateContent(request).catch(() => {})
    await client.models.countTokens(request).catch(() => {})
    expect(sent.map(({ address }) => address)).toEqual([
      urlOf('generate_content', request.model),
      urlOf('input_tokens', request.model),
    ])
  })
})
