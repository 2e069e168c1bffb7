import { type Slices, sortedInSlices } from '../../lib/slices.ts'
import { detectAfter } from '../scan/detect.ts'
import { planFor } from '../scan/plan.ts'
import type { ScanBudget } from '../scan/scan-budget.ts'
import { beforeFindings, holdBack } from '../stream/hold-back.ts'
import type { TextDetector } from '../stream/text-stream.ts'
import type { Finding, Profile } from '../types.ts'
import { LONGEST_TOKEN, TOKEN, TOKEN_BEGINNING, type TokenVault } from './actions.ts'
import { actionOf } from './profiles.ts'

/** The detector of tokens that are replaced by the caller's own values. */
export const RESTORED = 'restored-token'

const compiled = new WeakMap<Profile, TextDetector>()

/**
 * The detector of a profile; the same one for the same profile.
 * @throws PatternError for a profile with a pattern that does not compile.
 */
export function detectorOf(profile: Profile): TextDetector {
  const known = compiled.get(profile)
  if (known) return known
  // Compiled here, before anything is sent, so that a pattern fails before the first text.
  planFor(profile)
  const detector: TextDetector = {
    tail: (context, text, budget) => holdBack(context, text, profile, budget),
    rest: (context, text, budget) => detectAfter(context, text, profile, budget),
    passes: profile.custom.length,
    actionOf: (span) => actionOf(profile, span) ?? 'allow',
  }
  compiled.set(profile, detector)
  return detector
}

const nothing: Pick<TextDetector, 'tail' | 'rest'> = {
  // biome-ignore lint/correctness/useYield: nothing is to be done
  *tail(_context, text) {
    return { safe: text.length, spans: [] }
  },
  // biome-ignore lint/correctness/useYield: nothing is to be done
  *rest() {
    return []
  },
}

/**
 * Finds the tokens of this call beside what `detector` finds, so that their values return to the caller.
 * @param detector null where no policy covers the direction. @returns null where nothing can be found.
 */
export function restoringDetector(detector: TextDetector | null, vault: TokenVault): TextDetector | null {
  if (vault.isEmpty) return detector
  const inner = detector ?? nothing
  return {
    *tail(context, text, budget) {
      const open = beginningOfToken(text)
      const found = yield* inner.tail(context, text, budget)
      const tokens = yield* tokensIn(text, vault, budget)
      const safe = yield* beforeFindings(Math.min(found.safe, open), [...tokens, ...found.spans])
      return { safe, spans: (yield* merged(tokens, found.spans)).filter(({ end }) => end <= safe) }
    },
    *rest(context, text, budget) {
      const found = yield* inner.rest(context, text, budget)
      return yield* merged(yield* tokensIn(text, vault, budget), found)
    },
    passes: detector?.passes ?? 0,
    actionOf: (span) => detector?.actionOf(span) ?? 'allow',
  }
}

/** Where a token may have begun at the end of a text; the text's length if none has. */
function beginningOfToken(text: string): number {
  const from = Math.max(0, text.length - LONGEST_TOKEN)
  const beginning = TOKEN_BEGINNING.exec(text.slice(from))
  return beginning ? from + beginning.index : text.length
}

/** Tokens that are looked up in one slice. */
const TOKENS_AT_ONCE = 1024

/** The tokens of this call in a text, in order. @throws ApiError `dlp_too_complex` for too many of them. */
function* tokensIn(text: string, vault: TokenVault, budget: ScanBudget): Slices<Finding[]> {
  const tokens: Finding[] = []
  let places = 0
  for (const place of tokenPlaces(text)) {
    if (place === null || ++places % TOKENS_AT_ONCE === 0) yield
    if (place === null || vault.valueOf(place.token) === null) continue
    const { token, start } = place
    tokens.push({ start, end: start + token.length, detector: RESTORED, category: 'custom', score: 1 })
    budget.checkFindings(tokens.length)
  }
  return tokens
}

/** Units that are searched in one slice. */
const PART_UNITS = 64 * 1024

/** Texts in the form of a token, in order; null after each part of a text. */
function* tokenPlaces(text: string): Generator<{ token: string; start: number } | null> {
  let from = 0
  for (let part = 0; part < text.length; part += PART_UNITS) {
    const start = Math.max(part, from)
    const searched = text.slice(start, part + PART_UNITS + LONGEST_TOKEN)
    for (const { 0: token, index } of searched.matchAll(TOKEN)) {
      if (start + index >= part + PART_UNITS) break
      yield { token, start: start + index }
      from = start + index + token.length
    }
    if (part + PART_UNITS < text.length) yield null
  }
}

/**
 * Merges both, each in order and none overlapping another of its own. A finding inside of a token is about the token's
 * name, and is dropped. A token that a finding contains or overlaps is dropped, because the finding covers more.
 */
function* merged(tokens: readonly Finding[], found: readonly Finding[]): Slices<Finding[]> {
  if (tokens.length === 0) return [...found]
  let token = 0
  const real = found.filter(({ start, end }) => {
    while ((tokens[token]?.end ?? Number.POSITIVE_INFINITY) <= start) token++
    return !((tokens[token]?.start ?? end) <= start && end <= (tokens[token]?.end ?? 0))
  })
  let next = 0
  const free = tokens.filter(({ start, end }) => {
    while ((real[next]?.end ?? Number.POSITIVE_INFINITY) <= start) next++
    return (real[next]?.start ?? end) >= end
  })
  return yield* sortedInSlices([...free, ...real], (left, right) => left.start - right.start)
}
