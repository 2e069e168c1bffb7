import type { Slices } from '../../../lib/slices.ts'
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
const PART_UNITS = 256 * 1024

/**
 * Finds the places of a fixed text, in parts that overlap by all of it but one unit.
 * @param read called for each; returns where the search goes on.
 */
function* eachPlace(scan: Scan, sought: string, read: (scan: Scan, index: number) => number): Slices<void> {
  const { text } = scan
  let from = 0
  for (let part = 0; part < text.length; part += PART_UNITS) {
    if (part > 0) yield
    const isWhole = text.length <= PART_UNITS
    const searched = isWhole ? text : text.slice(part, part + PART_UNITS + sought.length - 1)
    let found = searched.indexOf(sought, Math.max(0, from - part))
    while (found >= 0) {
      from = read(scan, part + found)
      found = searched.indexOf(sought, from - part)
    }
  }
}

function readPrivateKeyAt({ text, report, budget }: Scan, index: number): number {
  const block = readPrivateKey(text, index)
  budget.spend(Math.max(BLOCK_START.length, (block?.end ?? 0) - index))
  if (block !== null && block.score > 0) report(PRIVATE_KEY.id, block.start, block.end, block.score)
  return Math.max(index + 1, block?.end ?? 0)
}

function readMachineReadableAt(scan: Scan, index: number): number {
  const { text } = scan
  let start = MACHINE_READABLE.runStart(text, index, Math.max(0, index - 45))
  while (text[start] === '<') start++
  const end = MACHINE_READABLE.runEnd(text, index)
  // A bracket right after a line is not of it.
  const stop = end - start === 31 || end - start === 37 || end - start === 45 ? end - 1 : end
  const bounded = !isAlphanumericAt(text, start - 1) && (stop === end || text[stop] === '<')
  if (bounded) reportMatch(scan, MACHINE_READABLE_ZONE, readMachineReadableLine(text, start, stop))
  return end
}

function readBasicAt(scan: Scan, index: number): number {
  const { text } = scan
  if (/[bB]/.test(text.charAt(index - 1)) && !isAlphanumericAt(text, index - 2)) {
    reportMatch(scan, BASIC_CREDENTIALS, readBasicCredentials(text, index + 5))
  }
  return index + 5
}
