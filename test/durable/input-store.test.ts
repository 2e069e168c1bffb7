import { env, runInDurableObject } from 'cloudflare:test'
import { describe, expect, it } from 'vitest'
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
