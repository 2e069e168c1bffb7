import { withFreshStub } from '../lib/fresh-stub.ts'
import { withinTime } from '../lib/time-limit.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from './audit-record.ts'
import type { CallColumns, CommitAnswer, CommitBatch } from './commits/commit.ts'
import type { Admission, LedgerClient } from './contract.ts'
import type { LearnedEpochs } from './epochs/known-epochs.ts'
import type { ChainIdentity } from './records/chain.ts'
import type { Reflush, Reflushed } from './records/chain-writer.ts'
import type { SentEscrow } from './shards/home-escrow.ts'
import type { ShardBalance } from './shards/shard-escrow.ts'
import { HOME_SHARD } from './shards/shards.ts'

/** The RPC methods of the Durable Object class (`workers/ledger.ts`). */
export interface LedgerObject
  extends Pick<
    LedgerClient,
    'extend' | 'recordChange' | 'grantCredits' | 'balance' | 'flush' | 'chains' | 'announceCatalogue' | 'tail'
  > {
  commit(batch: CommitBatch): Promise<CommitAnswer>
  /** Begins no account. An object of keyless calls writes its counts again. @see LedgerShard.reflush */
  reflush(request: Reflush): Promise<Reflushed[]>
  /** @param call one call. */
  check(call: CallColumns, learned: LearnedEpochs | null): Promise<Admission>
  /** Message to the home shard: when it resolves, all shards have the organization's epoch. */
  learnEpochs(learned: LearnedEpochs): Promise<void>
  /**
   * Message to the home shard, before another shard admits its first call. @returns the organization's epoch; null if unknown.
   */
  registerShard(shard: number): Promise<number | null>
  /** Message to the home shard. @see HomeEscrow.send */
  sendEscrow(shard: number, number: number, least: number, all: number): Promise<SentEscrow>
  /** Message to the home shard. @see HomeEscrow.take */
  takeEscrow(shard: number, number: number, amount: number): Promise<void>
  /** Message to every other shard. */
  shardBalance(): Promise<ShardBalance>
  /**
   * Message to every other shard: returns all unreserved credits to the home shard. @returns micro-credits that the shard still
   * has.
   */
  giveBack(): Promise<number>
  /** Message to the deployment's ledger. @returns the newest catalogue epoch that was announced; null when none was. */
  registerForCatalogue(name: string): Promise<number | null>
  /** @param minute its first millisecond. @param count how many calls, at least 1. */
  countRejected(ip: string, minute: number, surface: string, count: number): Promise<void>
}

/** Longest wait for an object, all repetitions included. The object's own waits for Postgres are shorter. */
export const ANSWER_LIMIT_MS = 10_000

/** Name of the object that holds a shard of an organization's ledger. */
export const ledgerName = (organizationId: string, shard = HOME_SHARD) => `${organizationId}:${shard}`

/** The object that audits changes to the deployment itself, and announces changes of the catalogue. */
export const DEPLOYMENT_LEDGER = ledgerName(DEPLOYMENT_ORGANIZATION_ID)

/** @throws if it is not a ledger's name, or unknown because the object was found by id. */
export function parseLedgerName(name: string | undefined): ChainIdentity {
  const [, organizationId, shard] = /^([0-9a-f-]{36}):(\d{1,4})$/.exec(name ?? '') ?? []
  if (organizationId === undefined) throw new Error('this object was not found by the name of a ledger')
  return { organizationId, shard: Number(shard) }
}

/** Calls a ledger's object; once more on a fresh stub when the call fails on its way. @throws after `ANSWER_LIMIT_MS` at the latest. */
export async function callLedger<Result>(
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
