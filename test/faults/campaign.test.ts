import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { expectWholeLedger } from '../harness/invariants.ts'
import { CALL_KINDS, type CallResult, callModel, type Leaving } from '../harness/model-calls.ts'
import type { Tenant } from '../harness/tenant.ts'
import type { FaultMode } from './support/fault-proxy.ts'
import { type FaultyGateway, SEEDS, startFaultyGateway, TRIALS } from './support/faulty-gateway.ts'
import { Random } from './support/random.ts'

/** Clients that call at the same time. */
const CLIENTS = 6
/**
 * Limit of the slowest call: three queries to Postgres (caller, rights, start of the ledger) and one request to the
 * upstream, each with a time-out.
 */
const BOUND_MS = 35_000

const SCRIPTS = [
  'canned',
  'canned',
  'long-stream tokens=50 delay=5',
  'stall',
  'slow-headers delay=300',
  'silent-stream',
  'mid-stream-cut',
  'mid-stream-error',
  'empty-body',
  'error-429',
  'error-500',
]
const MODES: FaultMode[] = ['refuse', 'hang', 'error', 'lose_answers', { delayMilliseconds: 400 }]
const FAULTS = ['redis', 'postgres', 'both', 'kill', 'kill', 'upstream hangs', 'postgres and kill'] as const

let faulty: FaultyGateway
beforeAll(async () => {
  faulty = await startFaultyGateway({ DEGRADED_RATE_LIMIT: 1_000_000 })
})
afterAll(() => faulty?.stop())

/** Clients that call until they are stopped. */
class Clients {
  readonly results: CallResult[] = []
  readonly #random: Random
  readonly #tenant: Tenant
  readonly #running: Promise<unknown>
  /** New calls wait for it. */
  #open: Promise<void> = Promise.resolve()
  #stopped = false
  #waiting: Array<{ count: number; resolve: () => void }> = []

  constructor(random: Random, tenant: Tenant) {
    this.#random = random
    this.#tenant = tenant
    this.#running = Promise.all(Array.from({ length: CLIENTS }, () => this.#callOn()))
  }

  /** Resolves when so many more calls have ended. */
  ended(more: number): Promise<void> {
    return new Promise((resolve) => this.#waiting.push({ count: this.results.length + more, resolve }))
  }

  /** Holds new calls back while something is done, such as starting a server that they would find closed. */
  async without(work: () => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#open = promise
    await work().finally(resolve)
  }

  async stop(): Promise<CallResult[]> {
    this.#stopped = true
    await this.#running
    return this.results
  }

  async #callOn(): Promise<void> {
    while (!this.#stopped) {
      await this.#open
      this.results.push(await this.#callOnce())
      const due = this.#waiting.filter(({ count }) => count <= this.results.length)
      this.#waiting = this.#waiting.filter(({ count }) => count > this.results.length)
      for (const { resolve } of due) resolve()
    }
  }

  #callOnce(): Promise<CallResult> {
    const random = this.#random
    const leavings: Leaving[] = [
      { afterMilliseconds: random.integer(0, 300) },
      { afterPieces: random.integer(0, 4) },
    ]
    const leaving = random.chance(0.5) ? random.pick(leavings) : undefined
    return callModel(faulty.gateway, random.pick(CALL_KINDS), {
      key: this.#tenant.key,
      text: `script:${random.pick(SCRIPTS)}`,
      boundMilliseconds: BOUND_MS,
      ...(leaving && { leaving }),
    })
  }
}

/** Breaks something, lets some calls run into it, and mends it. */
async function breakOnce(random: Random, clients: Clients): Promise<void> {
  const { gateway, redis, postgres } = faulty
  const fault = random.pick(FAULTS)
  const some = () => clients.ended(random.integer(1, CLIENTS))
  if (fault === 'redis' || fault === 'both') await redis.become(random.pick(MODES))
  if (fault.startsWith('postgres') || fault === 'both') await postgres.become(random.pick(MODES))
  if (fault === 'upstream hangs') gateway.processes.modelUpstream.signal('SIGSTOP')
  await some()
  if (fault.endsWith('kill')) {
    await clients.without(() => gateway.workerd.restart())
    await some()
  }
  gateway.processes.modelUpstream.signal('SIGCONT')
  for (const proxy of [redis, postgres]) if (proxy.mode !== 'pass') await proxy.become('pass')
}

describe('with everything failing at random', () => {
  it.each(SEEDS)('no call is lost, doubled or left hanging (seed %i)', async (seed) => {
    const random = new Random(seed)
    const tenant = await createBusyTenant(faulty.gateway, 10_000_000_000)
    const clients = new Clients(random, tenant)
    for (let fault = 0; fault < Math.ceil(TRIALS / 3); fault += 1) await breakOnce(random, clients)
    const results = await clients.stop()
    const after = await Promise.all(
      CALL_KINDS.map((kind) => callModel(faulty.gateway, kind, { key: tenant.key, text: 'all well again' })),
    )
    expect(after.map(({ status }) => status)).toEqual(after.map(() => 200))
    const all = [...results, ...after]
    expect(
      all.filter(({ end }) => end === 'hung').map(({ kind, status }) => `${kind.name} ${status}`),
    ).toEqual([])
    const { calls } = await expectWholeLedger(faulty.gateway, tenant, all)
    expect(calls.length).toBeLessThanOrEqual(all.length)
    // Something of everything has to have happened, or the campaign shows nothing.
    expect(all.filter(({ status }) => status === 200).length).toBeGreaterThan(TRIALS / 10)
    expect(all.filter(({ end }) => end === 'left').length).toBeGreaterThan(TRIALS / 20)
  })
})
