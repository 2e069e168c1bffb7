import { BoundedMap } from '../../lib/bounded-map.ts'
import { systemClock } from '../../lib/clock.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import { withFreshStub } from '../../lib/fresh-stub.ts'
import { withinTime } from '../../lib/time-limit.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../principal.ts'
import type { CheckColumns } from './account/admission-checks.ts'
import type { CommitAnswer, CommitBatch } from './commits/commit.ts'
import {
  type CommitEntry,
  callEntry,
  checkColumns,
  closingEntry,
  recordEntry,
} from './commits/commit-entries.ts'
import { ANSWER_LIMIT_MS, CommitQueue, type CommitSender } from './commits/commit-queue.ts'
import { RecentRefusals } from './commits/recent-refusals.ts'
import type { Admission, CallLimits, LedgerClient } from './contract.ts'
import type { LearnedEpochs } from './epochs/known-epochs.ts'
import type { ChainIdentity } from './records/chain.ts'
import { sendGathered } from './rejected-calls/gathered-counts.ts'
import type { HomeShard, ShardBalance } from './shards/shard-escrow.ts'
import { HOME_SHARD } from './shards/shards.ts'

/** What the Durable Object class answers to. */
export interface LedgerObject
  extends Pick<
      LedgerClient,
      'extend' | 'recordChange' | 'grantCredits' | 'balance' | 'flush' | 'announceCatalogue'
    >,
    HomeShard {
  commit(batch: CommitBatch): Promise<CommitAnswer>
  check(columns: CheckColumns, learned: LearnedEpochs | null): Promise<Admission>
  /** Of the home shard: all shards have learnt the organization's epoch when it is answered. */
  learnEpochs(learned: LearnedEpochs): Promise<void>
  /** Of the home shard, before another one admits its first call. @returns the organization's epoch, as far as it is known. */
  registerShard(shard: number): Promise<number | null>
  /** Of every other shard. */
  shardBalance(): Promise<ShardBalance>
  /** Of every other shard: all that it has not reserved goes back to the home shard. @returns micro-credits that it still has. */
  giveBack(): Promise<number>
  /** Of the deployment's ledger. @returns the newest epoch of the catalogue that was announced; null when none was. */
  registerForCatalogue(name: string): Promise<number | null>
  /** @param minute its first millisecond. @param count how many calls, at least 1. */
  countRejected(ip: string, minute: number, surface: string, count: number): Promise<void>
}

/** Objects that keyless calls are counted in; which one is decided by the address. */
const REJECTED_CALL_OBJECTS = 8

/** Name of the object that holds a shard of an organization's ledger. */
export const ledgerName = (organizationId: string, shard = HOME_SHARD) => `${organizationId}:${shard}`

/** The object that audits changes to the deployment itself, and announces changes of the catalogue. */
export const DEPLOYMENT_LEDGER = ledgerName(DEPLOYMENT_ORGANIZATION_ID)

/**
 * Reads the name of an object back.
 * @throws if it is no ledger's name, or unknown because the object was found by id.
 */
export function parseLedgerName(name: string | undefined): ChainIdentity {
  const [, organizationId, shard] = /^([0-9a-f-]{36}):(\d{1,4})$/.exec(name ?? '') ?? []
  if (organizationId === undefined) throw new Error('this object was not found by the name of a ledger')
  return { organizationId, shard: Number(shard) }
}

/** Name of the object that counts the refused calls of an address. */
export function rejectedCallsName(ip: string): string {
  return `unauthenticated:${Number.parseInt(sha256Hex(ip).slice(0, 8), 16) % REJECTED_CALL_OBJECTS}`
}

/** What the requests of an isolate share of one ledger: plain data and plain promises. */
export interface Shared {
  queue: CommitQueue
  refusals: RecentRefusals
}

/** What is shared, by ledger. */
export type SharedLedgers = WeakMap<DurableObjectNamespace, BoundedMap<string, Shared>>

/** Of all requests to the Worker in this isolate. */
const sharedByRequests: SharedLedgers = new WeakMap()

/**
 * Of one Durable Object alone: a promise that one object awaits cannot be resolved by another, nor by a request
 * ("Cannot perform I/O on behalf of a different Durable Object").
 */
export const unsharedLedgers = (): SharedLedgers => new WeakMap()

/** Which shard of a ledger is used, and with whom its commits are shared. */
export interface LedgerUse {
  /** Has the calls that are admitted, closed, extended and recorded. */
  shard?: number | undefined
  /** Whose calls travel together; those of all requests of this isolate when left out. */
  ledgers?: SharedLedgers | undefined
}

function sharedOf(shared: SharedLedgers, namespace: DurableObjectNamespace, name: string): Shared {
  const ledgers = shared.get(namespace) ?? new BoundedMap<string, Shared>(1_000)
  shared.set(namespace, ledgers)
  const known = ledgers.get(name) ?? { queue: new CommitQueue(), refusals: new RecentRefusals() }
  ledgers.set(name, known)
  return known
}

