import type { AppContext } from './context.ts'

/**
 * The caller's own limits in the dialect of the surface; none for a call that the ledger did not count. The reset is the
 * time at which `Retry-After` of a refused call ends.
 *
 * https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers
 * https://docs.anthropic.com/en/api/rate-limits#response-headers
 */
export function rateLimitHeaders(context: AppContext): Record<string, string> {
  const rateLimit = context.get('rateLimit')
  if (!rateLimit) return {}
  const { resetsAt } = rateLimit
  const [limit, remaining] = [String(rateLimit.limit), String(rateLimit.remaining)]
  if (context.get('surface') === 'messages') {
    return {
      'anthropic-ratelimit-requests-limit': limit,
      'anthropic-ratelimit-requests-remaining': remaining,
      'anthropic-ratelimit-requests-reset': new Date(resetsAt).toISOString(),
    }
  }
  const seconds = Math.max(0, Math.ceil((resetsAt - context.get('deps').clock()) / 1_000))
  return {
    'x-ratelimit-limit-requests': limit,
    'x-ratelimit-remaining-requests': remaining,
    'x-ratelimit-reset-requests': `${seconds}s`,
  }
}

/** Sets the headers on answers that are created through Hono's context. */
export function setRateLimitHeaders(context: AppContext): void {
  for (const [name, value] of Object.entries(rateLimitHeaders(context))) context.header(name, value)
}
