import type { AnswerOf } from '../../../client/management-client.ts'

export type ShownCall = AnswerOf<'calls.show'>

/** A request to a provider. */
interface Attempt {
  provider: string
  upstreamModel: string
  status: number | null
  failure: string | null
  durationMilliseconds: number
}

/** Bytes of one direction: inspected + uninspected = released + withheld. */
export interface Bytes {
  inspected: number
  uninspected: number
  released: number
  withheld: number
}

/** The members of a record that the page shows. Any may be missing: of older records, and of one that was tampered with. */
interface RecordContent {
  attempts?: Attempt[]
  usage?: Record<string, number | Record<string, number>> | null
  provenance?: 'reported' | 'estimated' | 'unknown' | null
  reserved?: number
  request?: Bytes | null
  response?: Bytes | null
  actor?: { ip?: string | null }
  timing?: { admitted: number; firstEvent: number | null; lastEvent: number | null; events: number | null }
  dlp?: {
    breakdown?: Array<{ direction: string; action: string; policy: string; findings: Record<string, number> }>
  } | null
}

/** The content of a record; empty where it cannot be read. */
export function contentOf({ record }: ShownCall): RecordContent {
  const content = record.record
  return typeof content === 'object' && content !== null ? (content as RecordContent) : {}
}
