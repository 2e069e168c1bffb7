import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { upstreamControl } from '../harness/gateway.ts'
import { type Answer, send } from '../harness/send.ts'
import { bearer, uniqueName } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import { createVendorModel, rawPath, type Vendor, vendorNamed } from '../http/support/vendor-kinds.ts'
import { streamedAnswer, wholeAnswer } from '../http/support/vendor-wires.ts'
import { LARGEST_BODY_BYTES } from './support/large-bodies.ts'
import {
  type MeasuredGateway,
  MOST_ABOVE_IDLE,
  megabytes,
  startMeasured,
} from './support/measured-gateway.ts'
import { TELLS_MEMORY } from './support/resident-memory.ts'

// Requests of 50 MB with pictures on routes of vendors: edited in place, translated, and signed.

const PICTURES = 10
/** Stands for the data of a picture in a request that the upstream records whole. */
const SMALL = 'U01BTEw='

/** A request of messages whose pictures have this data. @param text of the user, at the beginning. */
const messagesOf = (model: string, text: string, data: string, stream: boolean): string => {
  const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
  const content = [{ type: 'text', text }, ...Array.from({ length: PICTURES }, () => picture)]
  return JSON.stringify({ model, max_tokens: 20, stream, messages: [{ role: 'user', content }] })
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

const CASES = [
  'Claude on Bedrock',
  'Converse',
  'Claude on Vertex',
  'Gemini',
  'Gemini on Vertex',
  'Mistral',
].flatMap((name) => [false, true].map((stream) => [name, stream] as const))

describe.skipIf(!TELLS_MEMORY)('a body of 50 MB with pictures', () => {
  let measured: MeasuredGateway
  beforeAll(async () => {
    measured = await startMeasured()
  })
  afterAll(() => measured?.gateway.stop())

  const post = (body: string): Promise<Answer> =>
    send(`${measured.gateway.baseUrl}/v1/messages`, {
      method: 'POST',
      headers: bearer(measured.tenant.key),
      body,
    })

  /** A model whose vendor plays its answer, whatever it is sent. */
  async function modelOf(vendor: Vendor, stream: boolean): Promise<string> {
    const { gateway } = measured
    const [script, tokens] = [uniqueName('raw'), uniqueName('tokens')]
    const play = (name: string, steps: unknown[]) =>
      upstreamControl(gateway).putScript(name, { steps } as never)
    await play(script, (stream ? streamedAnswer : wholeAnswer)(vendor, 'Seen.'))
    await play(tokens, [{ json: { access_token: uniqueName('token'), expires_in: 3_599 } }])
    const url = gateway.standIns.modelUpstream
    const given = vendor.credential(url)
    const credential =
      typeof given === 'object' && vendor.kind === 'vertex'
        ? { ...given, token_uri: `${url}${rawPath(tokens)}/token` }
        : given
    return (await createVendorModel(vendor, { rawScript: script, credential }, gateway)).model
  }

  it.each(CASES)('arrives at %s, streamed %s, in little memory', async (name, stream) => {
    const { gateway, memory, idle } = measured
    const model = await modelOf(vendorNamed(name), stream)
    const [one, other] = [marker(), marker()]
    expect((await post(messagesOf(model, one, SMALL, stream))).status).toBe(200)
    const template = (await seenRequest(gateway, one)).body
    expect(template.split(SMALL)).toHaveLength(PICTURES + 1)

    const room = LARGEST_BODY_BYTES - messagesOf(model, other, '', stream).length
    const data = randomBytes(Math.floor(room / PICTURES / 4) * 3).toString('base64')
    const body = messagesOf(model, other, data, stream)
    expect(body.length).toBeGreaterThan(LARGEST_BODY_BYTES - 100)
    const { peak, result } = await memory.peakOf(() => post(body))
    expect([result.status, result.text]).toEqual([200, expect.stringContaining('Seen.')])
    const seen = await seenRequest(gateway, other)
    const expected = template.replace(one, other).replaceAll(SMALL, () => data)
    expect([seen.bodyBytes, seen.bodySha256]).toEqual([Buffer.byteLength(expected), sha256(expected)])
    const signed = seen.headers['x-amz-content-sha256']
    if (vendorNamed(name).kind === 'bedrock') expect(signed).toBe(seen.bodySha256)
    const above = peak - idle
    console.log(`${name}, streamed ${stream}: ${megabytes(above)} above ${megabytes(idle)}`)
    expect(above).toBeLessThanOrEqual(MOST_ABOVE_IDLE)
  })
})
