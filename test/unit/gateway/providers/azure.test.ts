import OpenAI, { AzureOpenAI } from 'openai'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { azureOpenAi } from '../../../../src/gateway/providers/azure/azure-openai.ts'
import { credentialOf } from '../../../../src/gateway/providers/credential.ts'
import { ProviderUnreachable, sendToProvider } from '../../../../src/gateway/providers/send-to-provider.ts'
import { clientFetch } from './sent-by-gateway.ts'
import { recordFetch, requestOf, type Sent } from './upstream-recorder.ts'

const RESOURCE = 'https://my-resource.openai.azure.com'
const REQUEST = { model: 'my-deployment', messages: [{ role: 'user' as const, content: 'Hi' }] }
const TENANT = '11111111-2222-3333-4444-555555555555'
const TOKENS = `https://login.microsoftonline.com/${TENANT}/oauth2/v2.0/token`

/** Tokens are shared by credential: each test has one of its own. */
let clients = 0
const entra = () => ({ tenant_id: TENANT, client_id: `client-${++clients}`, client_secret: 'a&b=c' })

function connected(baseUrl: string, credential: string | Record<string, string>) {
  const { parts } = credentialOf(azureOpenAi.credential, credential)
  azureOpenAi.check?.(parts)
  return azureOpenAi.connect(baseUrl, parts, { allowedMembers: [] })
}

const send = (transport: ReturnType<typeof connected>, more: Parameters<typeof requestOf>[0] = {}) =>
  sendToProvider(
    transport,
    requestOf({
      upstreamModel: 'my-deployment',
      body: new TextEncoder().encode(JSON.stringify(REQUEST)),
      ...more,
    }),
  )

/** Address, credential and body of a request. */
const essence = ({ address, headers, body }: Sent) => ({
  address: String(address),
  key: headers['api-key'],
  authorization: headers.authorization,
  type: headers['content-type'],
  body: JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body as Uint8Array)),
})

afterEach(() => void vi.unstubAllGlobals())

describe('a request to Azure OpenAI', () => {
  it('of the dated API is that of the official client', async () => {
    const client = clientFetch()
    const options = { endpoint: RESOURCE, apiKey: 'AZKEY', apiVersion: '2024-10-21', fetch: client.fetch }
    await new AzureOpenAI(options).chat.completions.create(REQUEST)
    const sent = recordFetch()
    await send(connected(`${RESOURCE}/openai`, 'AZKEY'))
    expect(sent.map(essence)).toEqual(client.sent.map(essence))
    expect(sent[0]?.address).toBe(
      `${RESOURCE}/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21`,
    )
  })

  it('of the v1 API is that of the official client, but for the header of the key', async () => {
    const client = clientFetch()
    const options = { baseURL: `${RESOURCE}/openai/v1`, apiKey: 'AZKEY', fetch: client.fetch }
    await new OpenAI(options).chat.completions.create(REQUEST)
    const sent = recordFetch()
    for (const baseUrl of [RESOURCE, `${RESOURCE}/openai/v1`]) await send(connected(baseUrl, 'AZKEY'))
    const expected = client.sent
      .map(essence)
      .map((each) => ({ ...each, key: 'AZKEY', authorization: undefined }))
    expect(sent.map(essence)).toEqual([...expected, ...expected])
  })

  it('has an encoded deployment in its path, and never another path', () => {
    const dated = connected(`${RESOURCE}/openai`, 'AZKEY')
    const target = { ...requestOf(), upstreamModel: 'a/b?c' }
    expect(dated.prepare(target, target.body).url).toContain(
      '/openai/deployments/a%2Fb%3Fc/chat/completions?',
    )
    expect(['..', '.', 'a/..', 'x'].map((model) => dated.speaks('chat_completions', model))).toEqual([
      false,
      false,
      false,
      true,
    ])
    expect([dated.speaks('messages', 'x'), dated.speaks('completions', 'x')]).toEqual([false, true])
  })

  it('has one of two forms of a credential', () => {
    const form = (given: string | Record<string, string>) => () => connected(RESOURCE, given)
    expect(form({ api_key: 'k', client_secret: 's' })).toThrow(/either/)
    expect(form({ tenant_id: TENANT, client_id: 'c' })).toThrow(/missing: `client_secret`/)
    for (const tenant of ['', 'a/b', '../x', 'a?b', '.', 'a b']) {
      expect(form({ ...entra(), tenant_id: tenant }), tenant).toThrow(/`tenant_id` must be/)
    }
    expect(credentialOf(azureOpenAi.credential, entra()).secrets).toEqual(['a&b=c'])
  })

  it.each([
    ['my.openai.azure.com', true],
    ['my.services.ai.azure.com', true],
    ['openai.azure.com.evil.example', false],
    ['evil-openai.azure.com', false],
    ['api.openai.com', false],
  ])('may go to %s: %s', (host, isAllowed) => {
    expect(azureOpenAi.hosts?.test(host)).toBe(isAllowed)
  })
})

describe('a token of Entra ID', () => {
  const answering = (status: () => number) =>
    recordFetch(({ address }) =>
      String(address).startsWith('https://login.')
        ? Response.json({ token_type: 'Bearer', expires_in: 3_599, access_token: 'eyJ.x' })
        : new Response('{}', { status: status() }),
    )

  it('is exchanged once, at the host of Microsoft, and sent in place of a key', async () => {
    const sent = answering(() => 200)
    const transport = connected(RESOURCE, entra())
    for (const now of [0, 1_000]) await send(transport, { now })
    expect(sent.map(({ address, headers }) => [address, headers.authorization, headers['api-key']])).toEqual([
      [TOKENS, undefined, undefined],
      [`${RESOURCE}/openai/v1/chat/completions`, 'Bearer eyJ.x', undefined],
      [`${RESOURCE}/openai/v1/chat/completions`, 'Bearer eyJ.x', undefined],
    ])
    expect(sent[0]?.headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(Object.fromEntries(new URLSearchParams(String(sent[0]?.body)))).toEqual({
      grant_type: 'client_credentials',
      client_id: `client-${clients}`,
      client_secret: 'a&b=c',
      scope: 'https://cognitiveservices.azure.com/.default',
    })
  })

  it('is exchanged before its end, and once more after a 401', async () => {
    let status = 200
    const sent = answering(() => status)
    const transport = connected(`${RESOURCE}/openai`, entra())
    const exchanges = () => sent.filter(({ address }) => address === TOKENS).length
    await send(transport, { now: 0 })
    await send(transport, { now: 3_299_000 })
    expect(exchanges()).toBe(2)
    status = 401
    expect((await send(transport, { now: 3_400_000 })).status).toBe(401)
    expect(exchanges()).toBe(3)
    expect((await send(transport, { now: 3_400_001 })).status).toBe(401)
    expect(exchanges()).toBe(3)
  })

  it('that is refused is an answer, and a failure of its service is none', async () => {
    const refused = { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret.' }
    recordFetch(() => Response.json(refused, { status: 401 }))
    const answer = await send(connected(RESOURCE, entra()))
    expect([answer.status, (await answer.json()) as unknown]).toMatchObject([
      401,
      { error: { code: 'token_refused' } },
    ])
    recordFetch(() => new Response('', { status: 503 }))
    const failed = send(connected(RESOURCE, entra()))
    await expect(failed).rejects.toBeInstanceOf(ProviderUnreachable)
    await expect(failed).rejects.toMatchObject({ reason: 'authorization_failed' })
  })
})
