import { expect, it } from 'vitest'
import { StepCounter } from './counted-steps.ts'
import { excessOf, isExcessive, randomTrial, seeded, simpleTrials, WAYS } from './step-campaign.ts'

const TRIALS = Number(process.env.STEP_TRIALS ?? 200)

it.each(Object.entries(WAYS))('steps grow with the text: %s', (name, inspect) => {
  using counter = new StepCounter()
  const random = seeded(name.length)
  const trials = [...simpleTrials(), ...Array.from({ length: TRIALS }, () => randomTrial(random))]
  const found: string[] = []
  let worst = { stepsPerUnit: 0, name: '' }
  for (const trial of trials) {
    const excess = excessOf(counter, inspect, trial)
    if (isExcessive(excess)) found.push(`${trial.name}: ${excess.growth.toFixed(1)}`)
    if (excess.stepsPerUnit > worst.stepsPerUnit)
      worst = { stepsPerUnit: excess.stepsPerUnit, name: trial.name }
  }
  console.log(name, worst)
  expect(found).toEqual([])
})
