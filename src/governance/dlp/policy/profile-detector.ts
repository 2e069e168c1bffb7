import { detectAfter } from '../scan/detect.ts'
import { planFor } from '../scan/plan.ts'
import { holdBack } from '../stream/hold-back.ts'
import type { TextDetector } from '../stream/text-stream.ts'
import type { Finding, Profile } from '../types.ts'
import { TOKEN, TOKEN_BEGINNING, type TokenVault } from './actions.ts'
import { actionOf } from './profiles.ts'

/** Detector of tokens that stand for the caller's own values. */
export const RESTORED = 'restored-token'

const compiled = new WeakMap<Profile, TextDetector>()

/**
 * What looks at the texts of a profile; the same one for the same profile.
 * @throws PatternError for a profile with a pattern that does not compile.
 */
export function detectorOf(profile: Profile): TextDetector {
  const known = compiled.get(profile)
  if (known) return known
  // Now, when nothing has been sent yet, and not at the first text.
  planFor(profile)
  const detector: TextDetector = {
    tail: (context, text) => holdBack(context, text, profile),
    rest: (context, text) => detectAfter(context, text, profile),
    actionOf: (span) => actionOf(profile, span) ?? 'allow',
  }
  compiled.set(profile, detector)
  return detector
}

const nothing: Pick<TextDetector, 'tail' | 'rest'> = {
  tail: (_context, text) => ({ safe: text.length, spans: [] }),
  rest: () => [],
}

/**
 * Finds, besides what `detector` finds, the tokens of this call: their values go back to the caller they are of.
 * @param detector null where no policy covers the direction. @returns null where there is nothing to look for.
 */
export function restoringDetector(detector: TextDetector | null, vault: TokenVault): TextDetector | null {
  if (vault.isEmpty) return detector
  const looksFor = detector ?? nothing
  return {
    tail(context, text) {
      const beginning = TOKEN_BEGINNING.exec(text)
      const found = looksFor.tail(context, text)
      const tokens = tokensIn(text, vault)
      const safe = beforeSpans(Math.min(found.safe, beginning?.index ?? text.length), [
        ...tokens,
        ...found.spans,
      ])
      return { safe, spans: merged(tokens, found.spans).filter(({ end }) => end <= safe) }
    },
    rest: (context, text) => merged(tokensIn(text, vault), looksFor.rest(context, text)),
    actionOf: (span) => detector?.actionOf(span) ?? 'allow',
  }
}

function tokensIn(text: string, vault: TokenVault): Finding[] {
  return [...text.matchAll(TOKEN)]
    .filter(([token]) => vault.valueOf(token) !== null)
    .map(({ 0: token, index }) => ({
      start: index,
      end: index + token.length,
      detector: RESTORED,
      category: 'custom',
      score: 1,
    }))
}

/** Moves a boundary before every span that it would cut. */
function beforeSpans(boundary: number, spans: readonly Finding[]): number {
  let safe = boundary
  for (const { start, end } of [...spans].sort((left, right) => right.end - left.end)) {
    if (start < safe && end > safe) safe = start
  }
  return safe
}

/**
 * In order. What is found inside of a token is about its name, not about a value; what is found around one or across
 * its end is about more than the token, which gives way.
 */
function merged(tokens: readonly Finding[], found: readonly Finding[]): Finding[] {
  const real = found.filter(
    ({ start, end }) => !tokens.some((token) => start >= token.start && end <= token.end),
  )
  const free = tokens.filter(
    (token) => !real.some(({ start, end }) => start < token.end && end > token.start),
  )
  return [...free, ...real].sort((left, right) => left.start - right.start)
}
