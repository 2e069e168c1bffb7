import type { IncomingMessage } from 'node:http'
import type { StoredObject } from './object-files.ts'

/** An operation of the R2 binding, as the runtime sends it: JSON in a header of a GET or before the body of a PUT. */
export interface StoreOperation {
  method: string
  object?: string
  objects?: string[]
  httpFields?: Record<string, unknown>
  customFields?: Array<{ k: string; v: string }>
  range?: { offset?: number | string; length?: number | string; suffix?: number | string }
  prefix?: string
  cursor?: string
  startAfter?: string
  limit?: number
  /** 0 requests `httpFields`, 1 `customFields`. */
  include?: number[]
}

/** A failure in R2's own terms. Codes: https://developers.cloudflare.com/r2/api/error-codes/ */
export class ContentError extends Error {
  readonly status: number
  readonly code: number

  constructor(status: number, code: number, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** The runtime makes null of this one. */
export const noSuchKey = () => new ContentError(404, 10_007, 'The specified key does not exist.')
export const invalidArgument = (message: string) => new ContentError(400, 10_029, message)
const invalidRange = () => new ContentError(416, 10_039, 'The requested range is not satisfiable.')

/** Operations and options of R2 that this store lacks: refused, since ignoring a condition would lose data. */
const UNSUPPORTED = [
  'onlyIf',
  'rangeHeader',
  'delimiter',
  'md5',
  'sha1',
  'sha256',
  'sha384',
  'sha512',
  'ssec',
]

/** Bytes of an operation: the keys of the largest delete fit. */
const METADATA_LIMIT = 4 * 1024 * 1024

const KEY_LIMIT = 1_024

/** @throws ContentError for what is no operation, or one with an option that this store lacks */
export function parseOperation(json: string): StoreOperation {
  let operation: Record<string, unknown>
  try {
    operation = JSON.parse(json)
  } catch {
    throw invalidArgument('The operation is no JSON.')
  }
  const lacking = UNSUPPORTED.find((name) => isSet(operation[name]))
  if (lacking !== undefined) throw invalidArgument(`The local content store has no ${lacking}.`)
  const { object, objects } = operation as unknown as StoreOperation
  const keys = [...(object === undefined ? [] : [object]), ...(objects ?? [])]
  if (keys.some((key) => key === '' || Buffer.byteLength(key) > KEY_LIMIT)) {
    throw new ContentError(400, 10_020, 'The specified object name is not valid.')
  }
  return operation as unknown as StoreOperation
}

const isSet = (value: unknown): boolean =>
  value !== undefined &&
  value !== null &&
  value !== '' &&
  (typeof value !== 'object' || Object.keys(value).length > 0)

/** The operation of a GET. Node reads headers as Latin-1; the runtime writes UTF-8. */
export function operationOfHeader(request: IncomingMessage): StoreOperation {
  const header = request.headers['cf-r2-request']
  if (typeof header !== 'string') throw invalidArgument('The operation is missing.')
  return parseOperation(Buffer.from(header, 'latin1').toString())
}

/** The operation of a PUT and the content that follows it. @param content of `contentSize` bytes */
export async function operationOfBody(
  request: IncomingMessage,
): Promise<{ operation: StoreOperation; content: AsyncIterable<Buffer>; contentSize: number }> {
  const size = Number(request.headers['cf-r2-metadata-size'])
  if (!(size > 0 && size <= METADATA_LIMIT)) throw invalidArgument('The size of the operation is missing.')
  const pieces = request[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  let held: Buffer = Buffer.alloc(0)
  while (held.length < size) {
    const { done, value } = await pieces.next()
    if (done) throw invalidArgument('The operation is cut off.')
    held = Buffer.concat([held, value])
  }
  const rest = held.subarray(size)
  async function* content() {
    if (rest.length > 0) yield rest
    for (let next = await pieces.next(); !next.done; next = await pieces.next()) yield next.value
  }
  return {
    operation: parseOperation(held.subarray(0, size).toString()),
    content: content(),
    contentSize: Number(request.headers['content-length']) - size,
  }
}

/** An object as the runtime reads it. @param range what part of it follows. @param include as in `StoreOperation` */
export function describeObject(
  object: StoredObject,
  range?: { offset: number; length: number },
  include = [0, 1],
): Record<string, unknown> {
  const { key, version, size, etag, uploaded, httpFields, customFields } = object
  return {
    name: key,
    version,
    size,
    etag,
    uploaded,
    httpFields: include.includes(0) ? httpFields : {},
    customFields: include.includes(1) ? customFields : [],
    ...(range && { range }),
    checksums: { 0: etag },
  }
}

/**
 * The requested part of an object; all of it without a range.
 * @throws ContentError 10039 for one that begins behind the end, or has nothing in it
 */
export function resolveRange(
  asked: StoreOperation['range'],
  size: number,
): { offset: number; length: number } {
  if (!isSet(asked) || asked === undefined) return { offset: 0, length: size }
  const suffix = asked.suffix === undefined ? undefined : Math.min(Number(asked.suffix), size)
  const offset = suffix === undefined ? Number(asked.offset ?? 0) : size - suffix
  const length = Math.min(suffix ?? Number(asked.length ?? size), size - offset)
  if (!(offset >= 0 && offset <= size && length > 0)) throw invalidRange()
  return { offset, length }
}
