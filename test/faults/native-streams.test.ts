import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import type { InspectionCounts } from '../../src/wire/records.ts'
import { createBusyTenant } from '../harness/contention.ts'
import { upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { auditEntries, auditEntryOf, flush } from '../harness/records.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { bearer, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript, type ScriptStep, type UpstreamRequest } from '../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'
import { SEEDS, TRIALS } from './support/faulty-gateway.ts'
import { Random } from './support/random.ts'
import { ResidentMemory, TELLS_MEMORY } from './support/resident-memory.ts'

/** Streams that nothing has to change, and that the runtime carries: random chunks, pauses, cuts, slow callers and leaving ones. */

const HEARTBEAT_MS = 150
const AT_ONCE = 8
/** A caller that leaves silently is noticed when something is written to it, at the latest a heartbeat. */
const CLOSED_WITHIN_MS = 1_500
const MEGABYTE = 1024 * 1024

let gateway: StartedGateway
let tenant: Tenant
beforeAll(async () => {
  gateway = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    variables: { STREAM_HEARTBEAT_MS: String(HEARTBEAT_MS), LEDGER_FLUSH_MS: '100' },
  })
  tenant = await createBusyTenant(gateway, 1_000_000_000_000)
}, 60_000)
afterAll(() => gateway?.stop())

interface Dialect {
  route: ModelRoute
  more: Record<string, unknown>
  heartbeat: string
  failure: (message: string) => string
  frames: (texts: string[]) => string[]
}

const event = (type: string, more: Record<string, unknown>) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
const chunk = (more: Record<string, unknown>) => `data: ${JSON.stringify({ id: 'chatcmpl-1', ...more })}\n\n`

const MESSAGES: Dialect = {
  route: MODEL_ROUTES.find(({ name }) => name === 'messages') as ModelRoute,
  more: {},
  heartbeat: event('ping', {}),
  failure: (message) => event('error', { error: { type: 'api_error', message } }),
  frames: (texts) => [
    event('message_start', { message: { usage: { input_tokens: 3, output_tokens: 1 } } }),
    ...texts.map((text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: texts.length } }),
    event('message_stop', {}),
  ],
}

/** An upstream that sends usage once, so that no chunk needs an edit. */
const CHAT: Dialect = {
  route: MODEL_ROUTES.find(({ name }) => name === 'chat completions') as ModelRoute,
  more: { stream_options: { include_usage: true } },
  heartbeat: ': heartbeat\n\n',
  failure: (message) =>
    `event: error\ndata: ${JSON.stringify({ error: { message, type: 'server_error', code: 'stream_error' } })}\n\ndata: [DONE]\n\n`,
  frames: (texts) => [
    ...texts.map((content) => chunk({ choices: [{ index: 0, delta: { content } }] })),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    chunk({ choices: [], usage: { prompt_tokens: 3, completion_tokens: texts.length } }),
    'data: [DONE]\n\n',
  ],
}

/** Texts that are whole characters of one to four bytes, cut anywhere by the chunks. */
const textsOf = (random: Random): string[] =>
  Array.from({ length: random.integer(1, 30) }, () =>
    random.pick(['a', 'ü', '漢', '🦉', '\\n']).repeat(random.integer(1, 60)),
  )

/** Steps that send bytes in random chunks, with pauses of which some are longer than a heartbeat. */
function stepsOf(bytes: Buffer, random: Random): ScriptStep[] {
  const steps: ScriptStep[] = [{ status: 200, headers: { 'content-type': 'text/event-stream' } }]
  const longest = random.pick([40, 300, 3_000])
  const long = random.chance(0.4) ? 0.15 : 0
  for (let at = 0; at < bytes.length; ) {
    const end = at + random.integer(1, longest)
    steps.push({ chunkBase64: bytes.subarray(at, end).toString('base64') })
    at = end
    if (random.chance(0.3)) steps.push({ waitMilliseconds: random.integer(1, 12) })
    if (random.chance(long)) steps.push({ waitMilliseconds: random.integer(HEARTBEAT_MS, 4 * HEARTBEAT_MS) })
  }
  return steps
}

