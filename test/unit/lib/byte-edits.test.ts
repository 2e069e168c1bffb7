import { describe, expect, it } from 'vitest'
import { applyEdits, type ByteEdit, editedBytes, joinBytes } from '../../../src/lib/byte-edits.ts'
import { SeededRandom } from './seeded-random.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const edit = (start: number, end: number, replacement: string | null): ByteEdit => ({
  start,
  end,
  replacement: replacement === null ? null : encoder.encode(replacement),
})

function edited(source: string, edits: ByteEdit[]) {
  const result = applyEdits(encoder.encode(source), edits)
  const bytes = joinBytes(result.pieces)
  const { released, withheld } = result
  expect(editedBytes(encoder.encode(source), edits)).toEqual({ bytes, released, withheld })
  return { ...result, text: decoder.decode(bytes) }
}

describe('applyEdits', () => {
  it.each<[string, ByteEdit[], string, number]>([
    ['nothing', [], 'abcdef', 0],
    ['a removal at the start', [edit(0, 2, null)], 'cdef', 2],
    ['a removal in the middle', [edit(2, 4, null)], 'abef', 2],
    ['a removal at the end', [edit(4, 6, null)], 'abcd', 2],
    ['a removal of everything', [edit(0, 6, null)], '', 6],
    ['a replacement by a longer text', [edit(1, 2, 'BBB')], 'aBBBcdef', 1],
    ['a replacement by an empty text', [edit(1, 2, '')], 'acdef', 1],
    ['insertions at both ends', [edit(0, 0, '<'), edit(6, 6, '>')], '<abcdef>', 0],
    ['adjacent removals, out of order', [edit(3, 5, null), edit(1, 3, null)], 'af', 4],
    ['an insertion where a removal starts', [edit(2, 4, null), edit(2, 2, 'X')], 'abXef', 2],
    ['an insertion where a removal ends', [edit(4, 4, 'X'), edit(2, 4, null)], 'abXef', 2],
    ['two insertions at one place, in their order', [edit(3, 3, '1'), edit(3, 3, '2')], 'abc12def', 0],
  ])('applies %s', (_name, edits, text, withheld) => {
    const result = edited('abcdef', edits)
    expect(result.text).toBe(text)
    expect(result.length).toBe(text.length)
    expect(result.withheld).toBe(withheld)
    expect(result.released).toBe(6 - withheld)
  })

  it.each([
    ['overlapping ranges', [edit(0, 3, null), edit(2, 4, null)]],
    ['a range inside another', [edit(0, 5, null), edit(1, 2, 'x')]],
    ['an insertion inside a removal', [edit(1, 4, null), edit(2, 2, 'x')]],
    ['the same range twice', [edit(1, 2, 'x'), edit(1, 2, 'y')]],
  ])('refuses %s', (_name, edits) => {
    expect(() => edited('abcdef', edits)).toThrow('overlapping edits')
  })

  it('agrees with cutting a string apart, for random edits in random order', () => {
    for (let seed = 1; seed <= 500; seed++) {
      const random = new SeededRandom(seed)
      const source = Array.from({ length: random.below(40) }, () => random.pick([...'abcdefgh'])).join('')
      const edits: ByteEdit[] = []
      let expected = ''
      let released = 0
      for (let at = 0; at < source.length; ) {
        const kept = random.below(4)
        expected += source.slice(at, at + kept)
        released += Math.min(kept, source.length - at)
        at = Math.min(source.length, at + kept)
        const end = Math.min(source.length, at + 1 + random.below(3))
        const replacement = random.pick([null, '', 'X', 'YYYY'])
        if (end > at) edits.push(edit(at, end, replacement))
        if (end > at) expected += replacement ?? ''
        at = end
      }
      edits.sort(() => random.fraction() - 0.5)
      const result = edited(source, edits)
      expect(result.text, `seed ${seed}`).toBe(expected)
      expect(result.released, `seed ${seed}`).toBe(released)
      expect(result.released + result.withheld, `seed ${seed}`).toBe(source.length)
    }
  })

  it('copies nothing that stays: pieces are views of the source', () => {
    const source = encoder.encode('abcdef')
    const { pieces } = applyEdits(source, [edit(2, 3, null)])
    expect(pieces.map((piece) => piece.buffer === source.buffer)).toEqual([true, true])
    expect(applyEdits(source, []).pieces[0]?.buffer).toBe(source.buffer)
  })

  it('leaves the array of edits as it was given', () => {
    const edits = [edit(3, 4, null), edit(0, 1, null)]
    edited('abcdef', edits)
    expect(edits.map(({ start }) => start)).toEqual([3, 0])
  })
})

describe('joinBytes', () => {
  it('joins none, one without a copy, and several', () => {
    const one = encoder.encode('one')
    expect(joinBytes([])).toHaveLength(0)
    expect(joinBytes([one])).toBe(one)
    expect(decoder.decode(joinBytes([one, new Uint8Array(0), encoder.encode('two')]))).toBe('onetwo')
  })
})
