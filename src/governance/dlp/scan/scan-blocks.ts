import { isAlphanumericAt, MACHINE_READABLE } from '../detectors/characters.ts'
import { MACHINE_READABLE_ZONE, readMachineReadableLine } from '../detectors/government/passports.ts'
import { BLOCK_START, PRIVATE_KEY, readPrivateKey } from '../detectors/private-keys.ts'
import { BASIC_CREDENTIALS, readBasicCredentials } from '../detectors/secrets.ts'
import { reportMatch, type Scan } from './scan.ts'

/** Detectors of rare forms that begin with a fixed text or reach across blanks: found by `indexOf`. */
export function scanBlocks(scan: Scan): void {
  if (scan.covers(PRIVATE_KEY.id)) scanPrivateKeys(scan)
  if (scan.covers(MACHINE_READABLE_ZONE.id)) scanMachineReadable(scan)
  if (scan.covers(BASIC_CREDENTIALS.id)) scanBasic(scan)
}

function scanPrivateKeys({ text, report, budget }: Scan): void {
  let index = text.indexOf(BLOCK_START)
  while (index >= 0) {
    const block = readPrivateKey(text, index)
    budget.spend(Math.max(BLOCK_START.length, (block?.end ?? 0) - index))
    if (block !== null && block.score > 0) report(PRIVATE_KEY.id, block.start, block.end, block.score)
    index = text.indexOf(BLOCK_START, Math.max(index + 1, block?.end ?? 0))
  }
}

function scanMachineReadable(scan: Scan): void {
  const { text } = scan
  let index = text.indexOf('<<')
  while (index >= 0) {
    let start = MACHINE_READABLE.runStart(text, index, Math.max(0, index - 45))
    while (text[start] === '<') start++
    const end = MACHINE_READABLE.runEnd(text, index)
    // A bracket right after a line is not of it.
    const stop = end - start === 31 || end - start === 37 || end - start === 45 ? end - 1 : end
    const bounded = !isAlphanumericAt(text, start - 1) && (stop === end || text[stop] === '<')
    if (bounded) reportMatch(scan, MACHINE_READABLE_ZONE, readMachineReadableLine(text, start, stop))
    index = text.indexOf('<<', end)
  }
}

function scanBasic(scan: Scan): void {
  const { text } = scan
  let index = text.indexOf('asic ')
  while (index >= 0) {
    if (/[bB]/.test(text.charAt(index - 1)) && !isAlphanumericAt(text, index - 2)) {
      reportMatch(scan, BASIC_CREDENTIALS, readBasicCredentials(text, index + 5))
    }
    index = text.indexOf('asic ', index + 5)
  }
}
