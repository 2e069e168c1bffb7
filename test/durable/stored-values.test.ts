import { env, runInDurableObject } from 'cloudflare:test'
import { describe, expect, it } from 'vitest'
import { wholeStorage } from '../../src/responses/storage/slice.ts'
import { StoredValues } from '../../src/responses/store/stored-values.ts'

let names = 0

/** Runs in an object that nobody used before. */
const inObject = <Result>(use: (storage: DurableObjectStorage) => Result): Promise<Result> =>
  runInDurableObject(
    env.EVENT_LOG.get(env.EVENT_LOG.idFromName(`state-${names++}`)),
    (_object, { storage }) => use(storage),
  )

describe('state of an object', () => {
  it('is what was put last, whatever its size', async () => {
    const values = [1, 'x', [], { a: [null] }, 'é🦉'.repeat(400_000), 'y']
    const read = await inObject((storage) => {
      const state = new StoredValues(wholeStorage(storage))
      return values.map((value) => {
        state.put('value', value)
        return new StoredValues(wholeStorage(storage)).get('value')
      })
    })
    expect(read).toEqual(values)
  })

  it('is what a later instance put, though it was longer before', async () => {
    const read = await inObject((storage) => {
      new StoredValues(wholeStorage(storage)).put('value', 'x'.repeat(1_200_000))
      new StoredValues(wholeStorage(storage)).put('value', 'y')
      return new StoredValues(wholeStorage(storage)).get('value')
    })
    expect(read).toBe('y')
  })

  it('keeps pairs of surrogates together wherever a row ends', async () => {
    const texts = Array.from({ length: 6 }, (_, shift) => 'a'.repeat(499_995 + shift) + '🦉'.repeat(10))
    const read = await inObject((storage) => {
      const state = new StoredValues(wholeStorage(storage))
      return texts.map((text) => {
        state.put('text', text)
        return state.get('text')
      })
    })
    expect(read.map((text, index) => text === texts[index])).toEqual(texts.map(() => true))
  })

  it('leaves nothing behind in an object that is only asked', async () => {
    const tables = await inObject((storage) => {
      expect(new StoredValues(wholeStorage(storage)).get('head')).toBeNull()
      return storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'state'").toArray()
    })
    expect(tables).toEqual([])
  })

  it('begins anew after all storage was deleted', async () => {
    const read = await inObject(async (storage) => {
      const slice = wholeStorage(storage)
      const state = new StoredValues(slice)
      state.put('a', 1)
      await slice.deleteAll()
      state.reset()
      const before = state.get('a')
      state.put('a', 2)
      return [before, state.get('a')]
    })
    expect(read).toEqual([null, 2])
  })
})
