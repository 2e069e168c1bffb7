import { afterEach, describe, expect, it, vi } from 'vitest'
import { createContentStore } from '../../../src/responses/content/content-store.ts'

const OWNER = { organizationId: '8f14e45f-ceea-4d7a-9b3c-0a1b2c3d4e5f', userId: 'user' }
const CONTENT = new Uint8Array([1, 2, 3])

/** A bucket that fails with the given errors, one call each, and then works; null stands for an answer of nothing. */
function bucketFailingWith(...errors: Array<Error | null>) {
  const calls: unknown[][] = []
  const answer = (method: string, value: unknown) => async (argument: unknown) => {
    calls.push([method, argument])
    const error = errors.shift()
    if (error) throw error
    return error === null ? null : value
  }
  const body = new Response(CONTENT).body
  const bucket = {
    put: answer('put', {}),
    get: answer('get', { body, arrayBuffer: async () => CONTENT.buffer }),
    delete: answer('delete', undefined),
  } as unknown as R2Bucket
  return { store: createContentStore(bucket), calls }
}

const uses: Array<[string, (store: ReturnType<typeof createContentStore>) => Promise<unknown>]> = [
  ['put', (store) => store.put(OWNER, 'msg_1', CONTENT)],
  ['get', (store) => store.get('items/a/b')],
  ['remove', (store) => store.remove(['items/a/b'])],
]

// A stream with a known length, which only the Workers runtime has.
vi.stubGlobal(
  'FixedLengthStream',
  class extends TransformStream {
    constructor(_length: number) {
      super()
    }
  },
)

afterEach(() => void vi.useRealTimers())

describe('the content store', () => {
  it.each(uses)('repeats %s once', async (_name, use) => {
    const { store, calls } = bucketFailingWith(new Error('network'))
    await use(store)
    expect(calls.map(([method]) => method)).toEqual([calls[0]?.[0], calls[0]?.[0]])
  })

  it.each(uses)('gives up %s after the second failure', async (_name, use) => {
    const { store, calls } = bucketFailingWith(new Error('network'), new Error('network again'))
    await expect(use(store)).rejects.toThrow('network again')
    expect(calls).toHaveLength(2)
  })

  it('does not ask again for what is gone', async () => {
    const { store, calls } = bucketFailingWith(null)
    await expect(store.get('items/a/b')).rejects.toThrow('the content items/a/b is gone')
    expect(calls).toHaveLength(1)
  })

  it('removes a thousand at a time', async () => {
    const { store, calls } = bucketFailingWith()
    const keys = Array.from({ length: 2_001 }, (_, index) => `items/a/${index}`)
    await store.remove(keys)
    expect(calls.map(([, batch]) => (batch as string[]).length)).toEqual([1_000, 1_000, 1])
    expect(calls.flatMap(([, batch]) => batch)).toEqual(keys)
  })

  it.each(['', '../other/msg_1', 'a/b', 'msg 1', 'x'.repeat(201)])('makes no key of %j', async (id) => {
    const { store, calls } = bucketFailingWith()
    await expect(store.put(OWNER, id, CONTENT)).rejects.toThrow('no key')
    await expect(store.put({ ...OWNER, organizationId: id }, 'msg_1', CONTENT)).rejects.toThrow('no key')
    expect(calls).toEqual([])
  })

  it('does not wait for ever', async () => {
    vi.useFakeTimers()
    const bucket = { get: () => new Promise(() => {}) } as unknown as R2Bucket
    const outcome = createContentStore(bucket).get('items/a/b').catch(String)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(await outcome).toContain('took longer than 60000 ms')
  })
})
