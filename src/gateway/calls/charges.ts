import { addUsage, costOf, NO_USAGE, type Prices, reservationFor } from '../../calls/usage.ts'
import type { CallOutcome, Usage, UsageProvenance } from '../../ledger/audit-record.ts'
import type { CatalogueModel } from '../catalogue/model-catalogue.ts'
import { correctedUsage, lacksInput, lacksOutput } from '../protocols/plausible-usage.ts'
import type { Meter } from '../protocols/protocol.ts'
import type { RequestOutline } from '../protocols/request-outline.ts'
import { type CallTerms, PLAIN_TERMS } from './call-terms.ts'
import { thinkingBudget } from './hidden-output.ts'
import { laterReads, MOST_ROUNDS } from './server-tool-input.ts'

/** Bytes of text for one token in an estimate, for the vocabularies that spend the fewest tokens. */
export const MOST_BYTES_PER_TOKEN = 3
/**
 * The most tokens of one image or sound beyond its bytes: a link is short, its target is not. The highest known number is
 * gpt-4o-mini's, 48,169: https://platform.openai.com/docs/guides/images-vision
 */
const IMAGE_TOKENS = 50_000
/**
 * Tokens of a picture or document in an estimate, on top of its bytes, because it may be a link: a picture of 1024 x 1024
 * (https://platform.openai.com/docs/guides/images-vision), or about two pages.
 */
const LINKED_TOKENS = 1_000
/** Tokens of the text that providers put before the tools of a request. */
const TOOL_PREAMBLE_TOKENS = 1_000
/** The most tokens that a provider adds to a request by itself: system prompts and templates. Assumed. */
const ADDED_TOKENS = 10_000

/** The most that a call can use, and the reservation for it. */
export interface CallBounds {
  inputTokens: number
  /** Over all choices. */
  outputTokens: number
  /** Micro-credits. */
  reserve: number
  /** Estimated tokens of pictures and documents; absent without any. */
  linkedTokens?: number
  /** Upper bound of plausible input, which includes additions by the provider. */
  mostInput: number
  /** The most uses of each unit; absent without units. */
  units?: Record<string, number>
}

/** The basis of a call's charge. Plain data: it is stored with an open call. */
export interface ChargeBasis {
  /** Those of the dearest route, until the route that answers is known. */
  prices: Prices
  /** Prices of routes at 100 percent; absent where all routes cost the same. */
  pricesOfRoutes?: Prices
  bounds: CallBounds
  requestBytes: number
  /** The most tokens of output that only the usage shows, of a call that reasons (`hidden-output.ts`); 0 or absent for others. */
  hiddenOutput?: number
  /** See `ModelFamily`; `MOST_BYTES_PER_TOKEN` if absent. */
  bytesPerToken?: number
  /** Units that no usage states. */
  fixedUnits?: Record<string, number>
  /** Parts that the call may use without a price; its record is flagged. */
  unpriced?: string[]
  /** Whether tokens are charged: counting them is free. */
  charged: boolean
}

export type Charge = Pick<CallOutcome, 'usage' | 'provenance' | 'cost'> & {
  /** Absent for none. */
  flags?: string[]
}

export const NO_CHARGE: Charge = { usage: null, provenance: null, cost: 0 }

/**
 * Bounds of a call at the prices of `model`. A token is at least one byte, so the body's length bounds its text; a document
 * may fill the context window. The results of a tool that runs at the provider are read again after each round.
 */
