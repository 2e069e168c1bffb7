import { setTimeout as pause } from 'node:timers/promises'
import { neon, neonConfig } from '@neondatabase/serverless'
import { drizzle } from 'drizzle-orm/neon-http'
import { expect, vi } from 'vitest'
import { createRunQueue } from '../../../src/agents/queue/run-queue.ts'
import { republishVerdicts } from '../../../src/agents/runs/publish-verdict.ts'
import { republishOverdue } from '../../../src/agents/runs/sweep.ts'
import { parseConfiguration } from '../../../src/env.ts'
import type { FaultMode } from '../../faults/support/fault-proxy.ts'
import type { Random } from '../../faults/support/random.ts'
import { inParallel } from '../../faults/support/response-trials.ts'
import { query } from '../gateway.ts'
import { send } from '../send.ts'
import { KILL_PATH } from './kill-path.ts'
import { type DrivenRun, driveRun } from './run-driver.ts'
import { plannedRun } from './scripted-runs.ts'
import type { TapeSystem } from './tape-system.ts'
import { UpstreamTape } from './upstream-tape.ts'

/** Parts that fail besides the messages. */
export type Fault = 'gateway' | 'objects' | 'postgres' | 'queue' | 'leases'

export interface CampaignOptions {
  runs: number
  /** Runs that are driven at the same time. */
  together: number
  /** None: only the messages are lost, repeated, late and forged. */
  faults: readonly Fault[]
}

/** Record of a campaign, for the checks of its runs. */
export interface CampaignReport {
  runs: DrivenRun[]
  upstream: UpstreamTape
  /** How often each fault happened. */
  happened: Record<string, number>
}

const POSTGRES_FAULTS: FaultMode[] = [
  'refuse',
  'error',
  'hang',
  'lose_answers',
  'lose_answers',
  { delayMilliseconds: 100 },
]
/** Revisions of runs between two faults. */
const MOST_BETWEEN = 30
const POLL_MS = 200
/** Between two sweeps; each sees everything that was published before as overdue. */
const SWEEP_MS = 4_000
const SWEEP_STEP_MS = 130_000
const SWEEP_AHEAD_MS = 400_000
/** A record of a tool call that was cut off is written when its lease ends. */
const SETTLED_MS = 120_000

/** Drives runs while messages and parts of the system fail, until each has ended and nothing is open any more. */
export async function runAgentCampaign(
  system: TapeSystem,
  random: Random,
  { runs, together, faults }: CampaignOptions,
): Promise<CampaignReport> {
  const upstream = new UpstreamTape(system.gateway)
  const sweep = sweeper(system)
  const end = new AbortController()
  const happened: Record<string, number> = {}
  const watching = repeat(end.signal, SWEEP_MS, async () => {
    await upstream.read()
    await sweep().catch(() => {})
  })
  const breaking = faults.length > 0 ? breakOn(system, random, faults, happened, end.signal) : null
  const plans = Array.from({ length: runs }, () => plannedRun(random, system.tool))
  try {
    const driven = await inParallel(runs, together, async (index) => {
      const plan = plans[index]
      return plan ? driveRun(system, plan) : []
    })
    end.abort()
    await Promise.all([watching, breaking])
    system.tape.calm()
    await quiet(system, sweep)
    await upstream.read()
    return { runs: driven.flat(), upstream, happened }
  } finally {
    end.abort()
  }
}

async function repeat(signal: AbortSignal, milliseconds: number, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await work()
    await pause(milliseconds, undefined, { signal }).catch(() => {})
  }
}

/** The sweep of the scheduled job, with a clock that is moved: every message that is not done is overdue. */
function sweeper({ gateway }: TapeSystem): () => Promise<void> {
  const configuration = parseConfiguration(gateway.variables)
  neonConfig.fetchEndpoint = (host, port) => `http://${host}:${port}/sql`
  const database = drizzle({ client: neon(configuration.DATABASE_URL) })
  const runQueue = createRunQueue(configuration)
  let ahead = SWEEP_AHEAD_MS
  return async () => {
    ahead += SWEEP_STEP_MS
    const clock = () => Date.now() + ahead
    await republishOverdue({ database, runQueue, clock })
    await republishVerdicts({ database, runQueue, clock })
  }
}

