// npm run bench:dlp: how well and how fast data-loss prevention finds things, on texts made for it. No I/O but output.
import { cpus, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { ADJOINING, buildCorpus, GLUED, namedAfterSamples } from '../test/dlp/corpus/corpus.ts'
import { detectorOf, fullProfile } from '../test/dlp/engine-under-test.ts'
import { buildFakerCorpus } from '../test/dlp/faker-corpus.ts'
import {
  examples,
  fakerQuality,
  measureQuality,
  mistakenTable,
  qualityTable,
  samplesOf,
  surroundingsTable,
  variantsTable,
  weakKindsTable,
} from './bench-dlp/quality.ts'
import { requestTable, throughputTable } from './bench-dlp/speed.ts'
import { findLeaks, holdBackTable, type LeakReport, leakLines, spelledSamples } from './bench-dlp/streams.ts'

const SECTIONS = ['quality', 'faker', 'variants', 'speed', 'streams'] as const
type Section = (typeof SECTIONS)[number]

const USAGE = `npm run bench:dlp -- [options]
  --size N          values of each type, default 240
  --look-alikes N   texts with a look-alike only, default 640
  --stream-size N   values of each type that are streamed in pieces of every length, default 12
  --seed N          of all that is generated, default 1
  --examples N      shows up to N misses and wrong findings of each kind, default 0
  --only NAMES      sections, separated by commas: ${SECTIONS.join(', ')}`

interface Options {
  size: number
  lookAlikes: number
  streamSize: number
  seed: number
  examples: number
  only: readonly string[]
}

class UsageError extends Error {}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      size: { type: 'string', default: '240' },
      'look-alikes': { type: 'string', default: '640' },
      'stream-size': { type: 'string', default: '12' },
      seed: { type: 'string', default: '1' },
      examples: { type: 'string', default: '0' },
      only: { type: 'string', default: SECTIONS.join(',') },
    },
  })
  const only = values.only.split(',').map((name) => name.trim())
  const unknown = only.find((name) => !(SECTIONS as readonly string[]).includes(name))
  if (unknown !== undefined) throw new UsageError(`there is no section ${unknown}`)
  return {
    size: wholeNumber('size', values.size, 1, 10_000),
    lookAlikes: wholeNumber('look-alikes', values['look-alikes'], 1, 100_000),
    streamSize: wholeNumber('stream-size', values['stream-size'], 1, 1_000),
    seed: wholeNumber('seed', values.seed, 0, 2 ** 31),
    examples: wholeNumber('examples', values.examples, 0, 1_000),
    only,
  }
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const number = Number(text)
  if (Number.isInteger(number) && number >= least && number <= most) return number
  throw new UsageError(`--${name} takes a whole number from ${least} to ${most}`)
}

function show(title: string, text: string): void {
  console.log(`\n## ${title}\n\n${text}`)
}

function quality({ size, lookAlikes, seed, examples: most }: Options): void {
  const corpus = buildCorpus({ seed, valuesPerType: size, lookAlikes })
  const samples = samplesOf(corpus)
  const measured = measureQuality(detector, samples)
  show(
    `Quality: ${corpus.labelled.length} labelled texts, ${corpus.innocent.length} with look-alikes only`,
    qualityTable(measured),
  )
  show('Kinds that are not always found', weakKindsTable(measured, samples))
  show('Taken for something else', mistakenTable(measured, corpus))
  if (most > 0) show('Examples', examples(measured, most))
  const after = measureQuality(detector, namedAfterSamples(size, seed))
  show('Values that only a name identifies, which follows them', qualityTable(after))
}

function faker({ size, lookAlikes, seed, examples: most }: Options): void {
  const measured = fakerQuality(detector, buildFakerCorpus(size, lookAlikes, seed))
  show('Quality on values and prose of a public generator', qualityTable(measured))
  if (most > 0) show('Examples', examples(measured, most))
}

function variants({ size, seed }: Options): void {
  const corpus = buildCorpus({ seed, valuesPerType: Math.min(size, 80), lookAlikes: 1 })
  show('Other spellings', variantsTable(detector, corpus))
  const values = Math.min(size, 80)
  show('Between marks', surroundingsTable(detector, values, seed))
  show('Beside other tokens, after its name', surroundingsTable(detector, values, seed, ADJOINING, true))
  show('Beside letters, after its name', surroundingsTable(detector, values, seed, GLUED, true))
}

function speed({ seed }: Options): void {
  show('Throughput, every detector', throughputTable(detector, seed))
  show('One request', requestTable(detector, seed))
}

function streams({ streamSize, seed, examples: most }: Options): void {
  const corpus = buildCorpus({ seed, valuesPerType: streamSize, lookAlikes: 60 })
  show('Hold-back, pieces of 1 to 64', holdBackTable(detector, corpus, seed))
  showLeaks('Leaks', findLeaks(detector, samplesOf(corpus), seed), most)
  const spelled = spelledSamples(corpus, streamSize)
  showLeaks('Leaks in other spellings', findLeaks(detector, spelled, seed), most)
}

function showLeaks(title: string, report: LeakReport, most: number): void {
  show(title, leakLines(report))
  for (const leak of [...report.leaks, ...report.different].slice(0, most)) {
    console.log(
      `pieces of ${leak.pieces}: ${JSON.stringify(leak.text)} became ${JSON.stringify(leak.output)}`,
    )
  }
}

const detector = detectorOf(fullProfile())

const RUN: Record<Section, (options: Options) => void> = { quality, faker, variants, speed, streams }

function main(): void {
  const options = readOptions()
  const processors = cpus()
  console.log(
    `${processors.length} x ${processors[0]?.model ?? 'unknown'}, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}, ` +
      `seed ${options.seed}, ${fullProfile().rules.length} detectors`,
  )
  for (const section of SECTIONS) if (options.only.includes(section)) RUN[section](options)
}

try {
  main()
} catch (error) {
  const expected = error instanceof UsageError || (error instanceof TypeError && 'code' in error)
  console.error(
    `bench:dlp: ${expected ? `${error.message}\n${USAGE}` : error instanceof Error ? error.stack : String(error)}`,
  )
  process.exitCode = 1
}