export function boundsOf(
  outline: RequestOutline,
  model: CatalogueModel,
  terms: CallTerms = PLAIN_TERMS,
): CallBounds {
  const preamble = outline.hasTools ? TOOL_PREAMBLE_TOKENS * (1 + outline.providedTools) : 0
  const text = outline.bytes + outline.images * IMAGE_TOKENS + preamble
  const window = Math.max(model.contextWindow, terms.window)
  const limit = outline.maximumOutput ?? model.maxOutputTokens
  const output = limit + outputBeyondLimit(outline)
  const first = outline.documents > 0 ? window : Math.min(text, window)
  const later = laterReads(outline, { first, output, window })
  const inputTokens = first + later.total + terms.compactions * later.last
  // Results of the provider's tools and documents may be larger than any estimate of them.
  const isBoundByText = outline.documents === 0 && inputTokens === first
  const mostInput =
    (isBoundByText ? text : (1 + MOST_ROUNDS) * (1 + terms.compactions) * window) + ADDED_TOKENS
  const outputTokens = (output + terms.compactions * (outline.maximumOutput ?? 0)) * outline.choices
  const units: Record<string, number> = {}
  for (const { price, most } of terms.priced) units[price] = (units[price] ?? 0) + (most ?? 0)
  const reserve = reservationFor(inputTokens, outputTokens, model.prices, units)
  const linked = outline.images + outline.documents + outline.serverTools.length
  return {
    inputTokens,
    outputTokens,
    reserve: Math.min(reserve, Number.MAX_SAFE_INTEGER),
    mostInput: Math.max(mostInput, inputTokens),
    ...(Object.keys(units).length > 0 && { units }),
    ...(linked > 0 && { linkedTokens: linked * LINKED_TOKENS }),
  }
}

/**
 * Output that the limit of a request does not cover: a budget of thinking, which may be above it with interleaved thinking
 * (https://docs.claude.com/en/docs/build-with-claude/extended-thinking) and beside it on servers of chat completions; and
 * a prediction, whose rejected tokens are output (https://platform.openai.com/docs/guides/predicted-outputs).
 */
function outputBeyondLimit({ fields, maximumOutput, bytes, budgetIsWithinLimit }: RequestOutline): number {
  const prediction = fields.prediction ? bytes : 0
  const budget = thinkingBudget(fields)
  const isWithin = budgetIsWithinLimit && budget < (maximumOutput ?? 0)
  return prediction + (isWithin ? 0 : budget)
}

/**
 * The usage of a call by the bytes that passed, within the bounds of the call. @param textBytes of generated text.
 * @internal Tests compare estimates with a reference.
 */
export function estimateUsage(
  {
    requestBytes,
    bounds,
    bytesPerToken = MOST_BYTES_PER_TOKEN,
  }: Pick<ChargeBasis, 'requestBytes' | 'bounds' | 'bytesPerToken'>,
  textBytes: number,
): Usage {
  const text = Math.ceil(requestBytes / bytesPerToken)
  const input = Math.min(text + (bounds.linkedTokens ?? 0), bounds.inputTokens)
  const output = Math.min(Math.ceil(textBytes / bytesPerToken), bounds.outputTokens)
  return { ...NO_USAGE, input, output }
}

/** The input alone, estimated: for a request that an upstream has read, with or without an answer. */
export const inputUsage = (basis: ChargeBasis): Usage | null =>
  basis.charged ? estimateUsage(basis, 0) : null

/** The charge for a whole answer. @param reported null when the upstream reported nothing. */
export const answerCharge = (basis: ChargeBasis, reported: Usage | null, textBytes: number): Charge =>
  basis.charged ? meteredCharge(basis, reported && { usage: reported, final: true }, textBytes) : NO_CHARGE

/** The charge for a stream so far: as reported, or estimated where the upstream has not reported everything. */
export const streamCharge = (basis: ChargeBasis, meter: Meter): Charge =>
  meteredCharge(basis, meter.usage(), meter.textBytes)

/** A usage that cannot be true was charged as far as it can be. */
const IMPLAUSIBLE = 'implausible_usage'

/**
 * The charge for what an upstream reported, as far as it can be true, and for an estimate of the rest. If a usage is
 * not final, its output is a part of the whole.
 */
