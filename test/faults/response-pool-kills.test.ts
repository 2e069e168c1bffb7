import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { upstreamControl } from '../harness/gateway.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import type { CallResult } from '../harness/model-calls.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { type Tenant, uniqueName } from '../harness/tenant.ts'
import { Random } from './support/random.ts'
import {
  askJson,
  expectSeenIn,
  expectWholeStream,
  type Reading,
  read,
  replay,
  responseIdIn,
  type ToldResponse,
} from './support/response-readers.ts'
import { endedRows, inParallel } from './support/response-trials.ts'

/** Responses that are killed: `npm run test:faults -- --pool-kill-runs 1000`. */
const RUNS = Number(process.env.POOL_KILL_RUNS || 64)
/** Responses that are live in one object when its process is killed. */
const LIVE = 32
const AT_ONCE = 8

let gateway: StartedGateway
beforeAll(async () => {
  gateway = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    variables: {
      LEDGER_FLUSH_MS: '100',
      LEDGER_LEASE_MS: '2000',
      LIMITS_TIMEOUT_MS: '20000',
      RESPONSE_COMMIT_MS: '300',
    },
  })
})
afterAll(() => gateway?.stop())

/** A response that is brought into one phase before the kill. */
interface Trial {
  /** Text that the upstream gets in requests of this response only. */
  mark: string
  kind: Kind
  reading: Reading
}

/** State of a response at the kill. Ending ones may be in the middle of their last write. */
const KINDS = ['dispatching', 'generating', 'streaming', 'whole', 'background', 'stored', 'ending'] as const
type Kind = (typeof KINDS)[number]

const inputOf = (kind: Kind, mark: string, signal: string): string => {
  if (kind === 'dispatching') return `script:slow-headers signal=${signal} ${mark}`
  if (kind === 'streaming') return `script:long-stream tokens=2000 delay=2 ${mark}`
  if (kind === 'ending') return `script:long-stream tokens=5 delay=1 ${mark}`
  return `script:stall signal=${signal} ${mark}`
}

function begin({ key }: Tenant, kind: Kind, signal: string): Trial {
  const mark = uniqueName('killed')
  const body = {
    model: 'scripted-chat',
    input: inputOf(kind, mark, signal),
    stream: kind !== 'whole' && kind !== 'background',
    background: kind === 'background',
    store: kind === 'stored' || kind === 'background' || kind === 'ending',
  }
  return { mark, kind, reading: read(gateway, { key, method: 'POST', path: '/v1/responses', body }) }
}

/** Kills the gateway while an object has 32 live responses. */
async function killOnce(tenant: Tenant, random: Random) {
  const signal = uniqueName('kill')
  const long = Array.from({ length: LIVE }, (_, index) => KINDS[index % (KINDS.length - 1)] as Kind)
  const trials = long.map((kind) => begin(tenant, kind, signal))
  const upstream = upstreamControl(gateway)
  const isSent = async ({ mark }: Trial) => (await upstream.requests(0, mark)).length > 0
  await vi.waitFor(async () => expect((await Promise.all(trials.map(isSent))).every(Boolean)).toBe(true), {
    timeout: 20_000,
    interval: 20,
  })
  // Some end meanwhile, so that the kill finds commits and writes of all kinds.
  const ending = Array.from({ length: 8 }, () => begin(tenant, 'ending', signal))
  let ended = 0
  for (const { reading } of ending) void reading.result.then(() => ended++)
  const wanted = random.integer(0, ending.length - 1)
  await vi.waitFor(() => expect(ended).toBeGreaterThanOrEqual(wanted), { timeout: 20_000, interval: 2 })
  await gateway.workerd.kill('SIGKILL')
  const all = [...trials, ...ending]
  const results = await Promise.all(all.map(({ reading }) => reading.result))
  await gateway.workerd.restart()
  await upstream.release(signal)
  return { all, results }
}

/** Two readers get the same events, which begin with those read before the kill; no model was called twice. */
async function expectEnded(tenant: Tenant, trial: Trial): Promise<ToldResponse | null> {
  const seen = trial.reading.bytes()
  const requests = await upstreamControl(gateway).requests(0, trial.mark)
  expect(requests.length).toBeLessThanOrEqual(1)
  const isStream = trial.kind !== 'whole' && trial.kind !== 'background'
  const id = isStream ? responseIdIn(seen) : (/"id":"(resp_[^"]+)"/.exec(seen)?.[1] ?? null)
  if (id === null) return null
  expect(id).toMatch(/^resp_[0-9A-Za-z]{37}$/)
  const path = `/v1/responses/${id}`
  const { key } = tenant
  const [whole, again] = await Promise.all([replay(gateway, key, id), replay(gateway, key, id)])
  expect(again).toBe(whole)
  if (isStream) expectSeenIn(whole, seen)
  const last = expectWholeStream(whole)
  expect(await askJson(gateway, { key, path })).toEqual(last)
  expect(['completed', 'failed']).toContain(last.status)
  if (trial.kind !== 'ending') expect(last.status).toBe('failed')
  return last
}

describe('workerd killed with 32 live responses in an object', () => {
  it('ends each once, takes nothing back that a reader got, and asks no model twice', async () => {
    const random = new Random(Number(process.env.POOL_KILL_SEED || 1))
    const tenant = await createBusyTenant(gateway, 100_000_000_000)
    const results: CallResult[] = []
    let killed = 0
    let ended = 0
    while (killed < RUNS) {
      const { all, results: seen } = await killOnce(tenant, random)
      results.push(...seen)
      const told = await inParallel(all.length, AT_ONCE, (index) => expectEnded(tenant, all[index] as Trial))
      // Streams show their ids; those of other answers are lost with them.
      expect(told.filter(Boolean).length).toBeGreaterThan(LIVE / 3)
      const places = told.flatMap((last) => (last ? [last.id.slice(5, 10)] : []))
      // All in one object, or some in the next one if more than 32 were live.
      expect(new Set(places).size).toBeLessThanOrEqual(3)
      killed += LIVE
      ended += told.filter((last) => last?.status === 'completed').length
    }
    console.log(`${killed} live responses were killed, beside ${ended} that had ended`)
    const rows = await endedRows(gateway, tenant)
    expect(rows.every(({ status }) => status === 'completed' || status === 'failed')).toBe(true)
    await expectWholeLedger(gateway, tenant, results)
  }, 3_600_000)
})