const open = async (dialect: Dialect, steps: ScriptStep[], mark = '') => {
  const script = await registerScript(gateway, steps)
  const body = JSON.stringify(dialect.route.request(`${mark} ${script}`, { stream: true, ...dialect.more }))
  return openStream(gateway.baseUrl + dialect.route.path, bearer(tenant.key), body)
}

/** Received text without the gateway's heartbeats, each of which must be between two frames. */
function withoutHeartbeats(text: string, heartbeat: string): string {
  return text
    .split(/(?<=\n\n)/)
    .filter((frame) => frame !== heartbeat)
    .join('')
}

type Stream = Awaited<ReturnType<typeof open>>

/** Reads all, stopping now and then. */
async function readSlowly(stream: Stream, random: Random): Promise<string> {
  let isOver = false
  const ended = stream.end().finally(() => {
    isOver = true
  })
  for (let pauses = 0; pauses < 4 && !isOver && random.chance(0.5); pauses++) {
    stream.pause()
    await new Promise((resolve) => setTimeout(resolve, random.integer(1, 400)))
    stream.resume()
    await new Promise((resolve) => setTimeout(resolve, random.integer(1, 50)))
  }
  return ended
}

async function runWhole(dialect: Dialect, random: Random): Promise<void> {
  const texts = textsOf(random)
  const sent = dialect.frames(texts).join('')
  const stream = await open(dialect, stepsOf(Buffer.from(sent), random))
  const received = await readSlowly(stream, random)
  expect(withoutHeartbeats(received, dialect.heartbeat)).toBe(sent)
  const { record } = await auditEntryOf(gateway, tenant, stream.headers['x-request-id'])
  expect(record).toMatchObject({ errorCode: null, provenance: 'reported', usage: { output: texts.length } })
  const { inspected, uninspected, released, withheld } = record.response as InspectionCounts
  expect({ read: inspected + uninspected, released, withheld }).toEqual({
    read: Buffer.byteLength(sent),
    released: Buffer.byteLength(sent),
    withheld: 0,
  })
}

/** A part of the cut frame was sent; it is ended before the failure. */
async function runCut(dialect: Dialect, random: Random): Promise<void> {
  const frames = dialect.frames(textsOf(random))
  const whole = Buffer.from(frames.join(''))
  const first = Buffer.byteLength(frames[0] as string)
  const lastFrames = Buffer.byteLength(frames.slice(-3).join(''))
  const cutAt = random.integer(first, whole.length - lastFrames)
  const sent = whole.subarray(0, cutAt)
  const isReset = random.chance(0.5)
  // A reset overtakes bytes that the other side has not read yet.
  const steps = [...stepsOf(sent, random), { waitMilliseconds: 100 }]
  const stream = await open(dialect, [...steps, isReset ? { destroy: true } : { end: true }])
  const received = withoutHeartbeats(await stream.end(), dialect.heartbeat)
  const failure = dialect.failure(
    isReset ? 'The upstream broke off its answer.' : 'The upstream ended its answer early.',
  )
  const wholeFrames = sent.subarray(0, sent.lastIndexOf('\n\n') + 2)
  const torn = Buffer.concat([sent, Buffer.from(sent.length > wholeFrames.length ? '\n\n' : '')])
  const possible = [torn, wholeFrames].map((bytes) => bytes.toString() + failure)
  expect(possible).toContain(received)
  const { record } = await auditEntryOf(gateway, tenant, stream.headers['x-request-id'])
  expect(record).toMatchObject({ status: 200, errorCode: 'stream_error' })
}

/** By the text that finds the request upstream: when the caller left, and its request id. */
const left = new Map<string, { at: number; id: string }>()

