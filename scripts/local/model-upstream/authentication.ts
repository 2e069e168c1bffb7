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
  'cookie',
])

/**
 * Headers as they may be recorded: of the ones that carry credentials only the SHA-256 (hex) of the value is kept,
 * after the scheme where there is one (`Bearer <hex>`), so that a test can compare without the log holding a key.
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
