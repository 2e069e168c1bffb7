import type { Usage } from '../../ledger/audit-record.ts'

/** Upper bounds of the usage of a call. */
interface UsageLimits {
  /** Tokens that the upstream can have read, with all that it adds by itself. */
  input: number
  /** Tokens that were sent, by their bytes: what remains of a larger input. */
  sent: number
  /** Tokens that it can have generated. */
  output: number
  /** Uses of tools and other units, by the name of their price; `OTHER_UNITS` for those without an entry. */
  units: Readonly<Record<string, number>>
}

/** A reported usage, as far as it can be true. */
interface CheckedUsage {
  usage: Usage
  /** Whether figures had to be changed: they contradicted each other, or the limits. */
  isCorrected: boolean
}

const OTHER_UNITS = 1_000
/** Bytes of text that no model writes with a single token; the longest tokens of known vocabularies have 128. */
const LONGEST_TOKEN_BYTES = 1_000

/** Classes in the order in which they are kept where their sum is too large: the cheap reads of a cache last. */
const INPUT = ['input', 'cacheWrite1Hour', 'cacheWrite5Minutes', 'cacheRead'] as const
const INPUT_UNITS: ReadonlySet<string> = new Set(['audio_input'])
const OUTPUT_UNITS: ReadonlySet<string> = new Set(['audio_output', 'image_output'])

/**
 * The one place that decides what of a reported usage can be true. Upstreams report what they like: counts below zero,
 * fractions, more of the cache than was sent, more reasoning than output. Cached tokens are a part of the input, and
 * reasoning is a part of the output. So each is cut to its whole, and the whole to the limits of the call.
 * @param limits none for figures that only have to fit each other.
 */
export function correctedUsage(reported: Usage, limits: UsageLimits | null = null): CheckedUsage {
  const given = Object.entries(reported.units ?? {})
  const of = (names: ReadonlySet<string>) => given.filter(([name]) => names.has(name))
  const input = INPUT.map((name) => [name, reported[name]] as const)
  // The first class is what the others leave of the sum that was reported.
  const read = fitted([...of(INPUT_UNITS), ...input], limits?.input, limits?.sent)
  const written = fitted([...of(OUTPUT_UNITS), ['output', reported.output]], limits?.output)
  const output = written.output ?? 0
  const reasoning = Math.min(wholeOf(reported.reasoning), output)
  const others = given
    .filter(([name]) => !INPUT_UNITS.has(name) && !OUTPUT_UNITS.has(name))
    .map(([name, count]) => [name, Math.min(wholeOf(count), limits?.units[name] ?? OTHER_UNITS)] as const)
  const tokens = { ...read, ...written }
  const units = [
    ...given.flatMap(([name]) => (name in tokens ? [[name, tokens[name] ?? 0] as const] : [])),
    ...others,
  ]
  const kept = units.filter(([, count]) => count > 0)
  const usage: Usage = {
    ...(kept.length > 0 && { units: Object.fromEntries(kept) }),
    input: read.input ?? 0,
    cacheRead: read.cacheRead ?? 0,
    cacheWrite5Minutes: read.cacheWrite5Minutes ?? 0,
    cacheWrite1Hour: read.cacheWrite1Hour ?? 0,
    output,
    reasoning,
  }
  return { usage, isCorrected: !isSame(reported, usage) }
}

/**
 * Counts of which none is negative, and whose sum is the one that was reported.
 * @param most the largest sum that can be true. @param otherwise takes the place of a larger one.
 */
function fitted(
  counts: ReadonlyArray<readonly [name: string, count: number]>,
  most = Number.MAX_SAFE_INTEGER,
  otherwise = most,
): Record<string, number> {
  const sum = wholeOf(counts.reduce((total, [, count]) => total + count, 0))
  let left = sum > most ? otherwise : sum
  const parts: Record<string, number> = {}
  for (const [name, count] of counts) {
    parts[name] = Math.min(wholeOf(count), left)
    left -= parts[name]
  }
  return parts
}

/** A count in whole tokens; 0 for one that is none. */
const wholeOf = (count: number): number => (count > 0 ? Math.ceil(count) : 0)

const isSame = (left: Usage, right: Usage): boolean =>
  [...INPUT, 'output' as const, 'reasoning' as const].every((name) => left[name] === right[name]) &&
  Object.entries(left.units ?? {}).every(([name, count]) => (right.units?.[name] ?? 0) === count)

/** Whether a usage counts nothing of what was sent. Every request has tokens. */
export const lacksInput = ({
  input,
  cacheRead,
  cacheWrite5Minutes,
  cacheWrite1Hour,
  units,
}: Usage): boolean =>
  input + cacheRead + cacheWrite5Minutes + cacheWrite1Hour + (units?.audio_input ?? 0) === 0

/** Whether a usage counts less output than the visible text is at the least. @param textBytes of that text. */
export const lacksOutput = ({ output, units }: Usage, textBytes: number): boolean =>
  (output + (units?.audio_output ?? 0) + (units?.image_output ?? 0)) * LONGEST_TOKEN_BYTES < textBytes

/** Whether a usage has no token at all, as that of an answer that is an error. */
export const countsNothing = (usage: Usage): boolean => lacksInput(usage) && !(usage.output > 0)
