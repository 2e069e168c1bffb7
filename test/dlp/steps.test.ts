import { expect, it } from 'vitest'
import { StepCounter } from '../harness/counted-steps.ts'
import { describeExcess, randomTrial, seeded, simpleTrials, WAYS } from './step-campaign.ts'

/** Random combinations for each way, after every fragment by itself. */
const TRIALS = 200

it.each(Object.entries(WAYS))('steps grow with the text and no faster: %s', (name, inspect) => {
  using counter = new StepCounter()
  const random = seeded(name.length)
  const trials = [...simpleTrials(), ...Array.from({ length: TRIALS }, () => randomTrial(random))]
  expect(trials.flatMap((trial) => describeExcess(counter, inspect, trial))).toEqual([])
})
