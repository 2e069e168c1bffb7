import type { KnownShard } from './home-escrow.ts'
import type { EscrowState } from './shard-escrow.ts'

/** The last transfer between the home shard and another one in one direction, as one side recorded it. */
export interface Transfer {
  shard: number
  direction: 'sent' | 'received' | 'returned' | 'taken'
  number: number
  /** Micro-credits. */
  amount: number
}

/**
 * The initial records of the home shard. @param lastShard the highest shard that has written audit records: this shard and
 * those before it have to get epochs, even if they never had credits.
 */
export function knownShards(transfers: readonly Transfer[], lastShard: number): KnownShard[] {
  const others = Array.from({ length: lastShard }, (_, index) => index + 1)
  const shards = new Set([...others, ...transfers.map(({ shard }) => shard)])
  return [...shards].map((shard) => {
    const sent = lastOf(transfers, shard, 'sent')
    const taken = lastOf(transfers, shard, 'taken')
    return { shard, sent: sent?.number ?? 0, amount: sent?.amount ?? 0, taken: taken?.number ?? 0 }
  })
}

/**
 * The initial state of another shard. A return without a confirmation is sent again, and credits that may be in transit to
 * this shard are requested again; repeating either does no harm.
 */
export function escrowState(shard: number, transfers: readonly Transfer[]): EscrowState {
  const received = lastOf(transfers, shard, 'received')?.number ?? 0
  const last = lastOf(transfers, shard, 'returned') ?? { number: 0, amount: 0 }
  const taken = lastOf(transfers, shard, 'taken')?.number ?? 0
  return { received, asked: true, returned: last.number, returning: last.number <= taken ? 0 : last.amount }
}

const lastOf = (transfers: readonly Transfer[], shard: number, direction: Transfer['direction']) =>
  transfers.find((each) => each.shard === shard && each.direction === direction)
