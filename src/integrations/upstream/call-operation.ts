import { withoutTrailing } from '../../lib/without-trailing.ts'
import type { OperationBinding, ParameterBinding, UpstreamCredential, UpstreamToolResult } from '../types.ts'
import { readResult } from './operation-result.ts'
import { upstreamFetch } from './upstream-fetch.ts'

interface OperationCall {
  /** The server of the API, to which the path is appended. */
  url: string
  binding: OperationBinding
  arguments: Record<string, unknown>
  allow: readonly string[]
  credential: UpstreamCredential
  /** Bytes of the answer. */
  mostBytes: number
  signal: AbortSignal
}

/** Arguments that make no request. The message is for the model. */
class ArgumentError extends Error {}

/**
 * Calls an operation of an API, once. An answer with an error status, and arguments that make no request, are results with
 * `isError`.
 * @throws CredentialsUnavailable, UpstreamError, and the reason of the signal.
 */
export async function callOperation(call: OperationCall): Promise<UpstreamToolResult> {
  const { url, binding, allow, credential, mostBytes, signal } = call
  let request: { address: string; headers: Headers; body: string | null }
  try {
    request = requestOf(url, binding, call.arguments)
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error
    return { content: [{ type: 'text', text: error.message }], isError: true }
  }
  const send = upstreamFetch({ allow, credential, mostBytes })
  const { address, headers, body } = request
  const response = await send(address, { method: binding.method, headers, body, signal })
  return readResult(response)
}

function requestOf(url: string, binding: OperationBinding, given: Record<string, unknown>) {
  const headers = new Headers({ accept: 'application/json, text/plain;q=0.9, */*;q=0.5' })
  const query: string[] = []
  const cookies: string[] = []
  checkNames(binding, given)
  const path = pathOf(binding, given)
  for (const [argument, parameter] of Object.entries(binding.parameters)) {
    const value = given[argument]
    if (value === undefined || value === null) continue
    if (parameter.place === 'query') query.push(queryParts(parameter, value).join('&'))
    if (parameter.place === 'header') setHeader(headers, parameter, argument, value)
    if (parameter.place === 'cookie') cookies.push(`${parameter.name}=${encoded(simpleText(value))}`)
  }
  if (cookies.length > 0) headers.set('cookie', cookies.join('; '))
  const body = bodyOf(binding, given, headers)
  return { address: addressOf(url, path, query), headers, body }
}

function checkNames({ parameters, body }: OperationBinding, given: Record<string, unknown>): void {
  const unknown = Object.keys(given).find(
    (name) => !Object.hasOwn(parameters, name) && name !== body?.argument,
  )
  if (unknown !== undefined) {
    const known = [...Object.keys(parameters), ...(body ? [body.argument] : [])].join(', ') || 'none'
    throw new ArgumentError(
      `There is no argument ${JSON.stringify(unknown.slice(0, 100))}; known are: ${known}.`,
    )
  }
}

/** Characters of a value in a path, which may have it several times. */
const LONGEST_PATH_VALUE = 2_000

/** A value takes the place of one segment, or of a part of one: it cannot lead to another path. */
function pathOf({ path, parameters }: OperationBinding, given: Record<string, unknown>): string {
  const values = new Map<string, string>()
  for (const [argument, { place, name }] of Object.entries(parameters)) {
    if (place === 'path') values.set(name, pathValue(argument, given[argument]))
  }
  return path.replace(/\{([^{}]+)\}/g, (whole, name: string) => values.get(name) ?? whole)
}

function pathValue(argument: string, value: unknown): string {
  if (value === undefined || value === null || value === '')
    throw new ArgumentError(`The argument ${argument} is missing.`)
  const text = encoded(simpleText(value))
  if (text.length > LONGEST_PATH_VALUE)
    throw new ArgumentError(`The argument ${argument} is longer than ${LONGEST_PATH_VALUE} characters.`)
  return text
}

/** Elements of lists and objects with commas (OpenAPI, style simple). */
function simpleText(value: unknown): string {
  if (Array.isArray(value)) return value.map(scalarText).join(',')
  if (typeof value !== 'object' || value === null) return scalarText(value)
  return Object.entries(value)
    .map(([name, member]) => `${name},${scalarText(member)}`)
    .join(',')
}

const scalarText = (value: unknown): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)

const SEPARATORS = { spaceDelimited: '%20', pipeDelimited: '|' } as Record<string, string>

function queryParts({ name, style, explode }: ParameterBinding, value: unknown): string[] {
  const pair = (key: string, text: string) => `${encoded(key)}=${encoded(text)}`
  if (style === 'json') return [pair(name, JSON.stringify(value))]
  if (Array.isArray(value)) {
    if (explode) return value.map((each) => pair(name, scalarText(each)))
    const separator = SEPARATORS[style] ?? ','
    return [`${encoded(name)}=${value.map((each) => encoded(scalarText(each))).join(separator)}`]
  }
  if (typeof value !== 'object' || value === null) return [pair(name, scalarText(value))]
  const members = Object.entries(value)
  if (style === 'deepObject') return members.map(([key, each]) => pair(`${name}[${key}]`, scalarText(each)))
  if (explode) return members.map(([key, each]) => pair(key, scalarText(each)))
  return [pair(name, simpleText(value))]
}

function setHeader(
  headers: Headers,
  { name, style }: ParameterBinding,
  argument: string,
  value: unknown,
): void {
  const text = style === 'json' ? JSON.stringify(value) : simpleText(value)
  if (!/^[\x20-\x7e\t]*$/.test(text))
    throw new ArgumentError(`The argument ${argument} has characters that a header cannot have.`)
  headers.set(name, text)
}

function bodyOf({ body }: OperationBinding, given: Record<string, unknown>, headers: Headers): string | null {
  const value = body && given[body.argument]
  if (body === undefined || value === undefined) return null
  headers.set('content-type', body.mediaType)
  if (/\bjson\b/.test(body.mediaType)) return JSON.stringify(value)
  if (!body.mediaType.startsWith('application/x-www-form-urlencoded')) return scalarText(value)
  if (typeof value !== 'object' || value === null)
    throw new ArgumentError(`The argument ${body.argument} must be an object.`)
  const parts = Object.entries(value).flatMap(([name, member]) =>
    queryParts({ place: 'query', name, style: 'form', explode: true }, member),
  )
  return parts.join('&')
}

/** @throws ArgumentError where the arguments lead out of the server of the API. */
function addressOf(url: string, path: string, query: readonly string[]): string {
  const base = new URL(url)
  const prefix = withoutTrailing(base.pathname, '/')
  // Segments of dots would be resolved, also when they are encoded.
  if (path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))) {
    throw new ArgumentError('The arguments lead to another path.')
  }
  const own = base.search.slice(1)
  base.pathname = `${prefix}${path.startsWith('/') ? '' : '/'}${path}`
  base.search = [own, ...query].filter((part) => part !== '').join('&')
  return base.href
}

/** `encodeURIComponent` that also accepts a lone surrogate. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed())
