import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { awsSigner, signedHeaders } from '../../../src/lib/aws-signature.ts'
import { withinTime } from '../../../src/lib/time-limit.ts'
import {
  type ContentObjects,
  LengthError,
  type ObjectFields,
  type OpenedObject,
  type StoredObject,
} from './object-files.ts'
import { ContentError, noSuchKey } from './wire.ts'

/** A bucket with the interface of S3, and the keys for it. */
export interface S3Bucket {
  bucket: string
  /** Before each key; empty, or ends with a slash. */
  prefix: string
  /** Origin of a server other than AWS, which has the bucket in its path; null for AWS. */
  endpoint: string | null
  region: string
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | null
}

/** Until the head of an answer. */
const REQUEST_LIMIT_MS = 60_000
/** Between two pieces of its body, however long that is. */
const IDLE_LIMIT_MS = 60_000
/** Deletions at a time. */
const PARALLEL_DELETES = 16
/** Metadata of the writer. S3 takes two kilobytes of it. */
const FIELDS_HEADER = 'x-amz-meta-headgate'

/** Characters that are sent as they are, so that a path needs no encoding, on which servers and signatures differ. */
const PLAIN_KEY = /^[\w.~/-]+$/

/** Segments that a URL resolves, so that it would name another object or another bucket. */
export const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:\/|$)/

/** R2's own code for a failure of the store. */
const failure = () => new ContentError(500, 10_001, 'The content store failed.')

/**
 * Objects in a bucket with the interface of S3. Content is held in memory while it is stored, because its digest is signed and comes
 * before it.
 */
export class S3Objects implements ContentObjects {
  readonly #bucket: S3Bucket
  readonly #base: string
  readonly #sign: ReturnType<typeof awsSigner>
  readonly #report: (message: string) => void

  /** @param report gets a line for each failure, without a key or a secret */
  constructor(bucket: S3Bucket, report: (message: string) => void) {
    this.#bucket = bucket
    this.#base = bucket.endpoint
      ? `${bucket.endpoint}/${bucket.bucket}`
      : `https://${bucket.bucket}.s3.${bucket.region}.amazonaws.com`
    this.#sign = awsSigner(bucket, bucket.region, 's3')
    this.#report = report
  }

  async head(key: string): Promise<StoredObject | undefined> {
    const response = await this.#send('HEAD', key, {}, [404])
    return response.status === 404 ? undefined : objectOf(key, response.headers)
  }

  async put(fields: ObjectFields, content: AsyncIterable<Buffer>, size: number): Promise<StoredObject> {
    const pieces: Buffer[] = []
    for await (const piece of content) pieces.push(piece)
    const body = Buffer.concat(pieces)
    if (body.length !== size) throw new LengthError(`the content has ${body.length} bytes and not ${size}`)
    const { httpFields, customFields } = fields
    const described = Object.keys(httpFields).length > 0 || customFields.length > 0
    const text = Buffer.from(JSON.stringify({ httpFields, customFields })).toString('base64url')
    await this.#send('PUT', fields.key, { body, headers: described ? { [FIELDS_HEADER]: text } : {} }, [])
    const etag = createHash('md5').update(body).digest('hex')
    return { ...fields, size, etag, version: etag, uploaded: Date.now() }
  }

