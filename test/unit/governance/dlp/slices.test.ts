import { beforeAll, expect, it } from 'vitest'
import { drained, type Slices } from '../../../../src/lib/slices.ts'
import {
  ANSWER_INPUTS,
  answerSlices,
  heldBytes,
  inspectionSlices,
  streamSlices,
} from '../../../dlp/inspection-slices.ts'
import { SLICE_INPUTS, STREAM_INPUTS, type StreamInput } from '../../../dlp/slice-inputs.ts'
import { StepCounter } from '../../../harness/counted-steps.ts'

/** Inputs of places that could read a whole text, token or blank at once; `test:dlp` measures all, of 20 MB. */
const INPUTS = [
  'one number, chat_completions',
  'private key of blanks',
  'arguments: one word',
  'member: a number',
  'member: blanks',
  'member: numbers',
]

const BODY_BYTES = 400_000
/** Blanks take one step each. */
const BLANK_BYTES = 4_000_000
/** A slice of numbers ends after some kilobytes: each is a scan of its own. */
const NUMBER_BYTES = 40_000
const BYTES: Record<string, number> = { 'member: blanks': BLANK_BYTES, 'member: numbers': NUMBER_BYTES }
/** Blocks and characters. A loop over each character of the body at once takes 800,000 and more. */
const MOST_STEPS = 750_000

/** What is prepared once, such as the automata of detectors, does not count. V8 counts blocks of what it compiles meanwhile. */
beforeAll(() => {
  using _counter = new StepCounter()
  for (const input of SLICE_INPUTS.filter(({ name }) => INPUTS.includes(name)))
    drained(inspectionSlices(input, heldBytes(input.body(10_000))))
})

/** The most steps of a slice. */
function mostSteps(counter: StepCounter, slices: Slices<unknown>): number {
  let most = 0
  for (let isDone = false; !isDone; ) {
    const steps = counter.stepsOf(() => {
      isDone = slices.next().done === true
    })
    most = Math.max(most, steps)
  }
  return most
}

it.each(INPUTS)('no slice of a request has many steps: %s', { timeout: 120_000 }, (name) => {
  const input = SLICE_INPUTS.find((each) => each.name === name)
  if (!input) throw new Error(`no input ${name}`)
  const bytes = BYTES[name] ?? BODY_BYTES
  using counter = new StepCounter()
  expect(mostSteps(counter, inspectionSlices(input, heldBytes(input.body(bytes))))).toBeLessThan(MOST_STEPS)
})

const ANSWERS = ['chat completion of tokens without blanks', 'tool result', 'item of a response']

it.each(ANSWERS)('no slice of an answer has many steps: %s', { timeout: 120_000 }, (name) => {
  const input = ANSWER_INPUTS.find((each) => each.name === name)
  if (!input) throw new Error(`no input ${name}`)
  using counter = new StepCounter()
  expect(mostSteps(counter, answerSlices(input, input.body(BODY_BYTES)))).toBeLessThan(MOST_STEPS)
})

const STREAMS = ['event of words', 'arguments in pieces']

it.each(STREAMS)('no slice of a stream has many steps: %s', { timeout: 120_000 }, (name) => {
  const input = STREAM_INPUTS.find((each) => each.name === name)
  if (!input) throw new Error(`no input ${name}`)
  using counter = new StepCounter()
  let end: string | null = null
  function* slices(stream: StreamInput): Slices<void> {
    end = yield* streamSlices(stream, BODY_BYTES)
  }
  expect(mostSteps(counter, slices(input))).toBeLessThan(MOST_STEPS)
  expect(end).toBe('completed')
})
