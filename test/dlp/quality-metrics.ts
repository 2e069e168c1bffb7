import type { Finding } from '../../src/dlp/types.ts'
import type { Label, Sample } from './corpus/labelled-text.ts'
import type { LabelType } from './corpus/values.ts'
import { typeOfDetector } from './detector-types.ts'

/**
 * How findings are held against labels. A finding fits a label of its type when it covers at least nine tenths of the
 * label's required part, and at least half of the finding lies within the label's outer ends. A label is found when a
 * finding fits it. A finding is right when it fits a label; it counts neither way when it says something true about a
 * part of a label of another type (`TRUE_WITHIN`); everything else found is wrong, also when it covers a label of
 * another type.
 */

const COVERED = 0.9
const WITHIN = 0.5

/** Types whose findings are true inside a value of the type named first: a mail address has a domain. */
const TRUE_WITHIN: { readonly [Type in LabelType]?: readonly LabelType[] } = {
  url_credentials: ['domain', 'ip', 'email'],
  email: ['domain'],
  vendor_key: ['domain', 'jwt', 'entropy_secret'],
  jwt: ['entropy_secret'],
  private_key: ['entropy_secret'],
  entropy_secret: ['vendor_key'],
}

/** Types that name the same thing, as far as a policy is concerned: a secret is a secret. */
const SAME_AS: { readonly [Type in LabelType]?: readonly LabelType[] } = {
  vendor_key: ['entropy_secret', 'url_credentials'],
  entropy_secret: ['vendor_key'],
  url_credentials: ['vendor_key', 'entropy_secret'],
}

export interface TypeQuality {
  labels: number
  found: number
  /** Labels that are covered by findings of any type, and so would not have been released. */
  covered: number
  right: number
  wrong: number
}

export interface Miss {
  sample: Sample
  label: Label
  /** The label at that place, if there is one. */
  instead: string[]
}

export interface WrongFinding {
  sample: Sample
  span: Finding
  type: LabelType | null
}

/** Counts of a whole corpus, by type. */
export class Quality {
  readonly types = new Map<LabelType, TypeQuality>()
  readonly misses: Miss[] = []
  readonly wrongFindings: WrongFinding[] = []
  /** Findings of detectors that no type of the corpus stands for. */
  readonly unknownDetectors = new Map<string, number>()

  add(sample: Sample, spans: readonly Finding[]): void {
    for (const label of sample.labels) this.#addLabel(sample, label, spans)
    for (const span of spans) this.#addFinding(sample, span)
  }

  of(type: LabelType): TypeQuality {
    const known = this.types.get(type)
    if (known) return known
    const fresh: TypeQuality = { labels: 0, found: 0, covered: 0, right: 0, wrong: 0 }
    this.types.set(type, fresh)
    return fresh
  }

  /** @returns 0 to 1, or 1 without labels. */
  recall(type: LabelType): number {
    const { labels, found } = this.of(type)
    return labels === 0 ? 1 : found / labels
  }

  /** @returns 0 to 1, or 1 without findings. */
  precision(type: LabelType): number {
    const { right, wrong } = this.of(type)
    return right + wrong === 0 ? 1 : right / (right + wrong)
  }

  f1(type: LabelType): number {
    const [precision, recall] = [this.precision(type), this.recall(type)]
    return precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall)
  }

  #addLabel(sample: Sample, label: Label, spans: readonly Finding[]): void {
    const quality = this.of(label.type)
    quality.labels++
    const found = spans.some((span) => isOfType(span, label.type) && fits(span, label))
    if (found) quality.found++
    else {
      const instead = spans.filter((span) => overlap(span, label) > 0).map(({ detector }) => detector)
      this.misses.push({ sample, label, instead })
    }
    if (coveredUnits(spans, label) >= COVERED * (label.end - label.start)) quality.covered++
  }

  #addFinding(sample: Sample, span: Finding): void {
    const type = typeOfDetector(span.detector)
    if (type === null) {
      this.unknownDetectors.set(span.detector, (this.unknownDetectors.get(span.detector) ?? 0) + 1)
    }
    const touched = sample.labels.filter((label) => overlapOuter(span, label) > 0)
    if (touched.some((label) => isOfType(span, label.type) && fits(span, label))) {
      // Counted for the type of the detector's own, so that precision is what that detector deserves.
      if (type !== null) this.of(type).right++
      return
    }
    const trueWithin = touched.some((label) => type !== null && TRUE_WITHIN[label.type]?.includes(type))
    if (trueWithin) return
    if (type !== null) this.of(type).wrong++
    this.wrongFindings.push({ sample, span, type })
  }
}

function isOfType(span: Finding, label: LabelType): boolean {
  const type = typeOfDetector(span.detector)
  return type !== null && (type === label || (SAME_AS[label]?.includes(type) ?? false))
}

function fits(span: Finding, label: Label): boolean {
  return (
    overlap(span, label) >= COVERED * (label.end - label.start) &&
    overlapOuter(span, label) >= WITHIN * (span.end - span.start)
  )
}

interface Range {
  start: number
  end: number
}

function overlap(left: Range, right: Range): number {
  return Math.max(0, Math.min(left.end, right.end) - Math.max(left.start, right.start))
}

const overlapOuter = (span: Finding, label: Label): number =>
  overlap(span, { start: label.outerStart, end: label.outerEnd })

/** Findings do not overlap each other. */
const coveredUnits = (spans: readonly Finding[], label: Label): number =>
  spans.reduce((sum, span) => sum + overlap(span, label), 0)
