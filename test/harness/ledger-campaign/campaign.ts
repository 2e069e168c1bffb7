import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { buildWorker } from '../../../scripts/build.ts'
import type { CallOpening, CallOutcome } from '../../../src/ledger/audit-record.ts'
import type { CreditBalance } from '../../../src/ledger/contract.ts'
import { ledgerName } from '../../../src/ledger/ledger-object.ts'
import { GENESIS } from '../../../src/ledger/records/chain.ts'
import type { RecordBody } from '../../../src/ledger/records/record-body.ts'
import { verifyLinks } from '../../../src/ledger/records/verify.ts'
import { newId } from '../../../src/lib/ids.ts'
import { Random } from '../../faults/support/random.ts'
import { query } from '../gateway.ts'
import { auditRows } from '../invariants.ts'
import { type StartedGateway, startGateway } from '../start-gateway.ts'
import type { CallTold, CommitFault, ScriptedCall } from './worker.ts'

/** Calls of one organization that are made at the same time. */
const TOGETHER = 12
/** Organizations whose trials run at the same time. */
const TRIALS_TOGETHER = 6
/** How many shards a ledger has; every other trial has the first. */
const SHARDS = [1, 4] as const
const BALANCE = 400
const LIMIT = 40
const LEASE_MS = 2_500
const COMMIT_FAULTS: CommitFault[] = [
  'killed before',
  'killed after',
  'answer lost',
  'slow before',
  'slow after',
]
/** Two waits of a call, for its admission and for its end or its record, each of ten seconds at most. */
const LONGEST_CALL_MS = 22_000

/** A call with its caller and its fate: its client leaves, its request ends with that, its object is reset. */
const MAKERS = ['left', 'ended', 'reset', 'request', 'request', 'object'] as const
type Maker = (typeof MAKERS)[number]

interface Made {
  call: ScriptedCall
  maker: Maker
  /** Null: nobody was told anything. */
  told: CallTold | null
}

/** A system whose Worker makes calls at ledgers that fail as they are told. @param isBrief as that of `startGateway`. */
export async function startCampaign(
  isBrief = false,
): Promise<{ system: StartedGateway; stop: () => Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-campaign-'))
  const remove = () => rmSync(directory, { recursive: true, force: true })
  try {
    await buildWorker(directory, { entry: 'test/harness/ledger-campaign/worker.ts' })
    const system = await startGateway({
      bundleDirectory: directory,
      isBrief,
      variables: { LEDGER_FLUSH_MS: '100' },
      worker: { entry: 'worker.js', durableObjects: { LEDGER: 'Ledger', LEDGER_CALLERS: 'LedgerCaller' } },
    })
    return { system, stop: () => system.stop().finally(remove) }
  } catch (error) {
    remove()
    throw error
  }
}

/**
 * Runs trials until so many commits, leaders and callers have failed, and expects after each that nothing was lost,
 * doubled or overspent, and that no caller hung.
 * @param rounds how often a trial makes its calls
 * @returns how many calls came to what.
 */