  async open(key: string): Promise<OpenedObject | null> {
    const object = await this.head(key)
    if (object === undefined) return null
    const read = async (offset: number, length: number): Promise<Readable> => {
      const range = `bytes=${offset}-${offset + length - 1}`
      const response = await this.#send('GET', key, { headers: { range } }, [404])
      if (response.status === 404) await response.body?.cancel()
      if (response.status === 404) throw noSuchKey()
      return Readable.from(piecesOf(response))
    }
    return { object, read, close: async () => {} }
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (let at = 0; at < keys.length; at += PARALLEL_DELETES) {
      const batch = keys.slice(at, at + PARALLEL_DELETES)
      const responses = batch.map((key) => this.#send('DELETE', key, {}, [404]))
      for (const response of await Promise.all(responses)) await response.body?.cancel()
    }
  }

  async list(prefix: string, after: string | undefined, limit: number) {
    const own = this.#bucket.prefix
    const query = new URLSearchParams({ 'list-type': '2', 'max-keys': String(limit), prefix: own + prefix })
    if (after !== undefined) query.set('start-after', own + after)
    const response = await this.#send('GET', '', { query }, [])
    const text = Buffer.concat(await Readable.from(piecesOf(response)).toArray()).toString()
    const objects = [...text.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, entry = '']) =>
      listedObject(entry, own.length),
    )
    return { objects, more: /<IsTruncated>true<\/IsTruncated>/.test(text) }
  }

  /**
   * Sends a signed request, and once more when the server could not take it.
   * @param key empty for the bucket itself. @param expected statuses besides 2xx that the method handles
   * @throws ContentError
   */
  async #send(
    method: string,
    key: string,
    parts: { body?: Buffer; headers?: Record<string, string>; query?: URLSearchParams },
    expected: readonly number[],
  ): Promise<Response> {
    const path = key === '' ? '' : this.#bucket.prefix + key
    if (key !== '' && (!PLAIN_KEY.test(path) || DOT_SEGMENT.test(path)))
      throw new ContentError(400, 10_020, 'The specified object name is not valid.')
    const url = `${this.#base}/${path}${parts.query ? `?${parts.query}` : ''}`
    for (let attempt = 1; ; attempt += 1) {
      const response = await this.#attempt(method, url, parts).catch((error: Error) => error)
      const isAnswer = response instanceof Response
      if (isAnswer && (response.ok || expected.includes(response.status))) return response
      if (isAnswer) await response.body?.cancel()
      const reason = isAnswer ? `status ${response.status}` : (response.cause as Error | undefined)?.message
      this.#report(`${method} of the content store failed: ${reason ?? 'no connection'}`)
      const isFinal = isAnswer && response.status < 500
      if (isFinal || attempt === 2) throw failure()
    }
  }

  async #attempt(
    method: string,
    url: string,
    { body, headers: own = {} }: { body?: Buffer; headers?: Record<string, string> },
  ): Promise<Response> {
    const bodyHash = createHash('sha256')
      .update(body ?? '')
      .digest('hex')
    const request = { method, url, bodyHash, now: Date.now(), headers: own }
    const headers = signedHeaders(this.#sign, this.#bucket, request)
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), REQUEST_LIMIT_MS)
    try {
      return await fetch(url, {
        method,
        headers,
        ...(body && { body: new Uint8Array(body) }),
        redirect: 'manual',
        signal: limit.signal,
      })
    } finally {
      clearTimeout(timer)
    }
  }
}

/** The body of an answer. @throws TimeLimitError if it stops arriving. */
async function* piecesOf({ body }: Response): AsyncGenerator<Buffer> {
  if (body === null) throw failure()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await withinTime(reader.read(), IDLE_LIMIT_MS, 'content')
      if (done) return
      yield Buffer.from(value)
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function objectOf(key: string, headers: Headers): StoredObject {
  const text = headers.get(FIELDS_HEADER)
  const fields = text ? JSON.parse(Buffer.from(text, 'base64url').toString()) : {}
  const { httpFields = {}, customFields = [] } = fields as Partial<ObjectFields>
  const etag = digestOf(headers.get('etag'))
  const uploaded = Date.parse(headers.get('last-modified') ?? '') || 0
  const size = Number(headers.get('content-length'))
  return { key, httpFields, customFields, size, etag, version: etag, uploaded }
}

function listedObject(entry: string, prefixLength: number): StoredObject {
  const member = (name: string) => new RegExp(`<${name}>(.*?)</${name}>`, 's').exec(entry)?.[1] ?? ''
  const etag = digestOf(member('ETag').replaceAll('&quot;', ''))
  return {
    key: member('Key').slice(prefixLength),
    httpFields: {},
    customFields: [],
    size: Number(member('Size')),
    etag,
    version: etag,
    uploaded: Date.parse(member('LastModified')) || 0,
  }
}

/** The ETag of S3 is the MD5 of the content, except for objects under some kinds of encryption. */
function digestOf(etag: string | null): string {
  const text = (etag ?? '').replaceAll('"', '')
  return /^[0-9a-f]{32}$/.test(text) ? text : createHash('md5').update(text).digest('hex')
}
