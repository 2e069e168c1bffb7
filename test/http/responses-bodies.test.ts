import { brotliCompressSync, gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf, type SendOptions } from '../harness/send.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { RESPONSES_ROUTE } from '../matrices/routes.ts'
import { ask, expectJson, type ToldResponse } from './support/response-calls.ts'

/** Interface, Limits. */
const LIMIT = 52_428_800
const TOO_LARGE = { message: 'The request body is larger than 52428800 bytes.' }

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const post = (options: SendOptions) => ask(tenant.key, 'POST', '/v1/responses', options)
const bodyOf = (text: string) => Buffer.from(JSON.stringify(RESPONSES_ROUTE.request(text)))

/** A valid request of exactly this many bytes, most of them white space, which nothing has to hold. */
function padded(bytes: number, text: string): Buffer {
  const body = bodyOf(text)
  return Buffer.concat([body, Buffer.alloc(bytes - body.length, ' ')])
}

describe('a body that passes to the object of its response', () => {
  it.each([
    ['declared', false],
    ['chunked', true],
  ])('may have 52,428,800 bytes and not one more (%s)', async (_, chunked) => {
    const [text, refused] = [marker(), marker()]
    expectJson<ToldResponse>(await post({ body: padded(LIMIT, text), chunked }))
    await seenRequest(gateway(), text)
    const answer = await post({ body: padded(LIMIT + 1, refused), chunked })
    expect(jsonOf(answer)).toEqual(TOO_LARGE)
    expect(answer.status).toBe(413)
    expect(await seenRequests(gateway(), refused)).toEqual([])
  })

  it('is counted after decompression', async () => {
    const text = marker()
    const encoded = (body: Buffer) =>
      post({ body: gzipSync(body, { level: 1 }), headers: { 'content-encoding': 'gzip' } })
    expectJson<ToldResponse>(await encoded(bodyOf(text)))
    await seenRequest(gateway(), text)
    const answer = await encoded(padded(LIMIT + 1, marker()))
    expect(jsonOf(answer)).toEqual(TOO_LARGE)
    expect(answer.status).toBe(413)
  })

  it('is refused when it is not the gzip it says to be, or of another encoding', async () => {
    const body = bodyOf('Hello')
    const whole = gzipSync(body)
    const cases: Array<[encoding: string, body: Buffer, message: RegExp]> = [
      ['gzip', body, /^The body is not valid gzip\.$/],
      ['gzip', whole.subarray(0, -9), /^The body is not valid gzip\.$/],
      ['br', brotliCompressSync(body), /^The content encoding br is not supported/],
      ['gzip, gzip', gzipSync(whole), /^The content encoding gzip, gzip is not supported/],
    ]
    for (const [encoding, sent, message] of cases) {
      const answer = await post({ body: sent, headers: { 'content-encoding': encoding } })
      expect(jsonOf(answer)).toEqual(refusalBody('responses', { status: 400, code: 'invalid_body', message }))
      expect(answer.status).toBe(400)
    }
  })

  it('without a valid key is refused, and the answer can be read', async () => {
    const answer = await ask('unknown', 'POST', '/v1/responses', { body: padded(LIMIT, marker()) })
    expect(jsonOf(answer)).toEqual({ error: 'Unauthorized' })
    expect(answer.status).toBe(401)
  })
})