/** Breaks one thing after the other. At the end, everything works. */
async function breakOn(
  system: TapeSystem,
  random: Random,
  faults: readonly Fault[],
  happened: Record<string, number>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await progress(system, random.integer(0, MOST_BETWEEN), signal)
    if (signal.aborted) return
    const fault = random.pick(faults)
    happened[fault] = (happened[fault] ?? 0) + 1
    await BREAK[fault](system, random)
  }
}

/** Waits for so many revisions of runs: after a fixed time, a busy machine would have done nothing, and a fast one all. */
async function progress({ gateway, tenant }: TapeSystem, wanted: number, signal: AbortSignal): Promise<void> {
  const revisions = async () => {
    const text = 'SELECT coalesce(sum(rev), 0)::int AS revisions FROM runs WHERE organization_id = $1'
    const [row] = await query(gateway, text, [tenant.organizationId])
    return Number(row?.revisions)
  }
  const before = await revisions()
  while (!signal.aborted && (await revisions()) < before + wanted) {
    await pause(POLL_MS, undefined, { signal }).catch(() => {})
  }
}

const BREAK: Record<Fault, (system: TapeSystem, random: Random) => Promise<void>> = {
  /** Its deliveries and all its objects die. Their leases are over then: their time is not waited for. */
  async gateway(system, random) {
    await system.gateway.workerd.kill('SIGKILL')
    await pause(random.integer(0, 300))
    await endLeases(system)
    await system.gateway.workerd.restart()
  },
  async objects({ gateway, tenant }, random) {
    const rows = await query(
      gateway,
      `SELECT response_id FROM run_steps WHERE organization_id = $1 AND status = 'running'`,
      [tenant.organizationId],
    )
    const ids = rows.map(({ response_id: id }) => String(id)).filter(() => random.chance(0.4))
    const kill = (id: string) =>
      send(`${gateway.baseUrl}${KILL_PATH}${tenant.organizationId}/${id}`, { method: 'POST' })
    await Promise.allSettled(ids.map(kill))
  },
  /** Deliveries could not end their leases. */
  async postgres(system, random) {
    await system.postgres.become(random.pick(POSTGRES_FAULTS))
    await pause(random.integer(50, 1_500))
    await system.postgres.become('pass')
    await endLeases(system)
  },
  async queue({ tape }, random) {
    tape.away = true
    await pause(random.integer(50, 1_500))
    tape.away = false
  },
  /** Ends leases early, as if deliveries took longer: several then work on one run. */
  leases: endLeases,
}

async function endLeases({ gateway, tenant }: TapeSystem): Promise<void> {
  const text = 'UPDATE runs SET leased_until = now() WHERE organization_id = $1 AND leased_until > now()'
  await query(gateway, text, [tenant.organizationId])
}

/** Waits until no run, message, verdict and response is open, which the sweep brings about. */
async function quiet({ gateway, tenant }: TapeSystem, sweep: () => Promise<void>): Promise<void> {
  const open = `SELECT
      (SELECT count(*)::int FROM runs WHERE organization_id = $1 AND status = 'in_progress') AS runs,
      (SELECT count(*)::int FROM run_outbox WHERE organization_id = $1) AS messages,
      (SELECT count(*)::int FROM due_verdicts WHERE organization_id = $1) AS verdicts,
      (SELECT count(*)::int FROM responses WHERE organization_id = $1 AND status = 'in_progress') AS responses,
      (SELECT count(*)::int FROM conversations WHERE organization_id = $1 AND writer IS NOT NULL) AS locks`
  await vi.waitFor(
    async () => {
      await sweep()
      const [row] = await query(gateway, open, [tenant.organizationId])
      expect(row).toEqual({ runs: 0, messages: 0, verdicts: 0, responses: 0, locks: 0 })
    },
    { timeout: SETTLED_MS, interval: 1_000 },
  )
}
