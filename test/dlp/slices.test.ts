import { expect, it } from 'vitest'
import { heldBytes, inspectionSlices } from './inspection-slices.ts'
import { SLICE_INPUTS, type SliceInput } from './slice-inputs.ts'

const BODY_BYTES = 20_000_000
/** Milliseconds of processor time; the slowest machine that was measured needs half of it. */
const LONGEST_SLICE = 30
/** The longest slices are few: together they could still stall an isolate. */
const LONG_SLICE = 10
const MOST_LONG_SLICES = 40

const processorTime = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Milliseconds of processor time of each slice that takes more than `LONG_SLICE`, by its number. */
async function longSlices(input: SliceInput, body: Uint8Array): Promise<Map<number, number>> {
  const slices = inspectionSlices(input, body)
  const long = new Map<number, number>()
  for (let number = 0; ; number++) {
    const begun = processorTime()
    const { done } = slices.next()
    const took = processorTime() - begun
    if (took > LONG_SLICE) long.set(number, took)
    if (done) return long
    if (number % 256 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Slices are the same each time: what is long only once is a garbage collection, or a compilation. */
async function leastTimes(input: SliceInput): Promise<number[]> {
  const body = heldBytes(input.body(BODY_BYTES))
  let least = await longSlices(input, body)
  for (let run = 0; run < 2 && least.size > 0; run++) {
    const next = await longSlices(input, body)
    least = new Map(
      [...least].flatMap(([number, took]) => {
        const again = next.get(number)
        return again === undefined ? [] : [[number, Math.min(took, again)] as const]
      }),
    )
  }
  return [...least.values()]
}

it.each(SLICE_INPUTS)('no slice of 20 MB takes long: $name', async (input) => {
  const times = await leastTimes(input)
  const longest = Math.max(0, ...times)
  if (times.length > 0) {
    console.log(
      `${input.name}: ${times.length} slices over ${LONG_SLICE} ms, the longest ${longest.toFixed(0)} ms`,
    )
  }
  expect(longest).toBeLessThan(LONGEST_SLICE)
  expect(times.length).toBeLessThan(MOST_LONG_SLICES)
})
