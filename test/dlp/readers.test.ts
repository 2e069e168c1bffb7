import { afterAll, describe, expect, it } from 'vitest'
import { StepCounter } from '../harness/counted-steps.ts'
import {
  excessesOf,
  knownTexts,
  LONG,
  randomListTrial,
  randomTextTrial,
  simpleLists,
  simpleTexts,
  slowOnes,
} from '../readers/growth.ts'
import { LIST_READERS, TEXT_READERS } from '../readers/readers.ts'
import { seeded } from './step-campaign.ts'

/** Random inputs of each reader, beside each fragment and each element by itself: so many for each round. */
const TRIALS = 2 * Number(process.env.FUZZ_ROUNDS)

const counter = new StepCounter({ copies: true })
afterAll(() => counter[Symbol.dispose]())

/** A reader with a budget uses it up for most of its inputs. What ran on after the time would be counted for the next reader. */
const MOST_MILLISECONDS = 30 * 60_000

describe('the steps and the time of reading', { timeout: MOST_MILLISECONDS }, () => {
  it.each(TEXT_READERS)('$name grow with its length and no faster', async (reader) => {
    const random = seeded(reader.name.length)
    const some = Array.from({ length: TRIALS }, () => randomTextTrial(random, reader))
    const trials = [...knownTexts(reader), ...simpleTexts(reader), ...some]
    expect(await excessesOf(counter, reader, trials, LONG)).toEqual([])
    expect(slowOnes(reader, trials)).toEqual([])
  })

  it.each(LIST_READERS)('$name grow with its elements and no faster', async (reader) => {
    const random = seeded(reader.name.length)
    const some = Array.from({ length: TRIALS }, () => randomListTrial(random, reader))
    const trials = [...simpleLists(reader), ...some]
    expect(await excessesOf(counter, reader, trials, LONG)).toEqual([])
    expect(slowOnes(reader, trials)).toEqual([])
  })
})
