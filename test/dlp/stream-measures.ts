import { type ReleasedText, type TextDetector, TextStream } from '../../src/dlp/stream/text-stream.ts'
import type { Finding } from '../../src/dlp/types.ts'
import type { SeededRandom } from './corpus/seeded-random.ts'

/** How a text behaves that arrives in pieces. */

/** Replacement of a finding; no corpus text has this character. */
const MARK = '\u25a0'

export interface Passage {
  /** The released text, findings replaced. */
  output: string
  /** For each unit of the text, whether it came out as it was. */
  passed: Uint8Array
  /** Units held after each piece. */
  held: number[]
}

/** Sends a text through a stream in pieces of the given lengths. @throws when the stream loses or invents units. */
export function passThrough(detector: TextDetector, text: string, lengths: Iterable<number>): Passage {
  const stream = new TextStream(detector, () => MARK)
  const passage: Passage = { output: '', passed: new Uint8Array(text.length), held: [] }
  let at = 0
  let arrived = 0
  const take = (segments: readonly ReleasedText[]): void => {
    for (const { units, replacement } of segments) {
      if (at + units > arrived) throw new Error('the stream released what had not arrived')
      passage.output += replacement ?? text.slice(at, at + units)
      if (replacement === null) passage.passed.fill(1, at, at + units)
      at += units
    }
  }
  for (const length of lengths) {
    const piece = text.slice(arrived, arrived + length)
    if (piece === '') break
    arrived += piece.length
    take(stream.push(piece))
    passage.held.push(stream.heldUnits)
  }
  take(stream.end())
  if (at !== text.length) throw new Error(`the stream answered ${at} of ${text.length} units`)
  return passage
}

/** Pieces of one length, without end. */
export function* evenLengths(length: number): Generator<number> {
  for (;;) yield length
}

/** Pieces of 1 to `most` units, without end. */
export function* randomLengths(random: SeededRandom, most: number): Generator<number> {
  for (;;) yield random.integer(1, most)
}

/** The text with its findings replaced, inspected as a whole. */
export function wholeOutput(text: string, spans: readonly Finding[]): string {
  let output = ''
  let at = 0
  for (const { start, end } of spans) {
    output += text.slice(at, start) + MARK
    at = end
  }
  return output + text.slice(at)
}

/** Units of findings that came out although the whole text would have kept them back. */
export function leakedUnits(passage: Passage, spans: readonly Finding[]): number {
  let leaked = 0
  for (const { start, end } of spans) for (let at = start; at < end; at++) leaked += passage.passed[at] ?? 0
  return leaked
}

export interface Distribution {
  mean: number
  p95: number
  most: number
}

/** @throws when there is nothing to describe. */
export function distributionOf(numbers: readonly number[]): Distribution {
  if (numbers.length === 0) throw new Error('nothing was measured')
  const sorted = Float64Array.from(numbers).sort()
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length
  return { mean, p95: sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0, most: sorted[sorted.length - 1] ?? 0 }
}
