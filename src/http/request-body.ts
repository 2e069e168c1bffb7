import { ApiError, invalidRequest } from '../lib/api-error.ts'
import { OwnedBytes } from '../lib/bytes/owned-bytes.ts'
import { BrokenStreamError, PartReader, TooLongError } from '../lib/bytes/read-bytes.ts'
import { errorText } from '../lib/log.ts'
import { TimeLimitError } from '../lib/time-limit.ts'
import { MAXIMUM_BODY_BYTES } from '../wire/body-limit.ts'
import type { AppContext } from './context.ts'

/**
 * Number of bytes of a refused body that are read and dropped, so that its sender gets to the answer before the connection
 * closes. A body that is not far over the limit is drained whole.
 */
const DRAINED_BYTES = 64 * 1024 * 1024
const DRAIN_MILLISECONDS = 5_000
/** A sender that pauses for longer has lost its connection, or occupies memory on purpose. */
export const LONGEST_PAUSE_MS = 30_000

/** @param most bytes; another bound than that of JSON endpoints only where a body is read before its sender is known. */
export const tooLarge = (most = MAXIMUM_BODY_BYTES) =>
  new ApiError('too_large', `The request body is larger than ${most} bytes.`)

/** A body after decompression. */
export interface BodySource {
  stream: ReadableStream<Uint8Array>
  /** The body's declared length in bytes; null if unknown. */
  declared: number | null
  compressed: boolean
  /** Message for the sender when it cannot be read. */
  unreadable: string
  pace: BodyPace
}

/** The slowest sender that is waited for. */
interface BodyPace {
  /** Time that any body may take. */
  BODY_GRACE_MS: number
  /** Speed beyond that: by the defaults, 50 MB may take a quarter of an hour. */
  BODY_LEAST_BYTES_PER_SECOND: number
}

/**
 * The body of a request, to be decompressed while it is read. @returns null for a request without one.
 * @throws ApiError invalid_request for an encoding other than gzip.
 */
export function bodySource(context: AppContext): BodySource | null {
  const { body } = context.req.raw
  const encoding = context.req.header('content-encoding')?.trim().toLowerCase() || 'identity'
  if (!body) return null
  const pace = context.get('deps').configuration
  if (encoding === 'identity') {
    const declared = declaredLength(context)
    return { stream: body, declared, compressed: false, unreadable: 'The body could not be read.', pace }
  }
  if (encoding !== 'gzip') {
    throw invalidRequest(`The content encoding ${encoding.slice(0, 40)} is not supported: send gzip or none.`)
  }
  const decompress = new DecompressionStream('gzip') as unknown as ReadableWritablePair<
    Uint8Array,
    Uint8Array
  >
  const stream = body.pipeThrough(decompress)
  return { stream, declared: null, compressed: true, unreadable: 'The body is not valid gzip.', pace }
}

/**
 * Reads a JSON body. Its bytes are counted while it is read, after decompression.
 * @throws ApiError too_large over the limit, invalid_request for an encoding other than gzip, rate_limited when this
 * isolate holds too many bytes already.
 */
export async function readBody(context: AppContext): Promise<OwnedBytes> {
  const source = bodySource(context)
  if (!source) return new OwnedBytes(0)
  const limit = context.get('deps').configuration.BUFFER_LIMIT_BYTES
  return collect(source, limit, context.get('rights').principal.organizationId)
}

/** Up to this size the runtime collects a body, which costs less than reading it in parts. */
const GATHERED_BYTES = 64 * 1024

/**
 * Reads a small body at once.
 * @param length as declared; HTTP enforces it. @returns null for a body that has to be read in parts.
 * @throws ApiError invalid_request for one that ends early.
 */
export async function readSmallBody(context: AppContext, length: number): Promise<OwnedBytes | null> {
  const { raw } = context.req
  if (length > GATHERED_BYTES || !raw.body || context.req.header('content-encoding') !== undefined)
    return null
  try {
    // No time limit: a sender that stops holds little more than its own connection.
    return OwnedBytes.of(new Uint8Array(await raw.arrayBuffer()))
  } catch (error) {
    throw invalidRequest(`The body did not arrive: ${errorText(error)}.`)
  }
}

/** @returns the declared length in bytes, or null for a chunked body. */
export function declaredLength(context: AppContext): number | null {
  const header = context.req.header('content-length')
  return header === undefined || !/^\d+$/.test(header) ? null : Number(header)
}

async function collect(source: BodySource, limitBytes: number, holder: string): Promise<OwnedBytes> {
  const longest = Math.min(source.declared ?? MAXIMUM_BODY_BYTES, MAXIMUM_BODY_BYTES)
  const body = new OwnedBytes(longest, { limitBytes, holder, isArriving: true })
  const reader = new PartReader(source.stream, source.declared)
  try {
    await eachPart(reader, source, (part) => body.append(part))
    body.arrived()
    return body
  } catch (error) {
    body.release()
    if (error instanceof ApiError && error.code === undefined) await drain(reader)
    throw error
  }
}

/**
 * Reads a body to its end, counted.
 * @throws ApiError too_large (the rest can be drained), invalid_request for a body that ends early, or that is slower than
 * its pace (interface, Errors: no status of a time-out); and what `take` throws.
 */
export async function eachPart(
  reader: PartReader,
  { compressed, unreadable, pace }: BodySource,
  take: (part: Uint8Array) => void | Promise<void>,
): Promise<void> {
  const begunAt = Date.now()
  const patience = (length: number): number => {
    const left = begunAt + timeFor(length, compressed, pace) - Date.now()
    return Math.max(0, Math.min(LONGEST_PAUSE_MS, left))
  }
  try {
    await reader.each(take, { longest: MAXIMUM_BODY_BYTES, patience })
  } catch (error) {
    if (error instanceof TooLongError) throw tooLarge()
    if (error instanceof BrokenStreamError) throw invalidRequest(unreadable)
    if (!(error instanceof TimeLimitError)) throw error
    reader.cancel()
    throw invalidRequest(`The body arrives too slowly: ${error.message}.`)
  }
}

/** Milliseconds that a sender may take for this many bytes. Compressed bodies get no more: they were shorter when sent. */
function timeFor(length: number, compressed: boolean, pace: BodyPace): number {
  const sending = compressed ? 0 : Math.floor((length / pace.BODY_LEAST_BYTES_PER_SECOND) * 1000)
  return pace.BODY_GRACE_MS + sending
}

/** Reads the rest of a body for a while, and drops it. */
export const drain = (reader: PartReader): Promise<void> => reader.drain(DRAINED_BYTES, DRAIN_MILLISECONDS)
