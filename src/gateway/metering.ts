import type { CallOutcome } from '../governance/audit-record.ts'
import { costOf, NO_USAGE, reservationFor, type Usage, type UsageProvenance } from '../governance/credits.ts'
import type { CatalogModel } from './catalog/catalog.ts'
import type { RequestOutline } from './protocols/request-outline.ts'

/** Bytes of text for one token in an estimate: low, because an estimate must not fall below what was used. */
const BYTES_PER_TOKEN = 3
/** Tokens that one image or sound can come to beyond its bytes (a link is short, what it leads to is not). */
const IMAGE_TOKENS = 5_000

/**
 * The most this call can cost, in micro-credits. A token is at least one byte, so the body's length bounds its text;
 * a document may fill the context window.
 */
export function reservationOf(outline: RequestOutline, model: CatalogModel): number {
  const text = outline.body.length + outline.images * IMAGE_TOKENS
  const input = outline.documents > 0 ? model.contextWindow : Math.min(text, model.contextWindow)
  const output = Math.min(outline.maximumOutput ?? model.maxOutputTokens, model.maxOutputTokens)
  return reservationFor(input, output * outline.choices, model.prices)
}

/** Usage of a call whose upstream reported none, or not all: over what it did report, from what passed. */
export function estimateUsage(requestBytes: number, textBytes: number, reported: Usage | null): Usage {
  const known = reported ?? { ...NO_USAGE, input: Math.ceil(requestBytes / BYTES_PER_TOKEN) }
  return { ...known, output: Math.max(known.output, Math.ceil(textBytes / BYTES_PER_TOKEN)) }
}

export type Metered = Pick<CallOutcome, 'usage' | 'provenance' | 'cost'>

export const NOTHING_METERED: Metered = { usage: null, provenance: null, cost: 0 }

export function metered(usage: Usage, provenance: UsageProvenance, model: CatalogModel): Metered {
  return { usage, provenance, cost: costOf(usage, model.prices) }
}
