import type { KnownShard } from './home-escrow.ts'
import type { EscrowState } from './shard-escrow.ts'

/** The last transfer between the home shard and another one in one direction, as its side recorded it. */
export interface Transfer {
  shard: number
  direction: 'sent' | 'received' | 'returned' | 'taken'
  number: number
  /** Micro-credits. */
  amount: number
}

/**
 * What the home shard begins with. @param lastShard the highest that has written records: it and those before it have to
 * be told of epochs, whether they ever had credits or not.
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
 * What another shard begins with. What it gave up and is not known to be taken is told again, and what may be on its way
 * here is asked for, which does no harm.
 */
export function escrowState(shard: number, transfers: readonly Transfer[]): EscrowState {
  const received = lastOf(transfers, shard, 'received')?.number ?? 0
  const last = lastOf(transfers, shard, 'returned') ?? { number: 0, amount: 0 }
  const taken = lastOf(transfers, shard, 'taken')?.number ?? 0
  return { received, asked: true, returned: last.number, returning: last.number <= taken ? 0 : last.amount }
}

const lastOf = (transfers: readonly Transfer[], shard: number, direction: Transfer['direction']) =>
  transfers.find((each) => each.shard === shard && each.direction === direction)
