import { writeBytes } from '../../lib/bytes/write-bytes.ts'
import { counted } from '../../lib/counted.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { Owner } from '../types.ts'

/** Items from this size on, in bytes, lie in the content store and not in a row. */
export const LARGE_ITEM_BYTES = 1024 * 1024

/** What R2 deletes in one call. */
const REMOVE_BATCH = 1_000

/** Longest wait for the whole of a call, its repetition included; enough for the largest body. */
const ANSWER_LIMIT_MS = 60_000

/** Content that was stored once and is no longer there. */
export class ContentGoneError extends Error {
  /** @param key of the content. */
  constructor(key: string) {
    super(`the content ${key} is gone`)
    this.name = 'ContentGoneError'
  }
}

/** Content that is too large for a row. Every call is made once more when it fails, and may be: none does harm twice. */
export interface ContentStore {
  /**
   * Stores an item, in place of one of the same id.
   * @returns the key to read it by: `items/<organization>/<item>`. @throws what R2 throws twice in a row
   */
  put(owner: Owner, itemId: string, bytes: Uint8Array): Promise<string>
  /** Reads an item whole. @throws ContentGoneError, and what R2 throws twice in a row */
  get(key: string): Promise<Uint8Array>
  /** Removes items; those that are not there count as removed. @throws what R2 throws twice in a row */
  remove(keys: readonly string[]): Promise<void>
}

/**
 * The content store in an R2 bucket. The key says whose an item is, so that an organization's content can be found and
 * erased without the database; whether a caller may read a key is decided by who kept it.
 */
export function createContentStore(bucket: R2Bucket): ContentStore {
  return {
    async put(owner, itemId, bytes) {
      const key = contentKey(owner, itemId)
      await repeatOnce(() => putSliced(bucket, key, bytes), `storing ${key}`)
      return key
    },
    get: (key) => repeatOnce(async () => new Uint8Array(await (await open(bucket, key)).arrayBuffer()), key),
    async remove(keys) {
      for (let start = 0; start < keys.length; start += REMOVE_BATCH) {
        const batch = keys.slice(start, start + REMOVE_BATCH)
        await repeatOnce(() => bucket.delete(batch), `removing ${counted(batch.length, 'item')}`)
      }
    },
  }
}

/** The key that an item is stored under. @throws for an id that would reach into somebody else's part of the bucket */
export function contentKey({ organizationId }: Owner, itemId: string): string {
  for (const part of [organizationId, itemId]) {
    if (!/^[\w-]{1,200}$/.test(part)) throw new Error('no key of the content store can be made of this id')
  }
  return `items/${organizationId}/${itemId}`
}

async function open(bucket: R2Bucket, key: string): Promise<R2ObjectBody> {
  const object = await bucket.get(key)
  if (object === null) throw new ContentGoneError(key)
  return object
}

async function repeatOnce<Result>(work: () => Promise<Result>, what: string): Promise<Result> {
  let waiting = true
  const result = work().catch((error) => {
    if (error instanceof ContentGoneError || !waiting) throw error
    return work()
  })
  try {
    return await withinTime(result, ANSWER_LIMIT_MS, what)
  } finally {
    waiting = false
  }
}

async function putSliced(bucket: R2Bucket, key: string, bytes: Uint8Array): Promise<void> {
  const { readable, writable } = new FixedLengthStream(bytes.length)
  const put = bucket.put(key, readable)
  // A bucket that fails takes no more of it, and that is told by the put.
  writeBytes(writable, [bytes]).catch(() => {})
  await put
}
