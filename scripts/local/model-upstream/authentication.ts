import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { toText } from './json-value.ts'
import type { Dialect, Reply } from './reply.ts'
import { anthropicError, openAiError } from './vendor-errors.ts'

/** The credential a request presents in this dialect's headers, and where it stood. */
export function presentedCredential(
  headers: IncomingHttpHeaders,
  dialect: Dialect,
): { value: string; header: 'authorization' | 'x-api-key' } | undefined {
  const key = toText(headers['x-api-key'])
  // Anthropic itself prefers x-api-key when both are present.
  if (dialect === 'messages' && key !== '') return { value: key, header: 'x-api-key' }
  const bearer = /^Bearer\s+(.+)$/i.exec(toText(headers.authorization))?.[1]
  return bearer === undefined ? undefined : { value: bearer, header: 'authorization' }
}

/**
 * The vendor's 401 when `apiKey` is set and the request does not present it, else undefined.
 * OpenAI's quotes the start of the wrong key, which a gateway must not pass on.
 */
export function rejectCredential(
  headers: IncomingHttpHeaders,
  dialect: Dialect,
  apiKey: string | undefined,
): Reply | undefined {
  if (apiKey === undefined) return undefined
  const presented = presentedCredential(headers, dialect)
  if (presented?.value === apiKey) return undefined
  if (dialect === 'messages') {
    if (presented === undefined)
      return anthropicError(401, 'authentication_error', 'x-api-key header is required')
    const message = presented.header === 'x-api-key' ? 'invalid x-api-key' : 'Invalid bearer token'
    return anthropicError(401, 'authentication_error', message)
  }
  if (presented === undefined) {
    const message = "You didn't provide an API key. Provide it in an Authorization header using Bearer auth."
    return openAiError(401, { message })
  }
  return openAiError(401, {
    message: `Incorrect API key provided: ${presented.value.slice(0, 6)}***. You can find your API key at https://platform.openai.com/account/api-keys.`,
    code: 'invalid_api_key',
  })
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
