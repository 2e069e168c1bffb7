import { type Corpus, SURROUNDINGS, surroundedSamples } from '../../test/dlp/corpus/corpus.ts'
import type { Sample } from '../../test/dlp/corpus/labelled-text.ts'
import { LABEL_TYPES, type LabelType } from '../../test/dlp/corpus/values.ts'
import type { BoundDetector } from '../../test/dlp/engine-under-test.ts'
import type { FakerCorpus } from '../../test/dlp/faker-corpus.ts'
import { Quality } from '../../test/dlp/quality-metrics.ts'
import { SPELLING_VARIANTS } from '../../test/dlp/spelling-variants.ts'
import { share, textTable } from './table.ts'

/** How well values are found and nothing else is: by type, by kind within a type, and in other spellings. */

export function measureQuality(detector: BoundDetector, samples: Iterable<Sample>): Quality {
  const quality = new Quality()
  for (const sample of samples) quality.add(sample, detector.detect(sample.text))
  return quality
}

export function samplesOf({ labelled, innocent }: Corpus): Sample[] {
  return [...labelled, ...innocent.map(({ sample }) => sample)]
}

const typesIn = (quality: Quality): LabelType[] => LABEL_TYPES.filter((type) => quality.of(type).labels > 0)

export function qualityTable(quality: Quality): string {
  const rows = typesIn(quality).map((type) => {
    const { labels, covered, wrong } = quality.of(type)
    const numbers = [quality.recall(type), quality.precision(type), quality.f1(type), covered / labels]
    return [type, labels, ...numbers.map(share), wrong]
  })
  return textTable(['type', 'labels', 'recall', 'precision', 'F1', 'covered', 'wrong'], rows)
}

/** Kinds that are not always found, worst first. */
export function weakKindsTable(quality: Quality, samples: readonly Sample[]): string {
  const labels = new Map<string, number>()
  const missed = new Map<string, number>()
  const count = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const { labels: found } of samples)
    for (const { type, kind } of found) count(labels, `${type} ${kind}`)
  for (const { label } of quality.misses) count(missed, `${label.type} ${label.kind}`)
  const rows = [...missed]
    .map(([kind, misses]) => ({ kind, misses, total: labels.get(kind) ?? misses }))
    .sort((left, right) => right.misses / right.total - left.misses / left.total)
    .map(({ kind, misses, total }) => [kind, total, misses, share(1 - misses / total)])
  return textTable(['kind', 'labels', 'missed', 'recall'], rows)
}

/** Look-alikes that were taken for something. */
export function mistakenTable(quality: Quality, corpus: Corpus): string {
  const kinds = new Map(corpus.innocent.map(({ sample, lookAlike }) => [sample, lookAlike.kind]))
  const counts = new Map<string, number>()
  for (const { sample, span } of quality.wrongFindings) {
    const key = `${kinds.get(sample) ?? 'in a labelled text'}|${span.detector}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  const rows = [...counts]
    .sort((left, right) => right[1] - left[1])
    .map(([key, count]) => [...key.split('|'), count])
  return textTable(['look-alike', 'taken for', 'times'], rows)
}

export function variantsTable(detector: BoundDetector, corpus: Corpus): string {
  const columns = LABEL_TYPES.filter((type) => SPELLING_VARIANTS.some(({ types }) => types.includes(type)))
  const rows = SPELLING_VARIANTS.map((variant) => {
    const samples = corpus.labelled.filter(({ labels }) =>
      labels.every(({ type }) => variant.types.includes(type)),
    )
    const quality = measureQuality(detector, samples.map(variant.spell))
    return [
      variant.name,
      ...columns.map((type) => (variant.types.includes(type) ? quality.recall(type).toFixed(2) : '')),
    ]
  })
  return textTable(['recall, spelled with', ...columns.map((type) => type.slice(0, 9))], rows)
}

/** @param allNamed whether each value has its name before it, as those that other tokens adjoin */
export function surroundingsTable(
  detector: BoundDetector,
  valuesPerType: number,
  seed: number,
  marks = SURROUNDINGS,
  allNamed = false,
): string {
  const rows = marks.map((mark) => {
    const quality = measureQuality(detector, surroundedSamples(valuesPerType, seed, mark, allNamed))
    return [
      JSON.stringify(mark.join('…')).slice(1, -1),
      ...LABEL_TYPES.map((type) => (quality.recall(type) === 1 ? '' : quality.recall(type).toFixed(2))),
    ]
  })
  return textTable(['recall where not 1, between', ...LABEL_TYPES.map((type) => type.slice(0, 9))], rows)
}

export function fakerQuality(detector: BoundDetector, corpus: FakerCorpus): Quality {
  return measureQuality(detector, [...corpus.labelled, ...corpus.innocent])
}

/** Some of what was missed or wrong, with the words around it. The corpus has no real person's data. */
export function examples(quality: Quality, most: number): string {
  const around = (text: string, start: number, end: number): string =>
    JSON.stringify(text.slice(Math.max(0, start - 40), Math.min(end, start + 80) + 20))
  const seen = new Map<string, number>()
  const fresh = (key: string): boolean => {
    seen.set(key, (seen.get(key) ?? 0) + 1)
    return (seen.get(key) ?? 0) <= most
  }
  const missed = quality.misses
    .filter(({ label }) => fresh(`${label.type} ${label.kind}`))
    .map(
      ({ sample, label, instead }) =>
        `missed ${label.type} ${label.kind} in ${sample.setting}: ${around(sample.text, label.outerStart, label.outerEnd)}${instead.length > 0 ? ` found as ${instead}` : ''}`,
    )
  const wrong = quality.wrongFindings
    .filter(({ span }) => fresh(`wrong ${span.detector}`))
    .map(
      ({ sample, span }) =>
        `wrong ${span.detector} ${span.score}: ${JSON.stringify(sample.text.slice(span.start, span.end).slice(0, 80))} in ${around(sample.text, span.start, span.end)}`,
    )
  return [...missed, ...wrong].join('\n')
}
