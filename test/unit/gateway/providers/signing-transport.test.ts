import { createHash, createHmac } from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type CredentialForm, credentialOf } from '../../../../src/gateway/providers/credential.ts'
import { sendToProvider } from '../../../../src/gateway/providers/send-to-provider.ts'
import type {
  PreparedRequest,
  ProviderKindDefinition,
  RequestToAuthorize,
} from '../../../../src/gateway/providers/transport.ts'
import { SseReader } from '../../../../src/lib/sse.ts'
import { recordFetch, requestOf } from './upstream-recorder.ts'

/** A provider whose requests are signed (AWS Signature Version 4), or carry a token that its credential is exchanged for. */

const FORM: CredentialForm = {
  key_id: { secret: false, required: true },
  secret_key: { secret: true, required: true },
  session_token: { secret: true, required: false },
  region: { secret: false, required: true },
}
/** https://docs.aws.amazon.com/general/latest/gr/signature-v4-test-suite.html */
const SUITE = {
  key_id: 'AKIDEXAMPLE',
  secret_key: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
}
const SUITE_TIME = Date.UTC(2015, 7, 30, 12, 36, 0)

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html */
async function signature(
  request: RequestToAuthorize,
  { key_id, secret_key = '', region = '' }: Record<string, string>,
): Promise<Record<string, string>> {
  const { host, pathname, searchParams } = new URL(request.url)
  const date = new Date(request.now).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const headers = Object.entries({ ...request.headers, host, 'x-amz-date': date }).sort(([left], [right]) =>
    left < right ? -1 : 1,
  )
  const signed = headers.map(([name]) => name).join(';')
  const query = [...searchParams].map((pair) => pair.map(encodeURIComponent).join('=')).sort()
  const canonical = [
    request.method,
    pathname,
    query.join('&'),
    ...headers.map(([name, value]) => `${name}:${value}`),
    '',
    signed,
    await request.bodyHash(),
  ].join('\n')
  const scope = [date.slice(0, 8), region, 'service', 'aws4_request']
  const key = scope.reduce((key: string | Buffer, part) => hmac(key, part), `AWS4${secret_key}`)
  const toSign = ['AWS4-HMAC-SHA256', date, scope.join('/'), sha256(canonical)].join('\n')
  const value = hmac(key as Buffer, toSign).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${key_id}/${scope.join('/')}, SignedHeaders=${signed}, Signature=${value}`
  return { 'x-amz-date': date, authorization }
}

/** @param prepared what is to be sent, by the body that the call has. */
function signing(prepared: (baseUrl: string) => Omit<PreparedRequest, 'body'>): ProviderKindDefinition {
  return {
    credential: FORM,
    routingMembers: new Set(),
    connect: (baseUrl, credential) => ({
      speaks: () => true,
      prepare: (_target, body) => ({ ...prepared(baseUrl), body }),
      authorize: (request) => signature(request, credential),
      streamType: 'application/vnd.amazon.eventstream',
      frames: () => new SseReader(),
    }),
  }
}

const BASE = 'https://example.amazonaws.com'
const connected = (kind: ProviderKindDefinition) =>
  kind.connect(BASE, credentialOf(kind.credential, SUITE).parts, { allowedMembers: [] })

afterEach(() => {
  vi.unstubAllGlobals()
})

describe('a transport that signs', () => {
  const form = 'application/x-www-form-urlencoded'
  it.each([
    [
      'post-vanilla',
      '/',
      {},
      '',
      'host;x-amz-date',
      '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
    ],
    [
      'post-vanilla-query',
      '/?Param1=value1',
      {},
      '',
      'host;x-amz-date',
      '28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11',
    ],
    [
      'post-x-www-form-urlencoded',
      '/',
      { 'content-type': form },
      'Param1=value1',
      'content-type;host;x-amz-date',
      'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
    ],
  ])('sends the signature of the published vector %s', async (_name, path, headers, body, signed, value) => {
    const sent = recordFetch()
    const transport = connected(signing((baseUrl) => ({ url: baseUrl + path, headers })))
    const bytes = new TextEncoder().encode(body)
    const forms = [bytes, { pieces: [bytes.subarray(0, 5), bytes.subarray(5)], length: bytes.length }]
    for (const each of forms) await sendToProvider(transport, requestOf({ body: each, now: SUITE_TIME }))
    const authorization =
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ' +
      `SignedHeaders=${signed}, Signature=${value}`
    expect(sent).toHaveLength(forms.length)
    for (const each of sent) {
      expect(each.address).toBe(new URL(path, BASE).href)
      expect(each.headers).toEqual({ ...headers, 'x-amz-date': '20150830T123600Z', authorization })
    }
  })

  it('separates its secret parts, which are redacted, from the others', () => {
    const credential = credentialOf(FORM, { ...SUITE, session_token: 'a session' })
    expect(credential.secrets.toSorted()).toEqual([SUITE.secret_key, 'a session'].toSorted())
    expect(() => credentialOf(FORM, 'a secret alone')).toThrow(/missing: `key_id`, `secret_key`, `region`/)
  })
})

describe('a transport that exchanges its credential for a token', () => {
  const TOKENS = 'https://token.example/exchange'

  function exchanging(): ProviderKindDefinition {
    let token: { value: string; until: number } | null = null
    return {
      credential: { service_account: { secret: true, required: true } },
      routingMembers: new Set(),
      connect: (baseUrl, { service_account: account = '' }) => ({
        speaks: () => true,
        prepare: ({ upstreamModel, stream }, body) => ({
          url: `${baseUrl}/models/${upstreamModel}:${stream ? 'stream' : 'raw'}Predict`,
          headers: { 'content-type': 'application/json' },
          body,
        }),
        async authorize({ now, send }) {
          if (token === null || token.until <= now) {
            const answer = await send(TOKENS, { method: 'POST', body: account })
            const { value, lifetime } = (await answer.json()) as { value: string; lifetime: number }
            token = { value, until: now + lifetime }
          }
          return { authorization: `Bearer ${token.value}` }
        },
        streamType: 'text/event-stream',
        frames: () => new SseReader(),
      }),
    }
  }

  const account = { service_account: '{"private_key":"x"}' }

  it('requests it through the guarded fetch, once for its lifetime', async () => {
    let issued = 0
    const sent = recordFetch(({ address }) =>
      Response.json(address === TOKENS ? { value: `token-${++issued}`, lifetime: 1_000 } : {}),
    )
    const transport = exchanging().connect(BASE, account, { allowedMembers: [] })
    for (const now of [0, 999, 1_000]) await sendToProvider(transport, requestOf({ now, stream: true }))
    expect(sent.map(({ address, headers }) => [address, headers.authorization])).toEqual([
      [TOKENS, undefined],
      [`${BASE}/models/model-1:streamPredict`, 'Bearer token-1'],
      [`${BASE}/models/model-1:streamPredict`, 'Bearer token-1'],
      [TOKENS, undefined],
      [`${BASE}/models/model-1:streamPredict`, 'Bearer token-2'],
    ])
    expect(sent[0]).toMatchObject({ body: account.service_account, redirect: 'manual' })
  })

  it('sends nothing without a token, and names that as the reason', async () => {
    const sent = recordFetch(() => Promise.reject(new Error('no token today')))
    const transport = exchanging().connect(BASE, account, { allowedMembers: [] })
    await expect(sendToProvider(transport, requestOf())).rejects.toMatchObject({
      reason: 'authorization_failed',
    })
    const reason = new Error('left')
    const signal = AbortSignal.abort(reason)
    await expect(sendToProvider(transport, requestOf({ signal }))).rejects.toBe(reason)
    expect(sent.every(({ address }) => address === TOKENS)).toBe(true)
  })
})
