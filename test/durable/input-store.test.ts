import { env, runInDurableObject } from 'cloudflare:test'
import { describe, expect, it } from 'vitest'
import { CommitGroup } from '../../src/responses/storage/commit-group.ts'
import { CommitRows } from '../../src/responses/storage/commit-rows.ts'
import { LiveParts } from '../../src/responses/storage/live-parts.ts'
import { wholeStorage } from '../../src/responses/storage/slice.ts'
import { InputStore } from '../../src/responses/store/input-store.ts'

let names = 0

/** Runs in an object that nobody used before. */
const inObject = <Result>(use: (storage: DurableObjectStorage) => Result): Promise<Result> =>
  runInDurableObject(
    env.EVENT_LOG.get(env.EVENT_LOG.idFromName(`input-${names++}`)),
    (_object, { storage }) => use(storage),
  )

const encoder = new TextEncoder()
const message = (id: string, text: string) => ({
  id,
  type: 'message',
  role: 'user',
  callId: null,
  body: JSON.stringify({ id, text }),
  contentKey: null,
})
const elsewhere = { ...message('elsewhere', ''), body: null, contentKey: 'items/1' }

/** Small ones that share a row, large ones that have one each, and one that lies elsewhere. */
const ITEMS = [
  ...Array.from({ length: 50 }, (_, index) => message(`small${index}`, `é🦉${index}`)),
  message('large', '漢'.repeat(300_000)),
  elsewhere,
  message('larger', 'x'.repeat(1_000_000)),
  message('last', ''),
]

function kept(storage: DurableObjectStorage): InputStore {
  const input = new InputStore(wholeStorage(storage))
  for (const item of ITEMS) input.add(item, item.body === null ? null : encoder.encode(item.body))
  input.flush()
  // As a restart finds it.
  return new InputStore(wholeStorage(storage))
}

describe('the input that an object keeps', () => {
  it('comes back as it was, in order, as often as it is read', async () => {
    const [ids, items, again] = await inObject((storage) => {
      const input = kept(storage)
      return [input.ids(), [...input.items()], [...input.items()]]
    })
    expect(ids).toEqual(ITEMS.map(({ id }) => id))
    expect(items).toEqual(ITEMS)
    expect(again).toEqual(ITEMS)
  })

  it('is read part by part', async () => {
    const read = await inObject((storage) => {
      const input = kept(storage)
      let queries = 0
      const counting = new Proxy(storage.sql, {
        get: (target, name) => {
          if (name !== 'exec') return Reflect.get(target, name)
          return (...given: Parameters<SqlStorage['exec']>) => {
            queries++
            return target.exec(...given)
          }
        },
      })
      const iterator = new InputStore({ ...wholeStorage(storage), sql: counting }).items()
      const before = queries
      iterator.next()
      return [queries - before, [...input.items()].length]
    })
    expect(read).toEqual([1, ITEMS.length])
  })

  it('is told to a model with what lies elsewhere', async () => {
    const bodies = await inObject(async (storage) => {
      const read: string[] = []
      const fetched = async () => encoder.encode('"fetched"')
      for await (const { bytes } of kept(storage).contextItems(fetched))
        read.push(new TextDecoder().decode(bytes))
      return read
    })
    expect(bodies).toEqual(ITEMS.map(({ body }) => body ?? '"fetched"'))
  })

  it('has pages', async () => {
    const pages = await inObject((storage) => {
      const input = kept(storage)
      return [
        input.page({ limit: 3, order: 'desc' }),
        input.page({ limit: 2, order: 'asc', after: 'small48' }),
        input.page({ limit: 2, order: 'asc', after: 'nobody' }),
      ]
    })
    expect(pages).toEqual([
      { items: ITEMS.slice(-3).reverse(), hasMore: true },
      { items: ITEMS.slice(49, 51), hasMore: true },
      'unknown_item',
    ])
  })

  describe('of an object with many responses', () => {
    const sharedSlice = (storage: DurableObjectStorage) => {
      const group = new CommitGroup(new CommitRows(storage, 0), () => 0)
      const live = new LiveParts(0, group, { read: () => null, write: () => {} })
      return { ...wholeStorage(storage), live }
    }
    const some = [...ITEMS.slice(0, 3), elsewhere]
    const all = async (input: InputStore) => {
      const read = []
      for await (const { bytes } of input.contextItems(async () => encoder.encode('"fetched"')))
        read.push(new TextDecoder().decode(bytes))
      const page = input.page({ limit: 2, order: 'desc' })
      // Twice, since what reads the items may free their bytes.
      return { read, page, ids: input.ids(), items: [...input.items()], again: [...input.items()] }
    }

    it('is stored with the head if it is small, and read in the same way', async () => {
      const [small, apart, tables] = await inObject(async (storage) => {
        const input = new InputStore(sharedSlice(storage))
        for (const item of some) input.add(item, item.body === null ? null : encoder.encode(item.body))
        const small = input.flush(true)
        const apart = await all(input)
        const again = new InputStore(sharedSlice(storage), JSON.parse(JSON.stringify(small)))
        const found = storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'input_parts'").toArray()
        return [await all(again), apart, found]
      })
      expect(tables).toEqual([])
      expect(small).toEqual(apart)
      expect(small.items).toEqual(some)
      expect(small.again).toEqual(some)
      expect(small.ids).toEqual(some.map(({ id }) => id))
      expect(small.page).toEqual({ items: some.slice(-2).reverse(), hasMore: true })
      expect(small.read).toEqual(some.map(({ body }) => body ?? '"fetched"'))
    })

    it('has a row if it is large, or would not be the same bytes as text', async () => {
      const odd = new Uint8Array([0x22, 0xff, 0x22])
      const stored = (id: string, bytes: Uint8Array) =>
        inObject((storage) => {
          const input = new InputStore(sharedSlice(storage))
          input.add(message(id, ''), bytes)
          const small = input.flush(true)
          return [small, new InputStore(sharedSlice(storage)).ids()]
        })
      expect(await stored('large', new Uint8Array(9_000))).toEqual([null, ['large']])
      expect(await stored('odd', odd)).toEqual([null, ['odd']])
    })
  })

  it('leaves nothing behind where there is none', async () => {
    const [tables, ids] = await inObject((storage) => {
      const input = new InputStore(wholeStorage(storage))
      input.flush()
      return [
        storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'input_parts'").toArray(),
        [...input.ids(), ...input.items()],
      ]
    })
    expect([tables, ids]).toEqual([[], []])
  })
})
