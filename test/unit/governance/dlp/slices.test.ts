import { expect, it } from 'vitest'
import { heldBytes, inspectionSlices } from '../../../dlp/inspection-slices.ts'
import { SLICE_INPUTS, type SliceInput } from '../../../dlp/slice-inputs.ts'
import { StepCounter } from '../../../harness/counted-steps.ts'

/** Inputs of places that could read a whole text, token or blank at once; `test:dlp` measures all, of 20 MB. */
const INPUTS = [
  'one number, chat_completions',
  'private key of blanks',
  'arguments: one word',
  'member: a number',
  'member: blanks',
]

const BODY_BYTES = 1_000_000
/** Blanks take one step each. */
const BLANK_BYTES = 4_000_000
/** Blocks and characters. A loop over each character of the body at once takes two million and more. */
const MOST_STEPS = 1_200_000

/** The most steps of a slice. */
function mostSteps(counter: StepCounter, input: SliceInput): number {
  const bytes = input.name === 'member: blanks' ? BLANK_BYTES : BODY_BYTES
  const slices = inspectionSlices(input, heldBytes(input.body(bytes)))
  let most = 0
  for (let isDone = false; !isDone; ) {
    const steps = counter.stepsOf(() => {
      isDone = slices.next().done === true
    })
    most = Math.max(most, steps)
  }
  return most
}

it.each(INPUTS)('no slice has many steps: %s', { timeout: 120_000 }, (name) => {
  const input = SLICE_INPUTS.find((each) => each.name === name)
  if (!input) throw new Error(`no input ${name}`)
  using counter = new StepCounter()
  expect(mostSteps(counter, input)).toBeLessThan(MOST_STEPS)
})
