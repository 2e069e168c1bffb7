import { crc32 } from 'node:zlib'

/** Shard 0: credits are granted to it, and the other shards draw theirs from it. */
export const HOME_SHARD = 0

/** The shard that has the calls of a user. @param shards of the organization's ledger, at least 1. */
export const shardOf = (userId: string, shards = 1): number =>
  shards <= 1 ? HOME_SHARD : crc32(userId) % shards
