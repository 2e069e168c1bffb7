import { createHash } from 'node:crypto'
import { Sha256 } from '@aws-crypto/sha256-js'
import * as suite from '@aws-sdk/signature-v4/dist/es/suite.fixture.js'
import { SignatureV4 } from '@smithy/signature-v4'
import { describe, expect, it } from 'vitest'
import { awsSigner, signedHeaders } from '../../../src/lib/aws-signature.ts'
import { SeededRandom } from '../../dlp/corpus/seeded-random.ts'

const KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const NOW = Date.parse('2026-11-23T12:00:00Z')
const HOST = 'https://bedrock-runtime.us-east-1.amazonaws.com'
/** SHA-256 of a body of 102 bytes, and the time of the fixtures. */
const BODY =
  '{"anthropic_version":"bedrock-2023-05-31","max_tokens":16,"messages":[{"role":"user","content":"Hi"}]}'
const hashOf = (body: string) => createHash('sha256').update(body).digest('hex')

const MODEL = '/model/us.anthropic.claude-sonnet-4-5-20250929-v1'
const ARN = 'arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fabc123'

/** A path that is not percent-encoded is in no URL. */
const VECTORS = suite.requests.filter(({ name }) => name !== 'get-utf8')

describe('AWS Signature Version 4', () => {
  it.each([
    [
      'a colon that is encoded',
      `${MODEL}%3A0/invoke`,
      {},
      'dcb224df1859a1a0df1ec423212ec3e23c4366770adf621686b4cbac91ef63a3',
    ],
    [
      'a raw colon',
      `${MODEL}:0/invoke`,
      {},
      '936312124b576a8992139dc4c81dd1a9fce4d5b5c3200ce3c9fe6f9d9809841d',
    ],
    [
      'an ARN and a session token',
      `/model/${ARN}/converse-stream`,
      { 'x-amz-security-token': 'SESSIONTOKEN' },
      '651dcbb2ea0839a53288929b6867567e775d64a5cd8a2927d9238adec6e6b82d',
    ],
  ])('signs %s', (_, path, more, signature) => {
    const headers = { 'content-type': 'application/json', 'x-amz-date': '20261123T120000Z', ...more }
    const sign = awsSigner(KEYS, 'us-east-1', 'bedrock')
    const authorization = sign({
      method: 'POST',
      url: HOST + path,
      headers,
      bodyHash: hashOf(BODY),
      now: NOW,
    })
    expect(authorization.slice(-64)).toBe(signature)
  })

  it.each([
    [
      HOST,
      'bedrock',
      `${MODEL}%3A0/invoke`,
      'b9151ef960c6ee02b1d2b672cb3b52d109ad3b844b159838563ff7670dac3d64',
    ],
    [
      'https://bedrock-mantle.us-east-1.api.aws',
      'bedrock-mantle',
      '/anthropic/v1/messages',
      'd66b962d5b500022130d87397f3e6f039538ce1e4974a348a343097f30140d30',
    ],
  ])('signs its hash and time for %s', (host, service, path, signature) => {
    const sign = awsSigner(KEYS, 'us-east-1', service)
    const request = { method: 'POST', url: host + path, bodyHash: hashOf(BODY), now: NOW }
    const headers = signedHeaders(sign, { sessionToken: null }, request)
    expect(headers.authorization?.slice(-64)).toBe(signature)
  })

  it.each(VECTORS.map(({ name, request, authorization }) => [name, request, authorization] as const))(
    'agrees with the published vector %s',
    (_, { method, protocol, hostname, path, query, headers, body = '' }, wanted) => {
      const search = new URLSearchParams(
        Object.entries(query ?? {}).flatMap(([key, value]) =>
          [value].flat().map((each): [string, string] => [key, String(each)]),
        ),
      )
      const { host: _host, ...rest } = headers
      const names = Object.entries(rest).map(([key, value]) => [key.toLowerCase(), value])
      const sign = awsSigner(KEYS, suite.region, suite.service)
      const authorization = sign({
        method,
        url: `${protocol}//${hostname}${path}${search.size > 0 ? `?${search}` : ''}`,
        headers: Object.fromEntries(names),
        bodyHash: hashOf(String(body)),
        now: suite.signingDate.getTime(),
      })
      expect(authorization).toBe(wanted)
    },
  )

  it('agrees with the official library on random requests', async () => {
    const random = new SeededRandom(7)
    const pick = (from: string, length: number) =>
      Array.from({ length }, () => random.pick([...from])).join('')
    for (let round = 0; round < 50; round++) {
      const id = encodeURIComponent(pick("abcXYZ019-._~:/ é*'()!@$,;=+%", random.integer(1, 40)))
      const sessionToken = random.chance(0.5) ? pick('abc/+=09', 200) : null
      const now = NOW + random.integer(0, 1e10)
      const body = pick('abc{}"é', 50)
      const path = `/model/${id}/invoke`
      const signer = new SignatureV4({
        service: 'bedrock',
        region: 'eu-west-3',
        credentials: { ...KEYS, ...(sessionToken !== null && { sessionToken }) },
        sha256: Sha256,
        uriEscapePath: true,
      })
      const { headers } = await signer.sign(
        {
          method: 'POST',
          protocol: 'https:',
          hostname: 'bedrock-runtime.eu-west-3.amazonaws.com',
          path: new URL(HOST + path).pathname,
          query: {},
          headers: {
            host: 'bedrock-runtime.eu-west-3.amazonaws.com',
            'x-amz-content-sha256': hashOf(body),
          },
          body,
        },
        { signingDate: new Date(now) },
      )
      const own = signedHeaders(
        awsSigner(KEYS, 'eu-west-3', 'bedrock'),
        { sessionToken },
        {
          method: 'POST',
          url: `https://bedrock-runtime.eu-west-3.amazonaws.com${path}`,
          bodyHash: hashOf(body),
          now,
        },
      )
      expect(own.authorization).toBe(headers.authorization)
      expect(own).toMatchObject({ 'x-amz-date': headers['x-amz-date'] })
    }
  })

  it('signs on another day by another key', () => {
    const sign = awsSigner(KEYS, 'us-east-1', 'bedrock')
    const at = (now: number) => sign({ method: 'POST', url: HOST, headers: {}, bodyHash: '', now })
    const first = at(NOW)
    expect(at(NOW + 86_400_000)).not.toBe(first)
    expect(at(NOW)).toBe(first)
  })
})