/**
 * The ledger of an organization, for one request or object. Calls and their ends travel with those of other requests
 * (`CommitQueue`); all else is asked for alone. A question that fails on its way is put once more on a fresh stub, since
 * a stub whose object went away stays broken and every question is idempotent. An object that has not answered in ten
 * seconds has failed, and is not asked again: what it was told may still take effect, so a call that was refused for it
 * can stay open there until its lease runs out.
 * @param waitUntil of the request that uses it.
 */
export function ledgerClient(
  namespace: DurableObjectNamespace,
  organizationId: string,
  waitUntil: (work: Promise<unknown>) => void = () => {},
  { shard = HOME_SHARD, ledgers = sharedByRequests }: LedgerUse = {},
): LedgerClient {
  const name = ledgerName(organizationId, shard)
  const ask = <Result>(use: (ledger: LedgerObject) => Promise<Result>) => askLedger(namespace, name, use)
  const home = ledgerName(organizationId)
  const askHome = <Result>(use: (ledger: LedgerObject) => Promise<Result>) => askLedger(namespace, home, use)
  const sender: CommitSender = {
    send: (batch, milliseconds) => {
      const stub = namespace.getByName(name) as unknown as LedgerObject
      return withinTime(stub.commit(batch), milliseconds, 'the ledger')
    },
    waitUntil,
  }
  const isolate = sharedOf(ledgers, namespace, name)
  const submit = (entry: CommitEntry) => submitEntry(isolate, entry, sender)
  return {
    admit: async (call) => submit(callEntry(organizationId, call)),
    check: ({ epochs, learned, limits }) =>
      remembering(isolate, limits, () =>
        ask((ledger) => ledger.check(checkColumns({ epochs, learned, limits }), learned)),
      ),
    close: async (callId, outcome) => void (await submit(closingEntry(callId, outcome))),
    extend: (callId, leaseMilliseconds, progress) =>
      ask((ledger) => ledger.extend(callId, leaseMilliseconds, progress)),
    record: async (opening, outcome, counted) =>
      submit(recordEntry(organizationId, opening, outcome, counted)),
    recordChange: (change) => askHome((ledger) => ledger.recordChange(change)),
    grantCredits: (grant) => askHome((ledger) => ledger.grantCredits(grant)),
    balance: () => askHome((ledger) => ledger.balance()),
    flush: () => askHome((ledger) => ledger.flush()),
    learnEpoch: (organization) => askHome((ledger) => ledger.learnEpochs({ organization, catalogue: null })),
    announceCatalogue: (epoch) => askHome((ledger) => ledger.announceCatalogue(epoch)),
  }
}

/** @throws RangeError for an entry that cannot be stored, and what the way to the ledger throws. */
function submitEntry(
  { queue, refusals }: Shared,
  entry: CommitEntry,
  sender: CommitSender,
): Promise<Admission> {
  const limits = entry.kind === 'closing' ? null : entry.checks.limits
  return remembering({ refusals }, limits, async () => {
    const verdict = await queue.submit(entry, sender)
    if (verdict?.kind === 'invalid') throw new RangeError(verdict.message)
    return verdict ?? { kind: 'admitted' }
  })
}

/** Repeats what a limit refused a moment ago. */
async function remembering(
  { refusals }: Pick<Shared, 'refusals'>,
  limits: CallLimits | null,
  ask: () => Promise<Admission>,
): Promise<Admission> {
  if (limits === null) return ask()
  const known = refusals.find(limits, systemClock())
  if (known) return known
  const admission = await ask()
  if (admission.kind === 'limited') refusals.note(limits, admission, systemClock())
  return admission
}

/**
 * Counts a call that was refused before anybody was known; of an address that goes on being refused, the object is
 * told once a second. Not repeated on failure: a count too many would be as wrong as one too few.
 * @param call.at milliseconds since the epoch.
 */
export async function countRejectedCall(
  namespace: DurableObjectNamespace,
  call: { ip: string; at: number; surface: string },
): Promise<void> {
  const { ip, at, surface } = call
  const minute = at - (at % 60_000)
  await sendGathered(JSON.stringify([ip, minute, surface]), at, (count) => {
    const stub = namespace.getByName(rejectedCallsName(ip)) as unknown as LedgerObject
    return withinTime(stub.countRejected(ip, minute, surface, count), ANSWER_LIMIT_MS, 'the counting object')
  })
}

/** Asks a ledger's object; once more on a fresh stub when that fails on its way. @throws after ten seconds at the latest. */
export async function askLedger<Result>(
  namespace: DurableObjectNamespace,
  name: string,
  use: (ledger: LedgerObject) => Promise<Result>,
): Promise<Result> {
  let waiting = true
  try {
    const answer = withFreshStub(namespace, name, use, () => waiting)
    return await withinTime(answer, ANSWER_LIMIT_MS, 'the ledger')
  } finally {
    waiting = false
  }
}
