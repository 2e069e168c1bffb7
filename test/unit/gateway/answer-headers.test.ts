import { describe, expect, it } from 'vitest'
import { answerHeaders, streamHeaders } from '../../../src/gateway/relay/answer-headers.ts'

const KEY = 'sk-our-provider-key+/=$&'
const CREDENTIAL = { secrets: [KEY] }

describe('answerHeaders', () => {
  it('forwards what clients read, under any case', () => {
    const upstream = {
      'Content-Type': 'application/problem+json; charset=utf-8',
      'Retry-After': '7',
      'retry-after-ms': '7000',
      'x-should-retry': 'false',
      'openai-processing-ms': '12',
      'openai-version': '2020-10-01',
    }
    const expected = Object.fromEntries(
      Object.entries(upstream).map(([name, value]) => [name.toLowerCase(), value]),
    )
    expect(answerHeaders(new Headers(upstream), CREDENTIAL)).toEqual(expected)
  })

  it.each([
    'set-cookie',
    'content-length',
    'content-encoding',
    'transfer-encoding',
    'connection',
    'keep-alive',
    'server',
    'via',
    'cf-ray',
    'alt-svc',
    'access-control-allow-origin',
    'strict-transport-security',
    'authorization',
    'x-api-key',
    'openai-organization',
    'anthropic-organization-id',
    'location',
    'www-authenticate',
    'x-ratelimit-remaining-tokens',
    'anthropic-ratelimit-requests-reset',
  ])('keeps %s back', (name) => {
    expect(answerHeaders(new Headers({ [name]: 'x' }), CREDENTIAL)).toEqual({})
  })

  it('forwards the upstream’s request id under a name of its own', () => {
    expect(answerHeaders(new Headers({ 'x-request-id': 'req_1' }), CREDENTIAL)).toEqual({
      'x-upstream-request-id': 'req_1',
    })
    const both = new Headers({ 'x-request-id': 'proxy', 'request-id': 'req_2' })
    expect(answerHeaders(both, CREDENTIAL)).toEqual({ 'x-upstream-request-id': 'req_2' })
    const empty = new Headers({ 'request-id': '', 'x-request-id': 'req_3' })
    expect(answerHeaders(empty, CREDENTIAL)['x-upstream-request-id']).toBe('req_3')
  })

  it('drops one that is too long, and forwards the others', () => {
    const upstream = new Headers({ 'request-id': 'x'.repeat(9_000), 'retry-after': '9' })
    upstream.set('content-type', `text/${'x'.repeat(5_000)}`)
    upstream.set('openai-version', 'x'.repeat(5_000))
    const sent = answerHeaders(upstream, CREDENTIAL)
    expect(Object.keys(sent)).toEqual(['content-type', 'retry-after'])
    expect(Object.entries(sent).flat().join('').length).toBeLessThanOrEqual(8_192)
  })

  it('cuts our credential out of every value', () => {
    const upstream = new Headers({ 'openai-version': `${KEY},${KEY}`, 'request-id': `id-${KEY}` })
    expect(answerHeaders(upstream, CREDENTIAL)).toEqual({
      'openai-version': '[redacted],[redacted]',
      'x-upstream-request-id': 'id-[redacted]',
    })
    const encoded = Buffer.from(`Bearer ${KEY}`).toString('base64')
    expect(answerHeaders(new Headers({ 'openai-version': encoded }), CREDENTIAL)['openai-version']).toMatch(
      /^.{10}\[redacted\].{0,3}$/,
    )
    expect(answerHeaders(new Headers({ 'retry-after': '7' }), { secrets: [''] })['retry-after']).toBe('7')
  })
})

describe('streamHeaders', () => {
  it('sets the headers of a stream, whatever the upstream sent', () => {
    const upstream = new Headers({
      'content-type': 'text/event-stream',
      'cache-control': 'public, max-age=60',
      'openai-processing-ms': '9',
      'content-length': '5',
    })
    expect(streamHeaders(upstream, CREDENTIAL)).toEqual({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'openai-processing-ms': '9',
    })
  })
})
