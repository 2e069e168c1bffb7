import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { toText } from './json-value.ts'
import type { Dialect } from './reply.ts'

/** The credential that a request presents in this dialect's headers; empty when there is none. Any is accepted. */
export function presentedCredential(headers: IncomingHttpHeaders, dialect: Dialect): string {
  const key = toText(headers['x-api-key'])
  // Anthropic itself prefers x-api-key when both are present.
  if (dialect === 'messages' && key !== '') return key
  return /^Bearer\s+(.+)$/i.exec(toText(headers.authorization))?.[1] ?? ''
}

const credentialHeaders = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'x-amz-security-token',
  'cookie',
])

/**
 * Headers for the request log. A credential is replaced by its SHA-256 (hex), after the scheme if there is one (`Bearer
 * <hex>`): a test can compare it, and the log contains no key.
 */
export function concealCredentials(headers: IncomingHttpHeaders): Record<string, string> {
  const result: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const text = Array.isArray(value) ? value.join(', ') : (value ?? '')
    result[name] = credentialHeaders.has(name) ? concealValue(text) : text
  }
  return result
}

function concealValue(text: string): string {
  const [, scheme = '', credential = text] = /^(Bearer |Basic )?(.*)$/is.exec(text) ?? []
  return scheme + createHash('sha256').update(credential).digest('hex')
}
