import { joinBytes } from '../../lib/byte-edits.ts'
import { decodeString } from '../../lib/json-string.ts'
import { jsonContents, pieceEnd } from '../../lib/json-text.ts'
import { drained, type Slices } from '../../lib/slices.ts'
import type { FindingGroup } from '../../wire/records.ts'
import type { HeldText, Replacement, TextEngine, TextField } from '../inspection.ts'
import { ScanBudget } from '../scan/scan-budget.ts'
import { encodedReplacement } from '../source/encoded-text.ts'
import { sourceSlices } from '../source/source-slices.ts'
import { SourceText } from '../source/source-text.ts'
import { memberContext, releaseJson } from '../stream/arguments-text.ts'
import {
  isUnchanged,
  type ReleasedText,
  type ReplaceFinding,
  replaceFindings,
  type TextDetector,
  TextStream,
} from '../stream/text-stream.ts'
import type { Action, ByDirection, Direction } from '../types.ts'
import { dlpBlocked, replacementFor, type TokenVault } from './actions.ts'
import { RESTORED } from './profile-detector.ts'

interface PolicyEngineOptions {
  /** Null where the direction is not inspected. */
  detectors: ByDirection<TextDetector | null>
  /** The detector of signed texts, where it is not that of their direction. */
  signed?: TextDetector | null
  policyVersion: string
  /** The version of the policies that hold in a direction, where it is not `policyVersion`. */
  versionIn?: (direction: Direction) => string
  /** The direction of texts whose field names none. */
  kind: Direction
  vault: TokenVault
  /** Places in which content that no engine reads must not pass. */
  blocksUninspectable?: (direction: Direction) => boolean
}

interface OpenText {
  source: SourceText
  /** Null where the text is inspected only at its end. */
  stream: TextStream | null
  /** All of a text without a stream. */
  text: string
  detector: TextDetector
  direction: Direction
}

/** Up to this, a string is decoded without a text decoder. */
const SHORT_BYTES = 48

/** Applies the policies of an organization to the texts of one direction of one call. */
export class PolicyEngine implements TextEngine {
  readonly policyVersion: string
  readonly #detectors: ByDirection<TextDetector | null>
  readonly #signed: TextDetector | null | undefined
  readonly #kind: Direction
  readonly #vault: TokenVault
  readonly #blocksUninspectable: (direction: Direction) => boolean
  /** By direction and action. */
  readonly #findings = new Map<string, FindingGroup>()
  readonly #versionIn: (direction: Direction) => string
  readonly #budget = new ScanBudget()
  readonly #open = new Map<string, OpenText>()

  constructor(options: PolicyEngineOptions) {
    this.policyVersion = options.policyVersion
    this.#detectors = options.detectors
    this.#signed = options.signed
    this.#versionIn = options.versionIn ?? (() => options.policyVersion)
    this.#kind = options.kind
    this.#vault = options.vault
    this.#blocksUninspectable = options.blocksUninspectable ?? (() => false)
  }

  inspect(field: TextField, contents: Uint8Array): Replacement | null {
    return drained(this.inspectInSlices(field, contents))
  }

