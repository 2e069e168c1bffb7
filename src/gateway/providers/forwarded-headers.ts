/**
 * Headers of callers that providers receive: under the upstream's name, the names that callers may use. The interface has
 * neutral names for brand headers; clients send the brand's own. Both are accepted.
 */
type ForwardedHeaders = Readonly<Record<string, readonly string[]>>

/** Names of the headers in which callers send betas of the messages protocol, the vendor's own first. */
export const BETA_HEADERS: readonly string[] = ['anthropic-beta', 'provider-beta']

export const ANTHROPIC_HEADERS: ForwardedHeaders = {
  'anthropic-version': ['anthropic-version', 'provider-version'],
  'anthropic-beta': BETA_HEADERS,
  'x-claude-code-session-id': ['x-claude-code-session-id', 'x-codeclient-session-id'],
}

export const OPENAI_HEADERS: ForwardedHeaders = { 'openai-beta': ['openai-beta'] }

/** The names of all of them, as callers send them: data-loss prevention inspects their values. */
export const FORWARDED_NAMES: readonly string[] = Object.values({
  ...ANTHROPIC_HEADERS,
  ...OPENAI_HEADERS,
}).flat()
