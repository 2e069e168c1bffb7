import { describe, expect, it } from 'vitest'
import { ADVERSARIAL_TEXTS } from './adversarial-texts.ts'
import { detectorOf, fullProfile } from './engine-under-test.ts'
import { evenLengths, passThrough } from './stream-measures.ts'
import { growthOf } from './timing.ts'

const detector = detectorOf(fullProfile())

describe('time on texts made to keep the engine busy', () => {
  /** Fourfold input may take this many times as long: linear work takes 4, squared work 16. */
  const most = 10

  it.each(ADVERSARIAL_TEXTS)('grows with the input: $name', ({ write, custom }) => {
    const bound = custom ? detectorOf(fullProfile([custom])) : detector
    const texts = { 1: write(12_000), 4: write(48_000) }
    expect(growthOf((factor) => void bound.detect(texts[factor]))).toBeLessThan(most)
  })

  it.each(ADVERSARIAL_TEXTS)('grows with the input of a stream: $name', ({ write, custom }) => {
    const bound = custom ? detectorOf(fullProfile([custom])) : detector
    const texts = { 1: write(3_000), 4: write(12_000) }
    expect(growthOf((factor) => void passThrough(bound, texts[factor], evenLengths(64)))).toBeLessThan(most)
  })

  it('is detected where it is squared', () => {
    let pairs = 0
    const squared = (factor: number) => {
      for (let left = 0; left < 2_000 * factor; left++) {
        for (let right = 0; right < 2_000 * factor; right++) if (left !== right) pairs++
      }
    }
    expect(growthOf(squared)).toBeGreaterThan(most)
    expect(pairs).toBeGreaterThan(0)
  })
})
