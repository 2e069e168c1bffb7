import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import {
  ContentGoneError,
  createContentStore,
  LARGE_ITEM_BYTES,
} from '../../src/responses/content/content-store.ts'

const store = createContentStore(env.CONTENT)
const newOwner = () => ({ organizationId: crypto.randomUUID(), userId: crypto.randomUUID() })
const bytesOf = (length: number) => new Uint8Array(length).map((_, index) => index % 251)

describe('the content store in R2', () => {
  it('keeps an item under its organization and id', async () => {
    const owner = newOwner()
    const key = await store.put(owner, 'msg_1', bytesOf(LARGE_ITEM_BYTES + 1))
    expect(key).toBe(`items/${owner.organizationId}/msg_1`)
    expect(await store.get(key)).toEqual(bytesOf(LARGE_ITEM_BYTES + 1))
    const { objects } = await env.CONTENT.list({ prefix: `items/${owner.organizationId}/` })
    expect(objects.map((object) => object.key)).toEqual([key])
  })

  it('stores a part of a larger buffer as that part', async () => {
    const key = await store.put(newOwner(), 'msg_1', bytesOf(100).subarray(10, 20))
    expect(await store.get(key)).toEqual(bytesOf(100).subarray(10, 20))
  })

  it('carries an item of 50 MB', async () => {
    const key = await store.put(newOwner(), 'fco_1', bytesOf(50 * 1024 * 1024))
    const read = await store.get(key)
    expect(read.length).toBe(50 * 1024 * 1024)
    expect(read.at(-1)).toBe((50 * 1024 * 1024 - 1) % 251)
  })

  it('says so when content is gone', async () => {
    const key = await store.put(newOwner(), 'msg_1', bytesOf(1))
    await store.remove([key])
    await expect(store.get(key)).rejects.toThrow(new ContentGoneError(key))
  })

  it('removes more than one call takes, gone ones among them', async () => {
    const owner = newOwner()
    const first = await store.put(owner, 'msg_first', bytesOf(1))
    const last = await store.put(owner, 'msg_last', bytesOf(1))
    const between = Array.from({ length: 2_000 }, (_, index) => `items/${owner.organizationId}/no_${index}`)
    await store.remove([first, ...between, last])
    expect(await env.CONTENT.list({ prefix: `items/${owner.organizationId}/` })).toMatchObject({
      objects: [],
    })
    await store.remove([])
  })
})
