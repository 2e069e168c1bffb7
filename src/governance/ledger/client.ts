import { sha256Hex } from '../../lib/crypto.ts'
import { withFreshStub } from '../../lib/fresh-stub.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { ChainIdentity } from './chain.ts'
import { sendGathered } from './gathered-counts.ts'
import type { Ledger } from './ledger.ts'

/** What the Durable Object class answers to. */
export interface LedgerObject extends Ledger {
  /** @param minute its first millisecond. @param count how many calls, at least 1. */
  countRejected(ip: string, minute: number, surface: string, count: number): Promise<void>
}

/** Objects that keyless calls are counted in; which one is decided by the address. */
const REJECTED_CALL_OBJECTS = 8

/** Longest wait for an object, the repetition included. Its own waits for Postgres are shorter. */
const ANSWER_LIMIT_MS = 10_000

/** Name of the object that holds an organization's ledger. */
export const ledgerName = (organizationId: string, shard = 0) => `${organizationId}:${shard}`

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

/**
 * The ledger of an organization. A call that fails on its way is made once more on a fresh stub, since a stub whose
 * object went away stays broken and every call is idempotent. An object that has not answered in ten seconds has
 * failed, and is not asked again: what it was told may still take effect, so a call that was refused for it can stay
 * open there until its lease runs out.
 */
export function ledgerClient(namespace: DurableObjectNamespace, organizationId: string): Ledger {
  const call = <Result>(use: (ledger: Ledger) => Promise<Result>) =>
    askLedger(namespace, ledgerName(organizationId), use)
  return {
    open: (opening) => call((ledger) => ledger.open(opening)),
    close: (callId, outcome) => call((ledger) => ledger.close(callId, outcome)),
    extend: (callId, leaseMilliseconds, progress) =>
      call((ledger) => ledger.extend(callId, leaseMilliseconds, progress)),
    record: (opening, outcome) => call((ledger) => ledger.record(opening, outcome)),
    recordChange: (change) => call((ledger) => ledger.recordChange(change)),
    grantCredits: (grant) => call((ledger) => ledger.grantCredits(grant)),
    balance: () => call((ledger) => ledger.balance()),
    flush: () => call((ledger) => ledger.flush()),
  }
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

async function askLedger<Result>(
  namespace: DurableObjectNamespace,
  name: string,
  use: (ledger: Ledger) => Promise<Result>,
): Promise<Result> {
  let waiting = true
  try {
    const answer = withFreshStub(namespace, name, use, () => waiting)
    return await withinTime(answer, ANSWER_LIMIT_MS, 'the ledger')
  } finally {
    waiting = false
  }
}
