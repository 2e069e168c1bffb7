import { beforeAll, describe, expect, it } from 'vitest'
import { encoded } from '../../scripts/local/model-upstream/vendors/bedrock/binary-events.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import type { Answer } from '../harness/send.ts'
import { createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import type { ScriptStep } from '../harness/upstream.ts'
import { recordOf } from './support/dlp.ts'
import { postTo, requestOf, SURFACES, type Surface } from './support/vendor-calls.ts'
import {
  CLASS_PRICES,
  createModel,
  createVendorModel,
  createVendorProvider,
  rawPath,
  type Vendor,
  vendorNamed,
} from './support/vendor-kinds.ts'
import { streamedAnswer, wholeAnswer } from './support/vendor-wires.ts'

// A vendor's throttling in its own form: the call moves to the next route, or its caller is sent the wait.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const play = (name: string, ...responses: ScriptStep[][]) =>
  upstreamControl(gateway()).putScript(name, { responses: responses.map((steps) => ({ steps })) })

const error = (status: number, body: unknown, headers = {}): ScriptStep[] => [
  { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) },
]

const amazonType = (type: string) => ({ 'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/` })
const retryInfo = (retryDelay: string) => [
  { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'RATE_LIMIT_EXCEEDED' },
  { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
]
const exhausted = (retryDelay: string) => ({
  error: {
    code: 429,
    message: 'Resource exhausted.',
    status: 'RESOURCE_EXHAUSTED',
    details: retryInfo(retryDelay),
  },
})
const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }

interface Throttling {
  vendor: string
  /** What is throttled, and how it is said. */
  form: string
  steps: ScriptStep[]
  status: number
  /** Seconds in the caller's `Retry-After`; null for none. */
  wait: string | null
}

const THROTTLINGS: Throttling[] = [
  {
    vendor: 'Claude on Bedrock',
    form: 'ThrottlingException',
    steps: error(429, { message: 'Too many requests, please wait.' }, amazonType('ThrottlingException')),
    status: 429,
    wait: '1',
  },
  {
    vendor: 'Converse',
    form: 'ThrottlingException',
    steps: error(429, { message: 'Too many tokens per day.' }, amazonType('ThrottlingException')),
    status: 429,
    wait: '1',
  },
  {
    vendor: 'Converse',
    form: 'ModelNotReadyException',
    steps: error(429, { message: 'Model is not ready.' }, amazonType('ModelNotReadyException')),
    status: 429,
    wait: '1',
  },
  {
    vendor: 'Claude on Bedrock',
    form: 'ServiceUnavailableException',
    steps: error(
      503,
      { message: 'Bedrock is unable to process your request.' },
      amazonType('ServiceUnavailableException'),
    ),
    status: 503,
    wait: null,
  },
  {
    vendor: 'Converse',
    form: 'ModelErrorException',
    steps: error(
      424,
      { message: 'The model failed.', originalStatusCode: 500 },
      amazonType('ModelErrorException'),
    ),
    status: 424,
    wait: null,
  },
  {
    vendor: 'Claude on Vertex',
    form: "Google's quota",
    steps: error(429, exhausted('34.07s')),
    status: 429,
    wait: '35',
  },
  { vendor: 'Claude on Vertex', form: '529', steps: error(529, overloaded), status: 529, wait: null },
  {
    vendor: 'Gemini',
    form: 'RetryInfo',
    steps: error(429, exhausted('12s')),
    status: 429,
    wait: '12',
  },
  {
    vendor: 'Gemini on Vertex',
    form: 'RetryInfo in a list',
    steps: error(429, [exhausted('0.5s')]),
    status: 429,
    wait: '1',
  },
  {
    vendor: 'Gemini',
    form: 'UNAVAILABLE with RetryInfo',
    steps: error(503, {
      error: { code: 503, message: 'Overloaded.', status: 'UNAVAILABLE', details: retryInfo('7s') },
    }),
    status: 503,
    wait: '7',
  },
  {
    vendor: 'Azure OpenAI v1',
    form: 'retry-after-ms alone',
    steps: error(429, { error: { code: '429', message: 'Rate limit.' } }, { 'retry-after-ms': '6500' }),
    status: 429,
    wait: '7',
  },
  {
    vendor: 'Azure OpenAI dated',
    form: 'retry-after-ms and retry-after',
    steps: error(
      429,
      { error: { code: '429', message: 'Rate limit.' } },
      { 'retry-after-ms': '8500', 'retry-after': '9' },
    ),
    status: 429,
    wait: '9',
  },
  {
    vendor: 'Claude in Foundry',
    form: '529 with retry-after',
    steps: error(529, overloaded, { 'retry-after': '4' }),
    status: 529,
    wait: '4',
  },
  {
    vendor: 'Mistral',
    form: 'retry-after',
    steps: error(429, { object: 'error', message: 'Requests rate limit exceeded' }, { 'retry-after': '20' }),
    status: 429,
    wait: '20',
  },
]

/** A provider of a vendor that plays a script, which can be replaced. */
async function playing(vendor: Vendor) {
  const script = uniqueName('raw')
  const { id, name } = await createVendorProvider(vendor, {
    rawScript: script,
    ...(vendor.kind === 'vertex' && { credential: await tokened() }),
  })
  return { id, name, plays: (...responses: ScriptStep[][]) => play(script, ...responses) }
}

/** A credential of Vertex whose token service is a script. */
async function tokened() {
  const url = gateway().standIns.modelUpstream
  const script = uniqueName('tokens')
  await play(script, error(200, { access_token: uniqueName('token'), expires_in: 3_599 }))
  const account = vendorNamed('Claude on Vertex').credential(url) as Record<string, string>
  return { ...account, token_uri: `${url}${rawPath(script)}/token` }
}

const call = (surface: Surface, model: string, stream = false): Promise<Answer> =>
  postTo(surface, tenant, requestOf(surface, model, 'Hello', { stream, tools: undefined }))

const attemptsOf = async (answer: Answer) =>
  ((await recordOf(tenant, answer)).record.attempts as Array<Record<string, unknown>>).map(
    ({ provider, status, failure }) => [provider, failure ?? status],
  )

describe.each(THROTTLINGS.map((each) => [each.vendor, each.form, each] as const))(
  '%s that is throttled by %s',
  (_vendor, _form, { vendor: name, steps, status, wait }) => {
    const vendor = vendorNamed(name)

    it('is passed over: another route answers, on every surface', async () => {
      // A second account at the vendor: routes whose protocol is the caller's come first.
      const next = await playing(vendor)
      for (const surface of SURFACES) {
        // A provider of its own for each call: one that requested a wait is tried last for as long.
        const throttled = await playing(vendor)
        await throttled.plays(steps)
        await next.plays(
          surface === 'responses' ? streamedAnswer(vendor, 'Moved.') : wholeAnswer(vendor, 'Moved.'),
        )
        const model = await createModel([
          { provider_id: throttled.id, upstream_model: vendor.upstreamModel },
          { provider_id: next.id, upstream_model: vendor.upstreamModel },
        ])
        const answer = await call(surface, model)
        expect([surface, answer.status, answer.text]).toEqual([
          surface,
          200,
          expect.stringContaining('Moved.'),
        ])
        expect(await attemptsOf(answer)).toEqual([
          [throttled.name, status],
          [next.name, 200],
        ])
        if (wait === null || Number(wait) < 2) continue
        // The wait that was requested holds for later calls.
        expect(await attemptsOf(await call(surface, model))).toEqual([[next.name, 200]])
      }
    })

    it('alone sends the caller the wait', async () => {
      const throttled = await playing(vendor)
      await throttled.plays(steps)
      const model = await createModel([{ provider_id: throttled.id, upstream_model: vendor.upstreamModel }])
      for (const surface of ['chat', 'messages'] as const) {
        for (const stream of [false, true]) {
          const answer = await call(surface, model, stream)
          expect([answer.status, answer.headers['retry-after'] ?? null]).toEqual([status, wait])
        }
      }
    })
  },
)

describe('Bedrock that is throttled after status 200', () => {
  it.each(['Claude on Bedrock', 'Converse'])('moves on before the first text: %s', async (name) => {
    const vendor = vendorNamed(name)
    const [throttled, next] = [await playing(vendor), await playing(vendor)]
    const frame = encoded('exception', 'throttlingException', { message: 'Too many requests' })
    const headers = { 'content-type': 'application/vnd.amazon.eventstream' }
    await throttled.plays([
      { status: 200, headers },
      { chunkBase64: Buffer.from(frame).toString('base64') },
      { end: true },
    ])
    await next.plays(streamedAnswer(vendor, 'Moved.'))
    const model = await createModel([
      { provider_id: throttled.id, upstream_model: vendor.upstreamModel },
      { provider_id: next.id, upstream_model: vendor.upstreamModel },
    ])
    for (const surface of SURFACES) {
      const answer = await call(surface, model, true)
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Moved.')])
      expect((await attemptsOf(answer)).map(([provider]) => provider)).toEqual([throttled.name, next.name])
    }
  })
})

describe('an attempt whose answer is lost', () => {
  it.each([false, true])(
    'costs what its own route does, and the answer what its own does: streamed %s',
    async (stream) => {
      const [bedrock, vertex] = [vendorNamed('Claude on Bedrock'), vendorNamed('Claude on Vertex')]
      const [first, second] = [await playing(bedrock), await playing(vertex)]
      await first.plays([
        { status: 200, headers: { 'content-type': 'application/json' } },
        { chunk: '{"id":' },
        { destroy: true },
      ])
      await second.plays(stream ? streamedAnswer(vertex, 'Kept.') : wholeAnswer(vertex, 'Kept.'))
      const model = await createModel([
        { provider_id: first.id, upstream_model: bedrock.upstreamModel, price_percent: 100 },
        { provider_id: second.id, upstream_model: vertex.upstreamModel, price_percent: 300 },
      ])
      const answer = await call('messages', model, stream)
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Kept.')])
      const { record } = await recordOf(tenant, answer)
      const { input, output } = record.usage as { input: number; output: number }
      expect([output, record.provenance]).toEqual([5, 'estimated'])
      expect(input).toBeGreaterThan(3)
      const { input: price, output: outputPrice } = CLASS_PRICES
      const [lost, kept] = [(input - 3) * price, 3 * (3 * price + 5 * outputPrice)]
      expect(record.cost).toBe((lost + kept) / 1_000_000)
    },
  )
})

it('a model of one vendor keeps its wire for errors of the caller: they move nowhere', async () => {
  const { model, provider } = await createVendorModel(vendorNamed('Converse'))
  const answer = await postTo('messages', tenant, requestOf('messages', model, 'script:error-400'))
  expect(answer.status).toBe(400)
  expect(await attemptsOf(answer)).toEqual([[provider, 400]])
})
