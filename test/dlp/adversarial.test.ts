import { describe, expect, it } from 'vitest'
import { ADVERSARIAL_TEXTS } from './adversarial-texts.ts'
import { detectorOf, fullProfile } from './engine-under-test.ts'
import { evenLengths, passThrough } from './stream-measures.ts'
import { fastestOf } from './timing.ts'

const detector = detectorOf(fullProfile())

describe('time on texts made to keep the engine busy', () => {
  /** Fourfold input may take this many times as long: linear work takes 4, squared work 16. */
  const most = 10
  /** Milliseconds; below it growth is noise. */
  const telling = 12

  const growth = (work: (factor: number) => void): number => {
    const [first = 1, last = 0] = [1, 4].map((factor) => fastestOf(2, () => work(factor)))
    return last < telling ? 1 : last / first
  }

  /** The least of a few tries: other work on the machine makes times longer, never shorter. */
  const leastGrowth = (work: (factor: number) => void): number => {
    let least = growth(work)
    for (let tries = 1; tries < 3 && least >= most; tries++) least = Math.min(least, growth(work))
    return least
  }

  it.each(ADVERSARIAL_TEXTS)('grows with the input: $name', ({ write, custom }) => {
    const bound = custom ? detectorOf(fullProfile([custom])) : detector
    const texts = [1, 4].map((factor) => [factor, write(12_000 * factor)] as const)
    const text = new Map(texts)
    expect(leastGrowth((factor) => void bound.detect(text.get(factor) ?? ''))).toBeLessThan(most)
  })

  it.each(ADVERSARIAL_TEXTS)('grows with the input of a stream: $name', ({ write, custom }) => {
    const bound = custom ? detectorOf(fullProfile([custom])) : detector
    const text = new Map([1, 4].map((factor) => [factor, write(3_000 * factor)] as const))
    expect(
      leastGrowth((factor) => void passThrough(bound, text.get(factor) ?? '', evenLengths(64))),
    ).toBeLessThan(most)
  })
})
