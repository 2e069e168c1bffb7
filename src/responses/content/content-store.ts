import { writeBytes } from '../../lib/bytes/write-bytes.ts'
import { counted } from '../../lib/counted.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { Owner } from '../model/types.ts'

/** Bytes from which on an item is stored in the content store, and not in a row. */
export const LARGE_ITEM_BYTES = 1024 * 1024

/** Most keys that R2 deletes in one call. */
const REMOVE_BATCH = 1_000

/** Time limit of a call with its repetition; enough for the largest body. */
const ANSWER_LIMIT_MS = 60_000

/** The content was erased. */
export class ContentGoneError extends Error {
  /** @param key of the content. */
  constructor(key: string) {
    super(`the content ${key} is gone`)
    this.name = 'ContentGoneError'
  }
}

/** Content that is too large for a row. Every call is idempotent, and repeated once when it fails. */
export interface ContentStore {
  /**
   * Stores an item, and replaces one of the same id.
   * @returns the key to read it by: `items/<organization>/<item>`. @throws what R2 throws twice in a row
   */
  put(owner: Owner, itemId: string, bytes: Uint8Array): Promise<string>
  /** Reads an item whole. @throws ContentGoneError, and what R2 throws twice in a row */
  get(key: string): Promise<Uint8Array>
  /** Removes items. Missing ones count as removed. @throws what R2 throws twice in a row */
  remove(keys: readonly string[]): Promise<void>
  /** Makes the smallest request. @throws if the store does not answer */
  ping(): Promise<void>
}

/**
 * The content store in an R2 bucket. Keys begin with the organization, so that its content can be found and erased without
 * the database. Access is decided by the rows that refer to a key.
 */
export function createContentStore(bucket: R2Bucket): ContentStore {
  return {
    async put(owner, itemId, bytes) {
      const key = contentKey(owner, itemId)
      await repeatOnce(() => putSliced(bucket, key, bytes), `storing ${key}`)
      return key
    },
    get: (key) => repeatOnce(async () => new Uint8Array(await (await open(bucket, key)).arrayBuffer()), key),
    async ping() {
      await bucket.head('ping')
    },
    async remove(keys) {
      for (let start = 0; start < keys.length; start += REMOVE_BATCH) {
        const batch = keys.slice(start, start + REMOVE_BATCH)
        await repeatOnce(() => bucket.delete(batch), `removing ${counted(batch.length, 'item')}`)
      }
    },
  }
}

/** The key of an item. @throws for an id that could form a key of another organization. */
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
  // A failing bucket stops reading; the put reports the error.
  writeBytes(writable, [bytes]).catch(() => {})
  await put
}
