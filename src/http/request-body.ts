import { ApiError, invalidRequest } from '../lib/api-error.ts'
import { BodyCollector, type HeldBody } from '../lib/body-collector.ts'
import { errorText } from '../lib/log.ts'
import { withinTime } from '../lib/time-limit.ts'
import type { AppContext } from './context.ts'

/** Interface, Limits: 50 MB on every endpoint that reads JSON. */
export const MAXIMUM_BODY_BYTES = 52_428_800

/**
 * What is read of a refused body and thrown away, so that its sender gets to the answer before the connection closes:
 * all of a body that is not far over the limit.
 */
const DRAINED_BYTES = 64 * 1024 * 1024
const DRAIN_MILLISECONDS = 5_000
/** A sender that pauses for longer has gone, or holds memory on purpose. */
const LONGEST_PAUSE_MS = 30_000
/** So does one that sends no faster than this, once it had a minute; 50 MB may take under a quarter of an hour. */
const LEAST_BYTES_PER_SECOND = 64 * 1024
const GRACE_MS = 60_000
/**
 * Chunks are read into one space, over and over: left to itself the runtime makes a new one for every 4 KB, 12,800 for
 * a large body, faster than the collector takes them away.
 */
const READ_BYTES = 64 * 1024

export const tooLarge = () =>
  new ApiError('too_large', `The request body is larger than ${MAXIMUM_BODY_BYTES} bytes.`)

/** A body as it was before it was encoded. */
export interface BodySource {
  stream: ReadableStream<Uint8Array>
  /** Its length in bytes, if it was told. */
  declared: number | null
  /** What is read is longer than what was sent. */
  compressed: boolean
  /** What to tell its sender when it cannot be read. */
  unreadable: string
}

/**
 * The body of a request, to be decompressed while it is read. @returns null for a request without one.
 * @throws ApiError invalid_request for an encoding other than gzip.
 */
export function bodySource(context: AppContext): BodySource | null {
  const { body } = context.req.raw
  const encoding = context.req.header('content-encoding')?.trim().toLowerCase() || 'identity'
  if (!body) return null
  if (encoding === 'identity') {
    const declared = declaredLength(context)
    return { stream: body, declared, compressed: false, unreadable: 'The body could not be read.' }
  }
  if (encoding !== 'gzip') {
    throw invalidRequest(`The content encoding ${encoding.slice(0, 40)} is not supported: send gzip or none.`)
  }
  const decompress = new DecompressionStream('gzip') as unknown as ReadableWritablePair<
    Uint8Array,
    Uint8Array
  >
  const stream = body.pipeThrough(decompress)
  return { stream, declared: null, compressed: true, unreadable: 'The body is not valid gzip.' }
}

/**
 * Reads a JSON body, counted while it is read and after decompression.
 * @throws ApiError too_large over the limit, invalid_request for an encoding other than gzip, rate_limited when this
 * isolate holds too many bytes already.
 */
export async function readBody(context: AppContext): Promise<HeldBody> {
  const source = bodySource(context)
  if (!source) return { bytes: new Uint8Array(), release: () => {} }
  const limit = context.get('deps').configuration.BUFFER_LIMIT_BYTES
  return collect(source, limit, context.get('rights').principal.organizationId)
}

/** What of a small body is gathered by the runtime, which costs less than to read it in parts. */
const GATHERED_BYTES = 64 * 1024

/**
 * Reads a small body at once.
 * @param length as it is declared; HTTP holds the sender to it. @returns null for a body that has to be read in parts.
 * @throws ApiError invalid_request for one that breaks off.
 */
export async function readSmallBody(context: AppContext, length: number): Promise<HeldBody | null> {
  const { raw } = context.req
  if (length > GATHERED_BYTES || !raw.body || context.req.header('content-encoding') !== undefined)
    return null
  try {
    // Without a time limit: a sender that stops holds little more than its own connection.
    return { bytes: new Uint8Array(await raw.arrayBuffer()), release: () => {} }
  } catch (error) {
    throw invalidRequest(`The body did not arrive: ${errorText(error)}.`)
  }
}

/** @returns the declared length in bytes, or null for a chunked body. */
export function declaredLength(context: AppContext): number | null {
  const header = context.req.header('content-length')
  return header === undefined || !/^\d+$/.test(header) ? null : Number(header)
}

async function collect(source: BodySource, limit: number, organizationId: string): Promise<HeldBody> {
  const longest = Math.min(source.declared ?? MAXIMUM_BODY_BYTES, MAXIMUM_BODY_BYTES)
  const collector = new BodyCollector(longest, limit, organizationId)
  const reader = source.stream.getReader({ mode: 'byob' })
  try {
    await eachPart(reader, source, (part) => collector.add(part))
    return collector.finish()
  } catch (error) {
    collector.release()
    if (error instanceof ApiError && error.code === undefined) await drain(reader)
    throw error
  }
}

/**
 * Reads a body to its end, counted. All parts are read into one space: whoever takes one is done with it when `take` is.
 * @throws ApiError too_large (the rest is there to be drained), invalid_request for a body that breaks off or stands
 * still; and what `take` throws.
 */
export async function eachPart(
  reader: ReadableStreamBYOBReader,
  { declared, compressed, unreadable }: BodySource,
  take: (part: Uint8Array) => void | Promise<void>,
): Promise<void> {
  let space = new Uint8Array(Math.min(READ_BYTES, declared || READ_BYTES))
  const begunAt = Date.now()
  for (let length = 0; ; ) {
    const left = begunAt + timeFor(length, compressed) - Date.now()
    const longest = Math.max(0, Math.min(LONGEST_PAUSE_MS, left))
    const { done, value } = await nextPart(reader, space, unreadable, longest)
    if (done) return
    length += value.length
    if (length > MAXIMUM_BODY_BYTES) throw tooLarge()
    await take(value)
    space = new Uint8Array(value.buffer)
  }
}

/** Milliseconds that a sender has for what has come so far. What was compressed took it no time. */
function timeFor(length: number, compressed: boolean): number {
  return GRACE_MS + (compressed ? 0 : Math.floor((length / LEAST_BYTES_PER_SECOND) * 1000))
}

async function nextPart(
  reader: ReadableStreamBYOBReader,
  space: Uint8Array<ArrayBuffer>,
  unreadable: string,
  longest: number,
) {
  const reading = reader.read(space).catch(() => {
    throw invalidRequest(unreadable)
  })
  try {
    return await withinTime(reading, longest, 'the next part of the body')
  } catch (error) {
    if (error instanceof ApiError) throw error
    reader.cancel().catch(() => {})
    throw invalidRequest(`The body did not arrive: ${errorText(error)}.`)
  }
}

/** Reads on for a while without keeping anything. */
export async function drain(reader: ReadableStreamBYOBReader): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeUp = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, DRAIN_MILLISECONDS)
  })
  const readOn = async () => {
    let space = new Uint8Array(READ_BYTES)
    for (let read = 0; read < DRAINED_BYTES; ) {
      const { done, value } = await reader.read(space)
      if (done) return
      read += value.length
      space = new Uint8Array(value.buffer)
    }
  }
  await Promise.race([readOn().catch(() => {}), timeUp])
  clearTimeout(timer)
  reader.cancel().catch(() => {})
}
