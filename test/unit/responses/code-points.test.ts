import { describe, expect, it } from 'vitest'
import { CodePoints } from '../../../src/responses/emitter/code-points.ts'
import { SeededRandom } from '../lib/seeded-random.ts'

const PIECES = ['a', '', '😀', '\ud83d', '\ude00', 'é', '数a', '\ud83d\ud83d', '\ude00\ude00', '👨‍👩‍👧']

describe('places in code points', () => {
  it('are those of the whole text, however it was cut', () => {
    const random = new SeededRandom(1)
    for (let round = 0; round < 300; round++) {
      const points = new CodePoints()
      let text = ''
      for (let count = 0; count < 12; count++) {
        const piece = random.pick(PIECES)
        points.add(piece)
        text += piece
        const place = random.below(text.length + 1)
        expect(points.before(place), JSON.stringify([text, place])).toBe([...text.slice(0, place)].length)
        expect(points.before(points.units)).toBe([...text].length)
      }
    }
  })
})
