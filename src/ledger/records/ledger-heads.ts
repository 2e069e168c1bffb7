import type { ChainHead, LedgerChain } from './chain.ts'

/** A record that Postgres has to hold, or may hold only with this hash. */
export interface ExpectedHead extends ChainHead {
  shard: number
  /** Whether the record may still be missing: the ledger holds it until Postgres has it. */
  isPending: boolean
}

/** The difference between a chain in Postgres and the chain of its ledger object. It contains no content of records. */
export interface HeadFault {
  shard: number
  sequence: number
  reason: 'unknown_shard' | 'unknown_record' | 'head_differs' | 'pruning_forged' | 'pruned_credits_differ'
  detail: string
}

/** The records by which a ledger's chains are compared with Postgres. */
export function expectedHeads(chains: readonly LedgerChain[]): ExpectedHead[] {
  return chains.flatMap(({ shard, flushed, pending }) => [
    ...(flushed.sequence > 0 ? [{ shard, ...flushed, isPending: false }] : []),
    ...(pending ? [{ shard, ...pending, isPending: true }] : []),
  ])
}

/** @param hash of the record in that place; null when there is none. */
export function verifyHead(
  { shard, sequence, hash: expected, isPending }: ExpectedHead,
  hash: string | null,
) {
  if (hash === expected || (hash === null && isPending)) return null
  const detail =
    hash === null ? 'the ledger has written this record, it is missing' : 'the ledger has another record'
  return { shard, sequence, reason: 'head_differs' as const, detail } satisfies HeadFault
}

/**
 * Finds chains and records that the ledger does not have.
 * @param stored chains in Postgres, read before `chains`: a record reaches the ledger first.
 */
export function findUnknown(
  stored: ReadonlyArray<{ shard: number; first: number; sequence: number }>,
  chains: readonly LedgerChain[],
): HeadFault[] {
  return stored.flatMap(({ shard, first, sequence }): HeadFault[] => {
    const head = chains.find((each) => each.shard === shard)?.head
    if (!head)
      return [
        { shard, sequence: first, reason: 'unknown_shard', detail: 'no ledger has a chain of this shard' },
      ]
    const faults: HeadFault[] = []
    const add = (record: number, detail: string) =>
      faults.push({ shard, sequence: record, reason: 'unknown_record', detail })
    if (first < 1) add(first, 'a chain begins at record 1')
    if (sequence > head.sequence) add(sequence, `the last record of the ledger is ${head.sequence}`)
    return faults
  })
}