async function runLeaving(dialect: Dialect, random: Random): Promise<void> {
  const mark = uniqueName('leaving')
  const sent = Buffer.from(dialect.frames(textsOf(random)).slice(0, -3).join(''))
  const stream = await open(dialect, [...stepsOf(sent, random), { waitForSignal: uniqueName('never') }], mark)
  await new Promise((resolve) => setTimeout(resolve, random.integer(1, 500)))
  stream.leave()
  left.set(mark, { at: Date.now(), id: String(stream.headers['x-request-id']) })
}

/** Checked once for all streams, because the upstream returns all its requests together. */
async function expectSettled(): Promise<void> {
  const seen = await vi.waitFor(
    async () => {
      const requests = (await upstreamControl(gateway).requests()) as UpstreamRequest[]
      const own = requests.filter(({ body }) => left.has(markOf(body)))
      const isOpen = own.some(({ clientClosedAt }) => clientClosedAt === null)
      if (isOpen || own.length < left.size) throw new Error('upstream calls go on')
      return own
    },
    { timeout: 20_000, interval: 500 },
  )
  const late = seen.filter(
    ({ body, clientClosedAt }) =>
      Number(clientClosedAt) - (left.get(markOf(body))?.at ?? 0) > CLOSED_WITHIN_MS,
  )
  expect(late.map(({ body, clientClosedAt }) => ({ body, clientClosedAt }))).toEqual([])
  await flush(gateway, tenant)
  const entries = new Map((await auditEntries(gateway, tenant)).map((entry) => [entry.request_id, entry]))
  for (const { id } of left.values()) {
    expect(entries.get(id)?.record).toMatchObject({ status: 499, errorCode: 'client_left' })
  }
}

const markOf = (body: string) => /leaving-\w+/.exec(body)?.[0] ?? ''

const RUNS = { whole: runWhole, cut: runCut, leaving: runLeaving }

describe.each(SEEDS)('streams that the runtime carries (seed %i)', (seed) => {
  it.each(['whole', 'cut', 'leaving'] as const)('%s', { timeout: 300_000 }, async (kind) => {
    const random = new Random(seed)
    let trials = 0
    const failures: string[] = []
    const worker = async (): Promise<void> => {
      while (trials < TRIALS) {
        const trial = trials++
        const dialect = random.pick([MESSAGES, CHAT])
        const own = new Random(seed * 100_000 + trial)
        await RUNS[kind](dialect, own).catch((error) =>
          failures.push(`trial ${trial}, ${dialect.route.name}: ${String(error).slice(0, 1_500)}`),
        )
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    expect(failures).toEqual([])
    if (kind === 'leaving') await expectSettled()
  })
})

const floodRequest = (megabytes: number): string =>
  JSON.stringify(MESSAGES.route.request(`script:flood bytes=${megabytes * MEGABYTE}`, { stream: true }))

/**
 * One caller that reads everything. A process that has carried nothing yet grows by 100 MB, its heap's working size, however
 * its callers read; what is held for callers that do not read comes on top.
 */
async function warmUp(): Promise<void> {
  for (let stream = 0; stream < 4; stream++) {
    const request = { method: 'POST', headers: bearer(tenant.key), body: floodRequest(32) }
    const answer = await fetch(gateway.baseUrl + MESSAGES.route.path, request)
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(32 * MEGABYTE)
  }
}

describe.skipIf(!TELLS_MEMORY)('fifty callers that do not read', () => {
  it('do not make the gateway buffer their streams', { timeout: 120_000 }, async () => {
    const memory = new ResidentMemory(gateway.pids.workerd)
    await warmUp()
    const before = memory.now()
    const { peak } = await memory.peakOf(async () => {
      const streams = await Promise.all(
        Array.from({ length: 50 }, async () => {
          const url = gateway.baseUrl + MESSAGES.route.path
          const stream = await openStream(url, bearer(tenant.key), floodRequest(64))
          stream.pause()
          return stream
        }),
      )
      await new Promise((resolve) => setTimeout(resolve, 6_000))
      for (const stream of streams) stream.leave()
    })
    expect(Math.round((peak - before) / MEGABYTE)).toBeLessThan(96)
  })
})
