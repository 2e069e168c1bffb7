import type { Corpus } from '../../test/dlp/corpus/corpus.ts'
import type { Sample } from '../../test/dlp/corpus/labelled-text.ts'
import { SeededRandom } from '../../test/dlp/corpus/seeded-random.ts'
import type { BoundDetector } from '../../test/dlp/engine-under-test.ts'
import { ORDINARY_TEXTS } from '../../test/dlp/ordinary-texts.ts'
import { SPELLING_VARIANTS } from '../../test/dlp/spelling-variants.ts'
import {
  distributionOf,
  evenLengths,
  leakedUnits,
  passThrough,
  randomLengths,
  wholeOutput,
} from '../../test/dlp/stream-measures.ts'
import { textTable } from './table.ts'

/** Measures how much streams hold back and whether a finding passes undetected, for pieces of every length. */

const LONGEST_PIECE = 64
const ORDINARY_UNITS = 6_000
const RANDOM_SPLITS = 4

const pieceLengths = Array.from({ length: LONGEST_PIECE }, (_, index) => index + 1)

/** Units held after each piece of an ordinary text, by length of the pieces from 1 to 64. */
export function measureHoldBack(
  detector: BoundDetector,
  seed: number,
  units: number,
): { kind: string; held: number[][] }[] {
  return Object.entries(ORDINARY_TEXTS).map(([kind, write]) => {
    const text = write(units, seed)
    return { kind, held: pieceLengths.map((length) => passThrough(detector, text, evenLengths(length)).held) }
  })
}

/** Every piece of every chunking counts once; the last columns are of pieces of 4 alone. */
export function holdBackTable(detector: BoundDetector, corpus: Corpus, seed: number): string {
  const ordinary = measureHoldBack(detector, seed, ORDINARY_UNITS)
  const laden = corpus.labelled.map(({ text }) =>
    pieceLengths.map((length) => passThrough(detector, text, evenLengths(length)).held),
  )
  const row = (kind: string, texts: readonly (readonly (readonly number[])[])[]) => [
    kind,
    ...describe(texts.flat(2)),
    ...describe(texts.flatMap((held) => held[3] ?? [])),
  ]
  return textTable(
    ['units held back', 'mean', 'p95', 'most', 'mean at 4', 'p95', 'most'],
    [
      ...ordinary.map(({ kind, held }) => row(kind, [held])),
      row(
        'ordinary text, all',
        ordinary.map(({ held }) => held),
      ),
      row('texts with findings', laden),
    ],
  )
}

function describe(held: readonly number[]): (string | number)[] {
  const { mean, p95, most } = distributionOf(held)
  return [mean.toFixed(1), p95, most]
}

export interface Leak {
  text: string
  what: string
  pieces: string
  units: number
  output: string
}

export interface LeakReport {
  passages: number
  leaks: Leak[]
  /** Passages whose output is not what the whole text becomes, without a unit of a finding having passed. */
  different: Leak[]
}

/** Sends every text through in pieces of each length from 1 to 64 and in random ones. */
export function findLeaks(detector: BoundDetector, samples: Iterable<Sample>, seed: number): LeakReport {
  const random = new SeededRandom(seed)
  const report: LeakReport = { passages: 0, leaks: [], different: [] }
  for (const { text, labels, setting } of samples) {
    const spans = detector.detect(text)
    const whole = wholeOutput(text, spans)
    const chunkings: [string, Iterable<number>][] = [
      ...pieceLengths.map((length): [string, Iterable<number>] => [`${length}`, evenLengths(length)]),
      ...Array.from({ length: RANDOM_SPLITS }, (): [string, Iterable<number>] => [
        'random',
        [...take(randomLengths(random, LONGEST_PIECE), text.length)],
      ]),
    ]
    for (const [pieces, lengths] of chunkings) {
      const passage = passThrough(detector, text, lengths)
      report.passages++
      const units = leakedUnits(passage, spans)
      const what = labels.map(({ type, kind }) => `${type} ${kind}`).join() || setting
      const leak = { text, what, pieces, units, output: passage.output }
      if (units > 0) report.leaks.push(leak)
      else if (passage.output !== whole) report.different.push(leak)
    }
  }
  return report
}

/** A few texts of each spelling variant, by its name. */
export function spelledSamples({ labelled }: Corpus, textsPerVariant: number): Sample[] {
  return SPELLING_VARIANTS.flatMap(({ name, types, spell }) =>
    labelled
      .filter(({ labels }) => labels.every(({ type }) => types.includes(type)))
      .filter((_, index, fitting) => index % Math.ceil(fitting.length / textsPerVariant) === 0)
      .map((sample) => ({ ...spell(sample), setting: name }))
      .map((sample) => ({
        ...sample,
        labels: sample.labels.map((label) => ({ ...label, kind: `${label.kind}, ${name}` })),
      })),
  )
}

function* take(numbers: Iterable<number>, most: number): Generator<number> {
  let count = 0
  for (const number of numbers) {
    if (count++ >= most) return
    yield number
  }
}

export function leakLines({ passages, leaks, different }: LeakReport): string {
  const byValue = new Map<string, number>()
  for (const { what } of [...leaks, ...different]) byValue.set(what, (byValue.get(what) ?? 0) + 1)
  return [
    `${passages} passages in pieces of 1 to ${LONGEST_PIECE} and at random: ${leaks.length} with a leak, ${different.length} without one that differ from the whole text`,
    ...[...byValue].map(([what, count]) => `  ${what}: ${count}`),
  ].join('\n')
}
