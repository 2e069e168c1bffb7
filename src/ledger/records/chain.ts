import { sha256Hex } from '../../lib/crypto.ts'

/** The oldest record that a ledger still has. */
export interface KeptFrom {
  sequence: number
  /** When its commit was stored, in milliseconds since the epoch. */
  at: number
}

/** Names a chain: every organization has one for each shard of its ledger. */
export interface ChainIdentity {
  organizationId: string
  shard: number
}

/** The last record of a chain. */
export interface ChainHead {
  sequence: number
  hash: string
}

/** The chain of one shard as its ledger object holds it. Postgres must hold the same up to `flushed`. */
export interface LedgerChain {
  shard: number
  head: ChainHead
  /** The last record that Postgres has confirmed. */
  flushed: ChainHead
  /** The first one that it has not confirmed; null when it has all. */
  pending: ChainHead | null
}

/** The same with what a restore of Postgres is checked by. */
export interface HeldChain extends LedgerChain {
  /** Micro-credits after the last record that Postgres has confirmed; null where that is not the last of its commit. */
  flushedBalance: number | null
  /** The oldest record that can be written to Postgres again; null without any. */
  keptFrom: KeptFrom | null
}

/** A record in the form that the ledger stores until Postgres has it. */
export interface ChainLink extends ChainHead {
  /** Call id, or the id of an administrative change. */
  id: string
  /** The JSON text that was hashed. */
  body: string
  previousHash: string
}

/** The head before the first record, whose sequence is 1. */
export const GENESIS: ChainHead = { sequence: 0, hash: '0'.repeat(64) }

/** Cloudflare limits SQLite rows to 2 MB, which local runtimes do not enforce; half of it leaves room for the rest. */
const BODY_LIMIT = 1_000_000

/** Hash of a record: SHA-256 over the previous record's hash and its own body, in lower-case hex. */
export function linkHash(previousHash: string, body: string): string {
  return sha256Hex(previousHash + body)
}

/**
 * Makes the record that follows `head`.
 * @param content members of a JSON object, without its braces.
 * @throws RangeError if its body is longer than a million characters.
 */
export function nextLink(
  { organizationId, shard }: ChainIdentity,
  head: ChainHead,
  id: string,
  content: string,
): ChainLink {
  const sequence = head.sequence + 1
  const place = `"id":${JSON.stringify(id)},"organizationId":"${organizationId}","shard":${shard}`
  const body = `{${place},"sequence":${sequence},${content}}`
  if (body.length > BODY_LIMIT) throw new RangeError(`audit record ${id} is too large to store`)
  return { sequence, id, body, previousHash: head.hash, hash: linkHash(head.hash, body) }
}
