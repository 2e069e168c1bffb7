import { expect, it } from 'vitest'
import { planFor } from '../../src/dlp/scan/plan.ts'
import { resolveOverlaps } from '../../src/dlp/scan/resolve.ts'
import type { Finding } from '../../src/dlp/types.ts'
import type { Slices } from '../../src/lib/slices.ts'
import { fullProfile } from './engine-under-test.ts'
import { heldBytes, inspectionSlices, streamSlices } from './inspection-slices.ts'
import { SLICE_INPUTS, STREAM_INPUTS } from './slice-inputs.ts'

const BODY_BYTES = 20_000_000
/** Milliseconds of processor time that a slice may take on any machine. */
const SHORT_ENOUGH = 30
const MOST_LONG_SLICES = 40

const processorTime = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/**
 * Milliseconds of processor time that a slice may take on this machine: thrice what the runtime needs to copy the joined halves of
 * a body into one text. Such a copy cannot be divided, and it happens whenever a text that arrived in pieces is read.
 */
const longestSlice = (): number => {
  const half = 'a'.repeat(BODY_BYTES / 2)
  const copies = Array.from({ length: 5 }, (_, index) => {
    const joined = half + String(index) + half
    const begun = processorTime()
    joined.charCodeAt(BODY_BYTES / 2)
    return processorTime() - begun
  })
  return Math.max(SHORT_ENOUGH, 3 * Math.min(...copies))
}
const LONGEST_SLICE = longestSlice()
/** The longest slices are few: together they could still stall an isolate. */
const LONG_SLICE = LONGEST_SLICE / 3

/** Milliseconds of processor time of each slice that takes more than `LONG_SLICE`, by its number. */
async function longSlices(slices: Slices<unknown>): Promise<Map<number, number>> {
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
async function leastTimes(work: () => Slices<unknown>): Promise<number[]> {
  let least = await longSlices(work())
  for (let run = 0; run < 2 && least.size > 0; run++) {
    const next = await longSlices(work())
    least = new Map(
      [...least].flatMap(([number, took]) => {
        const again = next.get(number)
        return again === undefined ? [] : [[number, Math.min(took, again)] as const]
      }),
    )
  }
  return [...least.values()]
}

async function expectShortSlices(name: string, work: () => Slices<unknown>): Promise<void> {
  const times = await leastTimes(work)
  const longest = Math.max(0, ...times)
  if (times.length > 0) {
    console.log(
      `${name}: ${times.length} slices over ${LONG_SLICE.toFixed(0)} ms, the longest ${longest.toFixed(0)} ms`,
    )
  }
  expect(longest).toBeLessThan(LONGEST_SLICE)
  expect(times.length).toBeLessThan(MOST_LONG_SLICES)
}

it.each(SLICE_INPUTS)('no slice of 20 MB takes long: $name', async (input) => {
  const body = heldBytes(input.body(BODY_BYTES))
  await expectShortSlices(input.name, () => inspectionSlices(input, body))
})

const EVENT_BYTES = 8_000_000

it.each(STREAM_INPUTS)('no slice of a stream takes long: $name', async (input) => {
  await expectShortSlices(input.name, () => streamSlices(input, EVENT_BYTES))
})

const FINDINGS = 150_000
const FINDING_UNITS = 40

const findings = (from: number, count: number, units: number): Finding[] =>
  Array.from({ length: count }, (_, index) => {
    const start = from + index * FINDING_UNITS
    return { start, end: start + units, detector: 'email', category: 'contact' as const, score: 1 }
  })

/**
 * One finding that overlaps all others and yields to them, and others of growing length: longer findings take
 * precedence.
 */
function overlappingFindings(): Finding[] {
  const end = FINDINGS * FINDING_UNITS
  const whole: Finding = { start: 0, end, detector: 'all', category: 'custom', score: 1 }
  const parts = Array.from({ length: 25 }, (_, part) =>
    findings((part * end) / 25, FINDINGS / 25, 10 + part),
  ).flat()
  return [whole, ...parts]
}

it('no slice of resolving overlaps takes long', async () => {
  const spans = overlappingFindings()
  const all = { id: 'all', kind: 'dictionary', terms: ['all'], score: 1 } as const
  const rules = [
    { detector: 'all', minimumScore: 0, action: 'mask' },
    { detector: 'email', minimumScore: 0, action: 'redact' },
  ] as const
  const plan = planFor({ ...fullProfile([all]), rules: [...rules] })
  await expectShortSlices('overlaps', () => resolveOverlaps(spans, plan))
})