export async function runCampaign(
  system: StartedGateway,
  wanted: number,
  rounds = 4,
): Promise<Record<string, number>> {
  const made: Made[] = []
  const faults = async () => Number(await ask(system, '/happened', null)) + made.filter(isLost).length
  for (let seed = 1; (await faults()) < wanted; seed += TRIALS_TOGETHER) {
    const seeds = Array.from({ length: TRIALS_TOGETHER }, (_, index) => seed + index)
    made.push(...(await Promise.all(seeds.map((each) => runTrial(system, new Random(each), rounds)))).flat())
  }
  const counts: Record<string, number> = { faults: await faults() }
  for (const { told, maker } of made) {
    const kind = `${maker} ${told?.admission.kind ?? 'lost'}`
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

const isLost = ({ told, maker }: Made) => told === null && maker !== 'request' && maker !== 'object'

async function runTrial(system: StartedGateway, random: Random, rounds: number): Promise<Made[]> {
  const organizationId = crypto.randomUUID()
  const shards = random.pick(SHARDS)
  const began = Date.now()
  const ledger = ledgerOf(system, organizationId)
  await ledger('grantCredits', grantOf(organizationId))
  const made: Made[] = []
  for (let round = 0; round < rounds; round += 1) {
    const faults = () => Array.from({ length: random.integer(0, 2) }, () => random.pick(COMMIT_FAULTS))
    await setFaults(system, organizationId, shards, faults)
    const calls = Array.from({ length: TOGETHER }, () => make(system, organizationId, shards, random))
    made.push(...(await Promise.all(calls)))
    await setFaults(system, organizationId, shards, () => [])
    const { available } = (await ledger('balance')) as CreditBalance
    expect(available).toBeGreaterThanOrEqual(0)
  }
  const balance = await settledBalance(system, organizationId, made)
  const records = await storedRecords(system, organizationId, shards, balance)
  expectToldTheTruth(made, records)
  const minuteOf = (at: number) => Math.floor(at / 60_000)
  const admitted = made.filter(({ told }) => told?.admission.kind === 'admitted')
  // Several shards hear of each other four times a second only.
  const isExact = shards === 1 && minuteOf(began) === minuteOf(Date.now())
  if (isExact) expect(admitted.length).toBeLessThanOrEqual(LIMIT)
  return made
}

async function setFaults(
  system: StartedGateway,
  organizationId: string,
  shards: number,
  faults: () => CommitFault[],
): Promise<void> {
  for (let shard = 0; shard < shards; shard += 1) {
    const name = ledgerName(organizationId, shard)
    await ask(system, '/faults', { name, next: faults() })
    if (shards > 1) await ask(system, '/faults', { name: `${name} transfers`, next: faults() })
  }
}

async function make(
  system: StartedGateway,
  organizationId: string,
  shards: number,
  random: Random,
): Promise<Made> {
  const reserve = random.chance(0.25) ? 0 : random.integer(1, 60)
  const maker = random.pick(MAKERS)
  const call: ScriptedCall = {
    organizationId,
    shard: random.integer(0, shards - 1),
    opening: openingOf(organizationId),
    reserve,
    outcome: outcomeOf(200, random.integer(0, reserve)),
    refusal: outcomeOf(429, 0),
    leaseMilliseconds: LEASE_MS,
    limits: {
      userId: `user-${random.integer(1, 3)}`,
      organizationPerMinute: LIMIT,
      userPerMinute: LIMIT,
      shards,
    },
    upstreamMilliseconds: random.integer(0, 8),
    isHeld: maker !== 'ended',
    byObject: maker === 'object' || maker === 'reset',
    resetAfter: maker === 'reset' ? random.integer(0, 15) : null,
  }
  const leaves = maker === 'left' || maker === 'ended'
  const patience = leaves ? random.integer(0, 15) : LONGEST_CALL_MS
  await new Promise((resolve) => setTimeout(resolve, random.integer(0, 6)))
  const told = await ask<CallTold>(system, '/calls', call, patience).catch((error: Error) => {
    if (!leaves && error.name === 'TimeoutError') throw new Error(`a call hangs (${maker})`)
    return null
  })
  return { call, maker, told }
}

/** @throws TimeoutError for an answer that takes longer, and for one that is no success. */
async function ask<Answer>(
  { baseUrl }: StartedGateway,
  path: string,
  body: unknown,
  milliseconds = 30_000,
): Promise<Answer> {
  const signal = AbortSignal.timeout(milliseconds)
  const response = await fetch(`${baseUrl}${path}`, { method: 'POST', body: JSON.stringify(body), signal })
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
  return (await response.json()) as Answer
}

type AskLedger = (method: string, ...parameters: unknown[]) => Promise<unknown>

const ledgerOf =
  (system: StartedGateway, organizationId: string): AskLedger =>
  (method, ...parameters) =>
    ask(system, '/ledger', { organizationId, method, parameters })

/**
 * Waits until every lease has run out, every call that was admitted has its record (one that reserved nothing shows
 * nowhere else), and Postgres has everything; nobody but the ledger's alarm settles.
 */
async function settledBalance(
  system: StartedGateway,
  organizationId: string,
  made: readonly Made[],
): Promise<number> {
  const ledger = ledgerOf(system, organizationId)
  const admitted = made.filter(({ told }) => told?.admission.kind === 'admitted')
  const ids = admitted.map(({ call }) => call.opening.callId)
  return vi.waitFor(
    async () => {
      const { pending } = (await ledger('flush')) as { pending: number }
      const [stored] = await query(
        system,
        `select (select count(*)::int from audit_records where organization_id = $1 and id = any($2)) as calls,
          (select sum(amount)::int from credit_entries where organization_id = $1) as balance`,
        [organizationId, ids],
      )
      const { balance, reserved } = (await ledger('balance')) as CreditBalance
      // A transfer between shards whose answer was lost is on its way until it is asked for again.
      expect({ reserved, pending, ...stored }).toEqual({
        reserved: 0,
        pending: 0,
        calls: ids.length,
        balance,
      })
      return balance
    },
    { timeout: 20_000, interval: 100 },
  )
}

async function storedRecords(
  system: StartedGateway,
  organizationId: string,
  shards: number,
  balance: number,
): Promise<Map<string, RecordBody>> {
  const chains = await Promise.all(
    Array.from({ length: shards }, (_, shard) => auditRows(system, organizationId, shard)),
  )
  for (const chain of chains) expect(verifyLinks(chain, GENESIS)).toMatchObject({ intact: true })
  const rows = chains.flat()
  const records = new Map(rows.map(({ id, body }) => [id, JSON.parse(body) as RecordBody]))
  expect(records.size).toBe(rows.length)
  expect(balance).toBeGreaterThanOrEqual(0)
  return records
}

function expectToldTheTruth(made: readonly Made[], records: ReadonlyMap<string, RecordBody>): void {
  for (const { call, told } of made) {
    if (told === null) continue
    const record = records.get(call.opening.callId)
    const isAdmitted = told.admission.kind === 'admitted'
    if (isAdmitted || told.isSettled) expect(record, call.opening.callId).toBeDefined()
    if (!told.isSettled || record?.kind !== 'call') continue
    // A lease that ran out while its closing was on its way settles the call as well.
    if (record.flags.includes('settled_by_alarm')) continue
    expect(record.cost).toBe(isAdmitted ? call.outcome.cost : 0)
  }
}

const openingOf = (organizationId: string): CallOpening => ({
  callId: newId('call'),
  requestId: newId('req'),
  organizationId,
  at: Date.now(),
  // Repeated refusals of one key share a record.
  actor: { userId: 'user-1', keyId: crypto.randomUUID(), administrator: null, ip: '192.0.2.1' },
  surface: 'chat_completions',
  action: 'POST /v1/chat/completions',
  modelId: 'test-model',
})

const outcomeOf = (status: number, cost: number): CallOutcome => ({
  status,
  errorCode: null,
  provider: 'test-provider',
  attempts: [],
  usage: null,
  provenance: null,
  cost,
  durationMilliseconds: 1,
  request: null,
  response: null,
  dlp: null,
  connectionId: null,
  flags: [],
})

const grantOf = (organizationId: string) => ({
  id: newId('grant'),
  amount: BALANCE,
  reason: 'test',
  change: {
    id: newId('change'),
    requestId: newId('req'),
    organizationId,
    at: Date.now(),
    actor: { userId: null, keyId: null, administrator: 'admin_token', ip: null },
    action: 'credits.granted',
    resource: `organizations/${organizationId}`,
    detail: {},
  },
})
