import type { Slices } from '../../lib/slices.ts'
import { BASE64, CharacterSet } from './characters.ts'
import type { DetectorDescription, Match } from './detector.ts'

export const PRIVATE_KEY: DetectorDescription = {
  id: 'private_key',
  category: 'secret',
  description: 'Private key in PEM, OpenSSH or PGP armour',
}

/** Starts a block; its kind and dashes follow. */
export const BLOCK_START = '-----BEGIN '
const HEADER = /-----BEGIN ((?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?)-----/y
const LONGEST_HEADER = 100

/**
 * An armour header such as `Proc-Type: 4,ENCRYPTED`. It stops before another block, so that each part of a text is read
 * for one block only.
 */
const ARMOUR_HEADER = /[A-Za-z][A-Za-z-]{1,30}: ?(?:(?!-----)[^\n\\]){0,200}/y
const PARTIAL_HEADER = /^[A-Za-z][A-Za-z-]{0,30}$/
/** Characters that join the lines of a block in code and in quotes, beside white space and escaped line ends. */
const JOINT = new CharacterSet('"\'+,>|#')
const PADDING = new CharacterSet('=')
const WHITE_SPACE = /\s/
/** Blanks or lines that are read in one slice. */
const PART_BLANKS = 64 * 1024
const PART_LINES = 256
/** A line of key material that is not the last. */
const SHORTEST_LINE = 24

interface Block extends Match {
  /** The text ends before the block does. */
  open: boolean
}

/**
 * Reads the private key whose `-----BEGIN ` is at `start`. It extends over the lines of base 64 that follow, joined by
 * blanks, quotes or escaped line ends. The END is optional, because a key without it is as secret.
 */
export function* readPrivateKey(text: string, start: number): Slices<Block | null> {
  HEADER.lastIndex = start
  const header = HEADER.exec(text)
  if (header === null) {
    return text.length - start < LONGEST_HEADER && /^[A-Z0-9 -]*$/.test(text.slice(start))
      ? opened(start, text.length)
      : null
  }
  const closing = `-----END ${header[1]}-----`
  let index = HEADER.lastIndex
  let end = 0
  for (let lines = 1; ; lines++) {
    if (lines % PART_LINES === 0) yield
    const line = yield* skipBlanks(text, index)
    if (line >= text.length) return end > 0 ? { start, end, score: 0.99, open: true } : opened(start, index)
    if (text.startsWith('-----', line) || closing.startsWith(text.slice(line, line + closing.length))) {
      return finishBlock(text, start, line, closing, end)
    }
    const next = yield* readLine(text, line)
    if (next === null) return end > 0 ? { start, end, score: 0.99, open: false } : null
    index = next.end
    if (next.material) end = next.end
  }
}

const opened = (start: number, end: number): Block => ({ start, end, score: 0, open: true })

function finishBlock(text: string, start: number, line: number, closing: string, end: number): Block | null {
  const found = text.startsWith(closing, line)
  const partial = !found && text.length - line < closing.length && closing.startsWith(text.slice(line))
  if (found) return { start, end: line + closing.length, score: end > 0 ? 0.99 : 0, open: false }
  if (partial) return { start, end: Math.max(end, line), score: end > 0 ? 0.99 : 0, open: true }
  return end > 0 ? { start, end, score: 0.99, open: false } : null
}

/** Blanks are skipped in a loop: a pattern that repeats groups needs memory for each of them. */
function* skipBlanks(text: string, index: number): Slices<number> {
  let end = index
  let pause = index + PART_BLANKS
  while (end < text.length) {
    const length = blankLength(text, end)
    if (length === 0) break
    end += length
    if (end < pause) continue
    pause = end + PART_BLANKS
    yield
  }
  return end
}

function blankLength(text: string, index: number): number {
  if (JOINT.hasAt(text, index)) return 1
  const code = text.charCodeAt(index)
  if (code === 0x20 || code === 0x0a) return 1
  if (code === 0x5c) {
    const letter = text[index + 1]
    if (letter === undefined) return 1
    return letter === 'n' || letter === 'r' ? 2 : 0
  }
  return WHITE_SPACE.test(text.charAt(index)) ? 1 : 0
}

/** A line of material or a header; a short line of material only counts before the END. */
function* readLine(text: string, line: number): Slices<{ end: number; material: boolean } | null> {
  let end = yield* BASE64.runEndInSlices(text, line)
  end = yield* PADDING.runEndInSlices(text, end)
  // PGP ends its material with a checksum of its own.
  if (end === line + 1 && text[line] === '=') end = yield* BASE64.runEndInSlices(text, end)
  const length = end - line
  const ends = end >= text.length
  if (length >= SHORTEST_LINE || ends) return { end, material: length >= SHORTEST_LINE }
  if (length > 0 && text[end] !== ':' && text[end] !== '-') {
    const after = yield* skipBlanks(text, end)
    if (
      after >= text.length ||
      text.startsWith('-----END', after) ||
      '-----END'.startsWith(text.slice(after, after + 8))
    ) {
      return { end, material: true }
    }
  }
  if (PARTIAL_HEADER.test(text.slice(line, line + 40)) && text.length - line < 40)
    return { end: text.length, material: false }
  ARMOUR_HEADER.lastIndex = line
  return ARMOUR_HEADER.test(text) ? { end: ARMOUR_HEADER.lastIndex, material: false } : null
}
