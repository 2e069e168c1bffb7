import { beforeAll, expect, it } from 'vitest'
import { drained, type Slices } from '../../../src/lib/slices.ts'
import {
  ANSWER_INPUTS,
  answerSlices,
  heldBytes,
  inspectionSlices,
  streamSlices,
} from '../../dlp/inspection-slices.ts'
import { SLICE_INPUTS, STREAM_INPUTS, type StreamInput } from '../../dlp/slice-inputs.ts'
import { StepCounter } from '../../harness/counted-steps.ts'

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
/** For inputs whose slices are much smaller. */
const SHORT_BODY_BYTES = 200_000
/** Blanks take one step each. */
const BLANK_BYTES = 1_000_000
/** A slice of numbers ends after some kilobytes: each is a scan of its own. */
const NUMBER_BYTES = 40_000
const BYTES: Record<string, number> = {
  'arguments: one word': SHORT_BODY_BYTES,
  'member: a number': SHORT_BODY_BYTES,
  'member: blanks': BLANK_BYTES,
  'member: numbers': NUMBER_BYTES,
  'tool result': SHORT_BODY_BYTES,
  'arguments in pieces': SHORT_BODY_BYTES,
}
const bytesOf = (name: string): number => BYTES[name] ?? BODY_BYTES

/** Blocks and characters. A loop over each character of a body at once takes two for each, and more. */
const mostSteps = (name: string): number => (bytesOf(name) === SHORT_BODY_BYTES ? 375_000 : 750_000)

/**
 * One-off preparation, such as the automata of detectors, does not count. V8 counts blocks of code that it compiles
 * meanwhile.
 */
beforeAll(() => {
  using _counter = new StepCounter()
  for (const input of SLICE_INPUTS.filter(({ name }) => INPUTS.includes(name)))
    drained(inspectionSlices(input, heldBytes(input.body(10_000))))
})

/** The most steps of a slice. */
function stepsOfSlices(slices: Slices<unknown>): number {
  using counter = new StepCounter()
  return counter.mostStepsOf(() => slices.next().done === true)
}

it.each(INPUTS)('no slice of a request has many steps: %s', { timeout: 120_000 }, (name) => {
  const input = SLICE_INPUTS.find((each) => each.name === name)
  if (!input) throw new Error(`no input ${name}`)
  const body = heldBytes(input.body(bytesOf(name)))
  expect(stepsOfSlices(inspectionSlices(input, body))).toBeLessThan(mostSteps(name))
})

const ANSWERS = ['chat completion of tokens without blanks', 'tool result', 'item of a response']

it.each(ANSWERS)('no slice of an answer has many steps: %s', { timeout: 120_000 }, (name) => {
  const input = ANSWER_INPUTS.find((each) => each.name === name)
  if (!input) throw new Error(`no input ${name}`)
  expect(stepsOfSlices(answerSlices(input, input.body(bytesOf(name))))).toBeLessThan(mostSteps(name))
})

const STREAMS = ['event of words', 'arguments in pieces']

it.each(STREAMS)('no slice of a stream has many steps: %s', { timeout: 120_000 }, (name) => {
  const input = STREAM_INPUTS.find((each) => each.name === name)
  if (!input) throw new Error(`no input ${name}`)
  let end: string | null = null
  function* slices(stream: StreamInput): Slices<void> {
    end = yield* streamSlices(stream, bytesOf(name))
  }
  expect(stepsOfSlices(slices(input))).toBeLessThan(mostSteps(name))
  expect(end).toBe('completed')
})
