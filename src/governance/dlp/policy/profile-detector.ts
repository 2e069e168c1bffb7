import { detectAfter } from '../scan/detect.ts'
import { planFor } from '../scan/plan.ts'
import { beforeFindings, holdBack } from '../stream/hold-back.ts'
import type { TextDetector } from '../stream/text-stream.ts'
import type { Finding, Profile } from '../types.ts'
import { TOKEN, TOKEN_BEGINNING, type TokenVault } from './actions.ts'
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
      const beginning = TOKEN_BEGINNING.exec(text)
      const found = yield* inner.tail(context, text, budget)
      const tokens = tokensIn(text, vault)
      const safe = yield* beforeFindings(Math.min(found.safe, beginning?.index ?? text.length), [
        ...tokens,
        ...found.spans,
      ])
      return { safe, spans: merged(tokens, found.spans).filter(({ end }) => end <= safe) }
    },
    *rest(context, text, budget) {
      return merged(tokensIn(text, vault), yield* inner.rest(context, text, budget))
    },
    passes: detector?.passes ?? 0,
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

/**
 * Merges both in order. A finding inside of a token is about the token's name, and is dropped. A token that a finding
 * contains or overlaps is dropped, because the finding covers more.
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
