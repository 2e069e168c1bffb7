import { valuesOf } from '../../test/dlp/corpus/corpus.ts'
import { SeededRandom } from '../../test/dlp/corpus/seeded-random.ts'
import { LABEL_TYPES } from '../../test/dlp/corpus/values.ts'
import type { BoundDetector } from '../../test/dlp/engine-under-test.ts'
import { ORDINARY_TEXTS } from '../../test/dlp/ordinary-texts.ts'
import { evenLengths, passThrough } from '../../test/dlp/stream-measures.ts'
import { leastTime } from '../../test/dlp/timing.ts'
import { textTable } from './table.ts'

/** How fast texts are looked through, in megabytes (10^6 bytes) of UTF-8 and milliseconds of one processor's time. */

const MEGABYTE = 1e6
const UNITS = 400_000
const PIECE = 10_240

export function throughputTable(detector: BoundDetector, seed: number): string {
  const texts = Object.entries(ORDINARY_TEXTS).map(([kind, write]) => ({ kind, text: write(UNITS, seed) }))
  const mixed = texts.map(({ text }) => text.slice(0, UNITS / texts.length)).join('\n')
  const rows = [...texts, { kind: 'all of them', text: mixed }].map(({ kind, text }) => {
    const bytes = Buffer.byteLength(text)
    const pieces = piecesOf(text, PIECE)
    const whole = leastTime(5, () => detector.detect(text))
    const pieced = leastTime(5, () => {
      for (const piece of pieces) detector.detect(piece)
    })
    const short = text.slice(0, UNITS / 8)
    const streamed = leastTime(2, () => passThrough(detector, short, evenLengths(16)))
    const speed = (size: number, time: number) => (size / MEGABYTE / (time / 1_000)).toFixed(1)
    return [kind, speed(bytes, whole), speed(bytes, pieced), speed(Buffer.byteLength(short), streamed)]
  })
  return textTable(['MB/s', 'whole', 'in 10 KB', 'stream of 16'], rows)
}

function piecesOf(text: string, length: number): string[] {
  return Array.from({ length: Math.ceil(text.length / length) }, (_, index) =>
    text.slice(index * length, (index + 1) * length),
  )
}

/** Times by the clock, waits for a busy machine included, of single requests of 10 KB, of every ordinary kind and with a value of each type in them. */
export function requestTable(detector: BoundDetector, seed: number): string {
  const plain = Object.values(ORDINARY_TEXTS).flatMap((write, index) =>
    piecesOf(write(PIECE * 5, seed + index), PIECE),
  )
  const random = new SeededRandom(seed)
  const values = LABEL_TYPES.flatMap((type) => valuesOf(type, 1, seed)).map(({ text }) => text)
  const laden = plain.map((text) => {
    const place = random.integer(0, PIECE - 1_000)
    return `${text.slice(0, place)} ${random.pick(values)} ${random.pick(values)} ${text.slice(place)}`
  })
  const rows = [
    ['ordinary text', ...timesOf(detector, plain)],
    ['with findings', ...timesOf(detector, laden)],
  ]
  return textTable(['ms for 10 KB', 'mean', 'p50', 'p99', 'most'], rows)
}

function timesOf(detector: BoundDetector, texts: readonly string[]): string[] {
  for (const text of texts) detector.detect(text)
  const times: number[] = []
  for (let round = 0; round < 40; round++) {
    for (const text of texts) {
      const start = performance.now()
      detector.detect(text)
      times.push(performance.now() - start)
    }
  }
  const sorted = Float64Array.from(times).sort()
  const at = (part: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length
  return [mean, at(0.5), at(0.99), at(1)].map((time) => time.toFixed(3))
}
