import type { Slices } from '../../lib/slices.ts'
import { isAlphanumericAt, MACHINE_READABLE } from '../detectors/characters.ts'
import { MACHINE_READABLE_ZONE, readMachineReadableLine } from '../detectors/government/passports.ts'
import { BLOCK_START, PRIVATE_KEY, readPrivateKey } from '../detectors/private-keys.ts'
import { BASIC_CREDENTIALS, readBasicCredentials } from '../detectors/secrets.ts'
import { reportMatch, type Scan } from './scan.ts'

/** Detectors of rare forms that begin with a fixed text or reach across blanks: found by `indexOf`. */
export function* scanBlocks(scan: Scan): Slices<void> {
  if (scan.covers(PRIVATE_KEY.id)) yield* eachPlace(scan, BLOCK_START, readPrivateKeyAt)
  if (scan.covers(MACHINE_READABLE_ZONE.id)) yield* eachPlace(scan, '<<', readMachineReadableAt)
  if (scan.covers(BASIC_CREDENTIALS.id)) yield* eachPlace(scan, 'asic ', readBasicAt)
}

/** Characters of a text that are searched in one slice. */
const PART_UNITS = 64 * 1024

/** Reads what begins at a place. @returns where the search goes on. */
type ReadAt = (scan: Scan, index: number) => number | Slices<number>

/** Reads each place of a fixed text. */
function* eachPlace(scan: Scan, sought: string, read: ReadAt): Slices<void> {
  const { text, budget } = scan
  for (let at = yield* placeOf(text, sought, 0); at >= 0; ) {
    const next = read(scan, at)
    const from = typeof next === 'number' ? next : yield* next
    budget.pace(from - at + READ_STEPS)
    if (budget.endsSlice()) yield
    at = yield* placeOf(text, sought, from)
  }
}

/** Steps of reading one place, beside its units. */
const READ_STEPS = 16

/** The next place of a fixed text, which is searched in parts that overlap by all of it but one unit; -1 for none. */
function* placeOf(text: string, sought: string, from: number): Slices<number> {
  for (let part = from; part < text.length; part += PART_UNITS) {
    const found = text.slice(part, part + PART_UNITS + sought.length - 1).indexOf(sought)
    if (found >= 0) return part + found
    if (part + PART_UNITS < text.length) yield
  }
  return -1
}

function* readPrivateKeyAt({ text, report, budget }: Scan, index: number): Slices<number> {
  const block = yield* readPrivateKey(text, index)
  budget.spend(Math.max(BLOCK_START.length, (block?.end ?? 0) - index))
  if (block !== null && block.score > 0) report(PRIVATE_KEY.id, block.start, block.end, block.score)
  return Math.max(index + 1, block?.end ?? 0)
}

function* readMachineReadableAt(scan: Scan, index: number): Slices<number> {
  const { text } = scan
  let start = MACHINE_READABLE.runStart(text, index, Math.max(0, index - 45))
  while (text[start] === '<') start++
  const end = yield* MACHINE_READABLE.runEndInSlices(text, index)
  // A bracket right after a line is not of it.
  const stop = end - start === 31 || end - start === 37 || end - start === 45 ? end - 1 : end
  const bounded = !isAlphanumericAt(text, start - 1) && (stop === end || text[stop] === '<')
  if (bounded) reportMatch(scan, MACHINE_READABLE_ZONE, readMachineReadableLine(text, start, stop))
  return end
}

function* readBasicAt(scan: Scan, index: number): Slices<number> {
  const { text } = scan
  if (/[bB]/.test(text.charAt(index - 1)) && !isAlphanumericAt(text, index - 2)) {
    reportMatch(scan, BASIC_CREDENTIALS, yield* readBasicCredentials(text, index + 5))
  }
  return index + 5
}