  *inspectInSlices(field: TextField, contents: Uint8Array): Slices<Replacement | null> {
    const kind = field.kind ?? this.#kind
    const signed = field.signed ? this.#signed : undefined
    const detector = signed === undefined ? this.#detectors[kind] : signed
    if (!detector) return null
    this.#budget.allow(contents.length, detector.passes)
    if (field.encoded) return yield* encodedReplacement(contents, this.#stream(detector, kind))
    if (!field.partial) {
      const replacement = yield* this.#whole(field, detector, kind, contents)
      return field.fixed ? null : replacement
    }
    return yield* this.#piece(field, detector, kind, contents)
  }

  *end(prefix: string): Slices<HeldText[]> {
    const held: HeldText[] = []
    for (const [key, text] of this.#open) {
      if (!key.startsWith(prefix)) continue
      this.#open.delete(key)
      const units = text.stream
        ? yield* text.stream.endInSlices()
        : yield* this.#releaseJson(text.text, text.detector, text.direction)
      const replacement = yield* toReplacement(units, text.source)
      if (replacement.contents.length > 0 || replacement.withheld > 0) held.push({ key, ...replacement })
    }
    return held
  }

  held(): number {
    let held = 0
    for (const { source } of this.#open.values()) held += source.length
    return held
  }

  drop(): void {
    this.#open.clear()
  }

  uninspectable(kind: Direction): void {
    if (this.#blocksUninspectable(kind)) throw dlpBlocked('content that cannot be inspected')
  }

  findings(): FindingGroup[] {
    return [...this.#findings.values()]
  }

  *#whole(
    { json, name }: TextField,
    detector: TextDetector,
    direction: Direction,
    contents: Uint8Array,
  ): Slices<Replacement | null> {
    const context = name && memberContext(name)
    const replace = this.#replaceBy(detector, direction)
    if (!json && contents.length <= SHORT_BYTES) {
      return yield* this.#short(detector, replace, context ?? '', contents)
    }
    const source = new SourceText()
    if (json) {
      const texts = yield* this.#releaseJson(yield* this.#decoded(contents, source), detector, direction)
      return isUnchanged(texts) ? null : yield* toReplacement(texts, source)
    }
    const stream = this.#stream(detector, direction, context)
    const { parts, untouched } = yield* this.#push(stream, source, contents)
    const texts = yield* stream.endInSlices()
    if (untouched && isUnchanged(texts)) return null
    parts.push(yield* toReplacement(texts, source))
    return joined(parts)
  }

  /** Most strings of a request are short and have no finding: their source is read only where one is replaced. */
  *#short(
    detector: TextDetector,
    replace: ReplaceFinding,
    context: string,
    contents: Uint8Array,
  ): Slices<Replacement | null> {
    const text = decodeString(contents, 0, contents.length)
    const found = yield* detector.rest(context, text, this.#budget)
    if (found.length === 0) return null
    const texts = yield* replaceFindings(text, text.length, found, replace)
    if (isUnchanged(texts)) return null
    const source = new SourceText()
    source.push(contents)
    return yield* toReplacement(texts, source)
  }

  /** Pushes contents of any length. @returns what is released, and whether all of it passes as it is. */
  *#push(
    stream: TextStream,
    source: SourceText,
    contents: Uint8Array,
  ): Slices<{ parts: Replacement[]; untouched: boolean }> {
    const parts: Replacement[] = []
    let untouched = true
    for (const slice of sourceSlices(contents)) {
      const texts = yield* stream.pushInSlices(source.push(slice))
      untouched &&= isUnchanged(texts)
      parts.push(passing(texts, source) ?? (yield* toReplacement(texts, source)))
      this.#budget.pace(slice.length)
      if (this.#budget.endsSlice()) yield
    }
    return { parts, untouched }
  }

  *#piece(
    field: TextField,
    detector: TextDetector,
    direction: Direction,
    contents: Uint8Array,
  ): Slices<Replacement | null> {
    const key = field.key ?? field.path.join('.')
    const text = this.#open.get(key) ?? this.#begin(key, detector, direction, field.json === true)
    const { source, stream } = text
    if (!stream) {
      text.text += yield* this.#decoded(contents, source)
      return { contents: new Uint8Array(), released: 0, withheld: 0 }
    }
    const held = source.length
    const { parts, untouched } = yield* this.#push(stream, source, contents)
    // Content passes unchanged if none was held back before, none is held back now, and none was found.
    const passes = held === 0 && source.length === 0 && untouched
    return passes ? null : joined(parts)
  }

  /** The text of contents that are inspected as a whole, later. */
  *#decoded(contents: Uint8Array, source: SourceText): Slices<string> {
    let text = ''
    for (const slice of sourceSlices(contents)) {
      text += source.push(slice)
      this.#budget.spend(slice.length)
      if (this.#budget.endsSlice()) yield
    }
    return text
  }

  #begin(key: string, detector: TextDetector, direction: Direction, isJson: boolean): OpenText {
    const stream = isJson ? null : this.#stream(detector, direction)
    const text = { source: new SourceText(), stream, text: '', detector, direction }
    this.#open.set(key, text)
    return text
  }

  #stream(detector: TextDetector, direction: Direction, context?: string): TextStream {
    return new TextStream(detector, this.#replaceBy(detector, direction), context, this.#budget)
  }

  #releaseJson(text: string, detector: TextDetector, direction: Direction): Slices<ReleasedText[]> {
    return releaseJson(text, detector, this.#replaceBy(detector, direction), this.#budget)
  }

  #replaceBy(detector: TextDetector, direction: Direction): ReplaceFinding {
    return (span, found) => {
      if (span.detector === RESTORED) return this.#vault.valueOf(found)
      const action = detector.actionOf(span)
      if (action === 'allow') return null
      this.#count(direction, span.detector, action)
      return replacementFor({ detector: span.detector, action }, found, this.#vault)
    }
  }

  #count(direction: Direction, detector: string, action: Action): void {
    const name = `${direction} ${action}`
    const known = this.#findings.get(name)
    const group = known ?? { direction, action, policy: this.#versionIn(direction), findings: {} }
    if (known === undefined) this.#findings.set(name, group)
    group.findings[detector] = (group.findings[detector] ?? 0) + 1
  }
}

const encoder = new TextEncoder()

/** Segments, and units of a replacement, that are written in one slice. */
const SEGMENTS_AT_ONCE = 1024
const UNITS_AT_ONCE = 64 * 1024

/** The source of texts that pass as they are, as most do; null for others (`toReplacement`). */
function passing([first, second]: readonly ReleasedText[], source: SourceText): Replacement | null {
  if (first === undefined) return { contents: new Uint8Array(), released: 0, withheld: 0 }
  if (second !== undefined || first.replacement !== null) return null
  const contents = source.take(first.units)
  return { contents, released: contents.length, withheld: 0 }
}

/** The source of the units of released texts, which are taken off, with the replacements in it. */
function* toReplacement(texts: readonly ReleasedText[], source: SourceText): Slices<Replacement> {
  const joinedPieces: Uint8Array[] = []
  let pieces: Uint8Array[] = []
  let released = 0
  let withheld = 0
  for (const [index, { units, replacement }] of texts.entries()) {
    if (index % SEGMENTS_AT_ONCE === SEGMENTS_AT_ONCE - 1) {
      joinedPieces.push(joinBytes(pieces))
      pieces = []
      yield
    }
    const bytes = source.take(units)
    if (replacement === null) {
      pieces.push(bytes)
      released += bytes.length
    } else {
      for (let at = 0; at < replacement.length; ) {
        const end = pieceEnd(replacement, at, UNITS_AT_ONCE)
        pieces.push(encoder.encode(jsonContents(replacement.slice(at, end))))
        at = end
        if (at < replacement.length) yield
      }
      withheld += bytes.length
    }
  }
  return { contents: joinBytes([...joinedPieces, ...pieces]), released, withheld }
}

function joined(parts: readonly Replacement[]): Replacement {
  const [first] = parts
  if (first && parts.length === 1) return first
  return {
    contents: joinBytes(parts.map(({ contents }) => contents)),
    released: parts.reduce((total, part) => total + part.released, 0),
    withheld: parts.reduce((total, part) => total + part.withheld, 0),
  }
}
