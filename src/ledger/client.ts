import { BoundedMap } from '../lib/bounded-map.ts'
import { systemClock } from '../lib/clock.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { withinTime } from '../lib/time-limit.ts'
import {
  type CommitEntry,
  callEntry,
  checkColumns,
  closingEntry,
  recordEntry,
} from './commits/commit-entries.ts'
import { CommitQueue, type CommitSender } from './commits/commit-queue.ts'
import { RecentRefusals } from './commits/recent-refusals.ts'
import {
  type GatheredRefusals,
  gatheredOutcome,
  isRepeatable,
  RepeatedRefusals,
} from './commits/repeated-refusals.ts'
import type { Admission, CallLimits, LedgerClient } from './contract.ts'
import { callLedger, type LedgerObject, ledgerName } from './ledger-object.ts'
import { HOME_SHARD } from './shards/shards.ts'

/** State of one ledger that the requests of an isolate share: plain data and plain promises. */
interface Shared {
  queue: CommitQueue
  refusals: RecentRefusals
  repeated: RepeatedRefusals
}

/** Shared state, by namespace and name of the ledger. */
export type SharedLedgers = WeakMap<DurableObjectNamespace, BoundedMap<string, Shared>>

/** Shared by all requests to the Worker in this isolate. */
const sharedByRequests: SharedLedgers = new WeakMap()

/**
 * Shared state for one Durable Object alone: a promise that one object awaits cannot be resolved by another, nor by a request
 * ("Cannot perform I/O on behalf of a different Durable Object").
 */
export const unsharedLedgers = (): SharedLedgers => new WeakMap()

function sharedOf(shared: SharedLedgers, namespace: DurableObjectNamespace, name: string): Shared {
  const ledgers = shared.get(namespace) ?? new BoundedMap<string, Shared>(1_000)
  shared.set(namespace, ledgers)
  const known = ledgers.get(name) ?? {
    queue: new CommitQueue(),
    refusals: new RecentRefusals(),
    repeated: new RepeatedRefusals(),
  }
  ledgers.set(name, known)
  return known
}

/**
 * The ledger of an organization, for one request or object. Calls and their ends travel with those of other requests
 * (`CommitQueue`), all other messages alone. A request that fails on its way is sent once more on a fresh stub: all are
 * idempotent. A request that is not answered within `ANSWER_LIMIT_MS` has failed and is not repeated; it may still take effect,
 * so a call that was refused because of it can stay open in the ledger until its lease runs out.
 * @param waitUntil of the request that uses the client.
 * @param options `shard` has the calls that are admitted, closed, extended and recorded; `ledgers`: the clients whose calls
 * travel together, those of all requests of this isolate when left out.
 */
export function ledgerClient(
  namespace: DurableObjectNamespace,
  organizationId: string,
  waitUntil: (work: Promise<unknown>) => void = () => {},
  options: { shard?: number | undefined; ledgers?: SharedLedgers | undefined } = {},
): LedgerClient {
  const { shard = HOME_SHARD, ledgers = sharedByRequests } = options
  const name = ledgerName(organizationId, shard)
  const home = ledgerName(organizationId)
  const callShard = <Result>(use: (ledger: LedgerObject) => Promise<Result>) =>
    callLedger(namespace, name, use)
  const callHome = <Result>(use: (ledger: LedgerObject) => Promise<Result>) =>
    callLedger(namespace, home, use)
  const sender: CommitSender = {
    send: (batch, milliseconds) => {
      const stub = namespace.getByName(name) as unknown as LedgerObject
      return withinTime(stub.commit(batch), milliseconds, 'the ledger')
    },
    waitUntil,
  }
  const shared = sharedOf(ledgers, namespace, name)
  const submit = (entry: CommitEntry) => submitEntry(shared, entry, sender)
  return {
    admit: async (call) => submit(callEntry(organizationId, call)),
    check: (checks) =>
      repeatingRefusals(shared.refusals, checks.limits, () =>
        callShard((ledger) => ledger.check(checkColumns(checks), checks.learned)),
      ),
    close: async (callId, outcome) => void (await submit(closingEntry(callId, outcome))),
    extend: (callId, leaseMilliseconds, progress) =>
      callShard((ledger) => ledger.extend(callId, leaseMilliseconds, progress)),
    record: async (opening, outcome, counted) => {
      const entry = recordEntry(organizationId, opening, outcome, counted)
      if (counted !== undefined || !isRepeatable(outcome)) return submit(entry)
      const gathered = shared.repeated.note(opening, outcome, systemClock())
      if (gathered === null) return submit(entry)
      if (gathered.count === 1) waitUntil(recordGathered(gathered, organizationId, submit))
      return { kind: 'admitted' }
    },
    recordChange: (change) => callHome((ledger) => ledger.recordChange(change)),
    grantCredits: (grant) => callHome((ledger) => ledger.grantCredits(grant)),
    balance: () => callHome((ledger) => ledger.balance()),
    flush: () => callHome((ledger) => ledger.flush()),
    reflush: (request) => callHome((ledger) => ledger.reflush({ ...request, announced: 0 })),
    chains: () => callHome((ledger) => ledger.chains()),
    tail: (request) => callShard((ledger) => ledger.tail(request)),
    learnEpoch: (organization) => callHome((ledger) => ledger.learnEpochs({ organization, catalogue: null })),
    announceCatalogue: (epoch) => callHome((ledger) => ledger.announceCatalogue(epoch)),
  }
}

/** Waits until gathering ends, and records all that were gathered. Never rejects. */
async function recordGathered(
  gathered: GatheredRefusals,
  organizationId: string,
  submit: (entry: CommitEntry) => Promise<Admission>,
): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, gathered.until - systemClock()))
  const outcome = gatheredOutcome(gathered)
  try {
    await submit(recordEntry(organizationId, gathered.opening, outcome))
  } catch (error) {
    const { opening, count } = gathered
    logEvent('error', 'audit_failed', { request_id: opening.requestId, count, error: errorText(error) })
  }
}

/** @throws RangeError for an entry that cannot be stored, and whatever the queue throws. */
function submitEntry(
  { queue, refusals }: Shared,
  entry: CommitEntry,
  sender: CommitSender,
): Promise<Admission> {
  const limits = entry.kind === 'closing' ? null : entry.checks.limits
  return repeatingRefusals(refusals, limits, async () => {
    const verdict = await queue.submit(entry, sender)
    if (verdict?.kind === 'invalid') throw new RangeError(verdict.message)
    return verdict ?? { kind: 'admitted' }
  })
}

/** Repeats what a limit refused a moment ago, without the ledger. @param limits null: the call is not counted. */
async function repeatingRefusals(
  refusals: RecentRefusals,
  limits: CallLimits | null,
  decide: () => Promise<Admission>,
): Promise<Admission> {
  if (limits === null) return decide()
  const known = refusals.find(limits, systemClock())
  if (known) return known
  const admission = await decide()
  if (admission.kind === 'limited') refusals.note(limits, admission, systemClock())
  return admission
}
