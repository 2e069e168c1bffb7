import { nextIdentifier } from './identifiers.ts'

/** An answer that is ready to be written: one body, or event-stream frames (one write each). */
export type Reply =
  | { status: number; headers: Record<string, string>; body: string }
  | { status: 200; headers: Record<string, string>; frames: string[] }

/** The three protocols of generation that this server serves. */
export type Dialect = 'chat' | 'completions' | 'messages'

const openaiLimits = {
  'x-ratelimit-limit-requests': '10000',
  'x-ratelimit-limit-tokens': '2000000',
  'x-ratelimit-remaining-requests': '9999',
  'x-ratelimit-remaining-tokens': '1999000',
  'x-ratelimit-reset-requests': '6ms',
  'x-ratelimit-reset-tokens': '30ms',
}

const anthropicLimits = {
  'anthropic-ratelimit-requests-limit': '4000',
  'anthropic-ratelimit-requests-remaining': '3999',
  'anthropic-ratelimit-requests-reset': '2030-01-01T00:00:00Z',
  'anthropic-ratelimit-tokens-limit': '2000000',
  'anthropic-ratelimit-tokens-remaining': '1999000',
  'anthropic-ratelimit-tokens-reset': '2030-01-01T00:00:00Z',
}

/** The headers each vendor sends with every answer, a fresh request id included. */
export function vendorHeaders(dialect: Dialect): Record<string, string> {
  if (dialect === 'messages') {
    return {
      'request-id': nextIdentifier('req_'),
      'anthropic-organization-id': '00000000-0000-4000-8000-000000000001',
      ...anthropicLimits,
    }
  }
  return {
    'x-request-id': nextIdentifier('req_'),
    'openai-organization': 'local',
    'openai-processing-ms': '3',
    'openai-version': '2020-10-01',
    ...openaiLimits,
  }
}

/** A whole JSON answer with the vendor's headers. */
export function jsonReply(dialect: Dialect, status: number, body: string): Reply {
  return { status, headers: { ...vendorHeaders(dialect), 'content-type': 'application/json' }, body }
}

/** The headers of a streamed answer of this vendor. */
export function vendorStreamHeaders(dialect: Dialect): Record<string, string> {
  return {
    ...vendorHeaders(dialect),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
  }
}

/** A streamed answer with the vendor's headers. */
export function streamReply(dialect: Dialect, frames: string[]): Reply {
  return { status: 200, headers: vendorStreamHeaders(dialect), frames }
}
