import { afterAll, describe, expect, it } from 'vitest'
import { seeded } from '../dlp/step-campaign.ts'
import { describeBacktracking } from '../harness/backtracking.ts'
import { StepCounter } from '../harness/counted-steps.ts'
import { excessesOf, knownTexts, randomListTrial, randomTextTrial, SHORT } from '../readers/growth.ts'
import { LIST_READERS, TEXT_READERS } from '../readers/readers.ts'
import { STALLS } from '../readers/stalls.ts'

// Random inputs, one for each reader; `test:dlp` has many, and each fragment by itself.

const counter = new StepCounter({ copies: true })
afterAll(() => counter[Symbol.dispose]())

describe('the steps of reading', () => {
  it.each(TEXT_READERS)('$name grow with its length and no faster', async (reader) => {
    const trials = [...knownTexts(reader), randomTextTrial(seeded(11), reader)]
    expect(await excessesOf(counter, reader, trials, SHORT)).toEqual([])
  })

  it.each(LIST_READERS)('$name grow with its elements and no faster', async (reader) => {
    expect(await excessesOf(counter, reader, [randomListTrial(seeded(11), reader)], SHORT)).toEqual([])
  })
})

describe('the steps of what once stalled an isolate', () => {
  it.each(STALLS)('$name', ({ name, read, most }) => {
    expect(counter.stepsOf(read)).toBeLessThan(most)
    expect(counter.takePatterns().flatMap((pattern) => describeBacktracking(pattern, name))).toEqual([])
  })
})
