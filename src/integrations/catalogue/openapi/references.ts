import { unprocessable } from '../../../lib/api-error.ts'

export type Json = Record<string, unknown>

export const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** References that refer to references. */
const LONGEST_CHAIN = 16
/** Characters of a reference, which is followed wherever it is reached. */
const LONGEST_REFERENCE = 1_000

/**
 * What a reference within a document refers to (RFC 6901).
 * @throws ApiError unprocessable for a reference to another document, for one to nothing, and for one that is too long.
 */
export function resolvePointer(document: Json, reference: string): unknown {
  if (!reference.startsWith('#')) {
    throw unprocessable(
      `document: ${quoted(reference)} refers to another document; make it one document first`,
    )
  }
  if (reference.length > LONGEST_REFERENCE) {
    throw unprocessable(`document: ${quoted(reference)} is longer than ${LONGEST_REFERENCE} characters`)
  }
  let value: unknown = document
  for (const part of reference.slice(1).split('/').slice(1)) {
    const name = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~')
    const isMember = typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    if (!isMember) throw unprocessable(`document: ${quoted(reference)} refers to nothing`)
    value = (value as Json)[name]
  }
  return value
}

/** A part of a document that may be a reference, such as a parameter. @throws ApiError as `resolvePointer`. */
export function resolved(document: Json, part: unknown): Json {
  let value = part
  for (let steps = 0; steps < LONGEST_CHAIN; steps++) {
    if (!isRecord(value)) throw unprocessable('document: a part that must be an object is none')
    if (typeof value.$ref !== 'string') return value
    value = resolvePointer(document, value.$ref)
  }
  throw unprocessable('document: references that refer to each other')
}

/** Percent-encoded, as in a fragment. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const quoted = (reference: string) => JSON.stringify(reference.slice(0, 200))
