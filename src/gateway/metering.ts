import type { CallOutcome } from '../governance/audit-record.ts'
import { costOf, NO_USAGE, reservationFor, type Usage, type UsageProvenance } from '../governance/credits.ts'
import type { CatalogModel } from './catalog/catalog.ts'
import type { RequestOutline } from './protocols/request-outline.ts'

/** Bytes of text for one token in an estimate: low, because an estimate must not fall below what was used. */
const BYTES_PER_TOKEN = 3
/**
 * Tokens that one image or sound can come to beyond its bytes (a link is short, what it leads to is not). The dearest is
 * gpt-4o-mini's, 48,169: https://platform.openai.com/docs/guides/images-vision
 */
const IMAGE_TOKENS = 50_000
/**
 * Of a picture or document in an estimate, on top of its bytes, which say nothing of what a link leads to: a picture of
 * 1024 x 1024 (https://platform.openai.com/docs/guides/images-vision), or some two pages.
 */
const LINKED_TOKENS = 1_000
/** Tokens that providers put in front of tools for the model, on top of the tools themselves. */
const TOOL_PREAMBLE_TOKENS = 1_000

/** The most that a call can use, and what has to be free in the balance for it. */
export interface CallBounds {
  inputTokens: number
  /** Over all choices. */
  outputTokens: number
  /** Micro-credits. */
  reserve: number
  /** Of pictures and documents, as they are estimated; absent where there are none. */
  linkedTokens?: number
}

/**
 * Bounds of a call. A token is at least one byte, so the body's length bounds its text; a document, or a tool that runs
 * at the provider, may fill the context window.
 */
export function boundsOf(outline: RequestOutline, model: CatalogModel): CallBounds {
  const preamble = outline.hasTools ? TOOL_PREAMBLE_TOKENS : 0
  const text = outline.body.length + outline.images * IMAGE_TOKENS + preamble
  const inputTokens = outline.documents > 0 ? model.contextWindow : Math.min(text, model.contextWindow)
  const outputTokens = (outline.maximumOutput ?? model.maxOutputTokens) * outline.choices
  const reserve = reservationFor(inputTokens, outputTokens, model.prices)
  const linked = outline.images + outline.documents
  return {
    inputTokens,
    outputTokens,
    reserve: Math.min(reserve, Number.MAX_SAFE_INTEGER),
    ...(linked > 0 && { linkedTokens: linked * LINKED_TOKENS }),
  }
}

/**
 * Usage of a call whose upstream reported none, or not all: over what it did report, from what passed, and never more
 * than the call was bound to.
 */
export function estimateUsage(
  requestBytes: number,
  textBytes: number,
  reported: Usage | null,
  bounds: CallBounds,
): Usage {
  const text = Math.ceil(requestBytes / BYTES_PER_TOKEN)
  const input = Math.min(text + (bounds.linkedTokens ?? 0), bounds.inputTokens)
  const known = reported ?? { ...NO_USAGE, input }
  const output = Math.min(Math.ceil(textBytes / BYTES_PER_TOKEN), bounds.outputTokens)
  return { ...known, output: Math.max(known.output, output) }
}

export type Metered = Pick<CallOutcome, 'usage' | 'provenance' | 'cost'>

export const NOTHING_METERED: Metered = { usage: null, provenance: null, cost: 0 }

export function metered(usage: Usage, provenance: UsageProvenance, model: CatalogModel): Metered {
  return { usage, provenance, cost: costOf(usage, model.prices) }
}