function meteredCharge(basis: ChargeBasis, reported: ReturnType<Meter['usage']>, textBytes: number): Charge {
  const estimate = estimateUsage(basis, textBytes)
  if (!reported) return charge(basis, estimate, 'estimated')
  const { mostInput, inputTokens, outputTokens, units = {} } = basis.bounds
  // A token is at least one byte: a provider that ignores the limit is paid for what it has sent.
  const limits = { input: mostInput, sent: inputTokens, output: Math.max(outputTokens, textBytes), units }
  const { usage, isCorrected } = correctedUsage(reported.usage, limits)
  const hasInput = !lacksInput(usage)
  const hasOutput = !lacksOutput(usage, textBytes)
  const isPlausible = !isCorrected && hasInput && (hasOutput || !reported.final)
  const isPart = !hasOutput || !reported.final
  const used = {
    ...usage,
    ...(!hasInput && { input: estimate.input }),
    ...(isPart && { output: Math.max(usage.output, estimate.output) }),
  }
  const known = charge(basis, used, isPlausible && reported.final ? 'reported' : 'estimated')
  return isPlausible ? known : { ...known, flags: [IMPLAUSIBLE] }
}

/** Whether a call has output that only its usage shows. @param meter of its answer; null before one has begun. */
export const hidesOutput = ({ hiddenOutput }: ChargeBasis, meter: Meter | null): boolean =>
  (hiddenOutput ?? 0) > 0 || meter?.reasoned === true

/**
 * The charge for a call that its caller left before its usage was reported: of hidden output, the most that it can have
 * generated. @param meter of its answer; null when none had begun.
 */
export function abandonedCharge(basis: ChargeBasis, meter: Meter | null): Charge {
  if (!basis.charged) return NO_CHARGE
  const reported = meter?.usage() ?? null
  const known = meteredCharge(basis, reported, meter?.textBytes ?? 0)
  if (reported?.final || !known.usage) return known
  const most = basis.bounds.outputTokens
  const hidden = hidesOutput(basis, meter) ? basis.hiddenOutput || most : 0
  const output = Math.max(known.usage.output, Math.min(known.usage.output + hidden, most))
  return { ...known, ...charge(basis, { ...known.usage, output }, 'estimated') }
}

/** The charge for an estimated usage; no charge for null. */
export const estimatedCharge = (basis: ChargeBasis, usage: Usage | null): Charge =>
  usage ? charge(basis, usage, 'estimated') : NO_CHARGE

/** Usage of attempts without a usable answer that their upstreams may charge, with its cost at the prices of their routes. */
export interface LostCharge {
  usage: Usage
  /** Micro-credits. */
  cost: number
}

/**
 * A charge together with that of attempts without a usable answer. Where the sum exceeds the reservation, the call pays the
 * higher of the two, and for lost attempts at most the reservation.
 * @param known at the prices of its route. @param lost null for nothing.
 */
export function withLost(basis: ChargeBasis, known: Charge, lost: LostCharge | null): Charge {
  if (!lost) return known
  const flags = known.flags && { flags: known.flags }
  const lostAlone = lostCharge(basis, lost)
  const both = known.usage === null ? lostAlone : sumOf(basis, { ...known, usage: known.usage }, lost)
  if (both.cost <= basis.bounds.reserve) return { ...both, ...flags }
  const cost = Math.min(lostAlone.cost, basis.bounds.reserve)
  return known.cost >= cost ? known : { ...lostAlone, cost, ...flags }
}

/** Where all routes cost the same, the sum is rounded once. */
function sumOf(basis: ChargeBasis, known: LostCharge, lost: LostCharge): Charge {
  const usage = addUsage(known.usage, lost.usage)
  if (!basis.pricesOfRoutes) return charge(basis, usage, 'estimated')
  return { usage, provenance: 'estimated', cost: known.cost + lost.cost }
}

/** Lost attempts as the whole charge of a call, with the units that no usage states. */
function lostCharge({ prices, fixedUnits }: ChargeBasis, { usage, cost }: LostCharge): Charge {
  const used = withUnits(usage, fixedUnits)
  // Units cost the same on every route.
  return { usage: used, provenance: 'estimated', cost: cost + costOf(used, prices) - costOf(usage, prices) }
}

function charge({ prices, fixedUnits }: ChargeBasis, usage: Usage, provenance: UsageProvenance): Charge {
  const used = withUnits(usage, fixedUnits)
  return { usage: used, provenance, cost: costOf(used, prices) }
}

const withUnits = (usage: Usage, units: Record<string, number> | undefined): Usage =>
  units ? { ...usage, units: { ...usage.units, ...units } } : usage
