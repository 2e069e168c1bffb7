import { describe, expect, it } from 'vitest'
import type { KeyRing } from '../../../src/lib/crypto.ts'
import { newItemId } from '../../../src/responses/items/types/item-types.ts'
import {
  base62,
  base62Value,
  isResponseId,
  newConversationId,
  newResponseId,
  newTurn,
  placeOf,
  turnOf,
} from '../../../src/responses/model/response-ids.ts'

const ring = (...keys: number[]): KeyRing => new Map(keys.map((fill) => [`k${fill}`, Buffer.alloc(32, fill)]))

describe('response ids', () => {
  it('have their shape, do not repeat, and are known', () => {
    const ids = Array.from({ length: 500 }, () => newResponseId(ring(1), null))
    expect(new Set(ids).size).toBe(500)
    for (const id of ids) {
      expect(id).toMatch(/^resp_[0-9A-Za-z]{32}$/)
      expect(isResponseId(ring(1), id)).toBe(true)
    }
  })

  it('are refused when any character is another', () => {
    const id = newResponseId(ring(1), null)
    for (let at = 0; at < id.length; at++) {
      for (const character of ['0', 'z', '-', 'é']) {
        const altered = id.slice(0, at) + character + id.slice(at + 1)
        expect(isResponseId(ring(1), altered)).toBe(altered === id)
      }
    }
  })

  it.each([
    '',
    'resp_',
    'resp_run_2b9d8d0c-5f2c-4a8e-9d53-6a4f5c2c7a10',
    `resp_${'a'.repeat(32)}`,
    `resp_${'a'.repeat(31)}`,
    `resp_${'a'.repeat(100_000)}`,
    'constructor',
  ])('are not made up: %.50s', (text) => {
    expect(isResponseId(ring(1), text)).toBe(false)
  })

  it('are refused with something before, after or around', () => {
    const id = newResponseId(ring(1), null)
    for (const text of [` ${id}`, `${id} `, `${id}\n`, `${id}a`, id.slice(0, -1), id.toUpperCase()]) {
      expect(isResponseId(ring(1), text)).toBe(false)
    }
  })

  it('are made with the current key and outlive its rotation, but not its removal', () => {
    const old = newResponseId(ring(1), null)
    const both = ring(2, 1)
    const fresh = newResponseId(both, null)
    expect([isResponseId(both, old), isResponseId(both, fresh)]).toEqual([true, true])
    expect([isResponseId(ring(2), old), isResponseId(ring(2), fresh)]).toEqual([false, true])
    expect(isResponseId(new Map(), fresh)).toBe(false)
    expect(() => newResponseId(new Map(), null)).toThrow('key ring is empty')
  })

  it('have a MAC that says nothing of the key and is spread evenly', () => {
    const counts = new Map<string, number>()
    for (let made = 0; made < 2_000; made++) {
      for (const character of newResponseId(ring(7), null).slice(-10)) {
        counts.set(character, (counts.get(character) ?? 0) + 1)
      }
    }
    expect(counts.size).toBe(62)
    // 323 expected; eight standard deviations on either side.
    expect(Math.min(...counts.values())).toBeGreaterThan(180)
    expect(Math.max(...counts.values())).toBeLessThan(470)
  })
})

describe('response ids with a place', () => {
  const PLACE = { region: 'w', slot: 'aB', number: '0z' }

  it('say where the response is, under a MAC of all of it', () => {
    const id = newResponseId(ring(1), PLACE)
    expect(id).toMatch(/^resp_waB0z[0-9A-Za-z]{32}$/)
    expect(isResponseId(ring(1), id)).toBe(true)
    expect(placeOf(id)).toEqual(PLACE)
    for (let at = 5; at < id.length; at++) {
      const other = id[at] === 'x' ? 'y' : 'x'
      expect(isResponseId(ring(1), id.slice(0, at) + other + id.slice(at + 1))).toBe(false)
    }
    expect(isResponseId(ring(1), `resp_${id.slice(10)}`)).toBe(false)
    expect(isResponseId(ring(2), id)).toBe(false)
  })

  it('have no place in their other form', () => {
    expect([newResponseId(ring(1), null), 'resp_x', '', 'resp_run_1'].map(placeOf)).toEqual(
      Array(4).fill(null),
    )
  })

  it('have numbers as text of a fixed length, which wraps around', () => {
    expect([0, 61, 62, 3843, 3844].map((value) => base62(value, 2))).toEqual(['00', '0z', '10', 'zz', '00'])
    for (const value of [0, 1, 61, 62, 3843]) expect(base62Value(base62(value, 2))).toBe(value)
  })
})

describe('other ids', () => {
  it.each([
    ['message', /^msg_[0-9A-Za-z]{22}$/],
    ['function_call', /^fc_[0-9A-Za-z]{22}$/],
    ['function_call_output', /^fco_[0-9A-Za-z]{22}$/],
    ['reasoning', /^rs_[0-9A-Za-z]{22}$/],
    ['custom_tool_call', /^ctc_[0-9A-Za-z]{22}$/],
    ['custom_tool_call_output', /^ctco_[0-9A-Za-z]{22}$/],
    ['something_new', /^item_[0-9A-Za-z]{22}$/],
    ['constructor', /^item_[0-9A-Za-z]{22}$/],
  ])('of an item of type %s', (type, shape) => {
    expect(newItemId(type)).toMatch(shape)
  })

  it('of an item name its turn', () => {
    const turn = newTurn()
    const ids = ['message', 'mcp_call', 'something_new'].map((type) => newItemId(type, turn))
    expect(new Set(ids).size).toBe(3)
    expect(ids.map(turnOf)).toEqual([turn, turn, turn])
    expect(turnOf(newItemId('message'))).not.toBe(turn)
    expect(['', 'msg_theirs', `${ids[0]}0`, `msg-${turn}`, 'x'.repeat(100_000)].map(turnOf)).toEqual(
      Array(5).fill(null),
    )
  })

  it('of a conversation', () => {
    expect(newConversationId()).toMatch(/^conv_[0-9A-Za-z]{22}$/)
  })
})
