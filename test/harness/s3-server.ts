import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Sha256 } from '@aws-crypto/sha256-js'
import { SignatureV4 } from '@smithy/signature-v4'
import { listenOnLoopback, type RunningServer, readBody } from '../../scripts/node/loopback-server.ts'

export const S3_KEYS = { accessKeyId: 'AKIATEST', secretAccessKey: 'a secret of the test' }
export const S3_REGION = 'eu-central-1'

export interface S3Server extends RunningServer {
  /** Content by `/bucket/key`. */
  objects: Map<string, { body: Buffer; fields: string | undefined; storedAt?: Date }>
  /** Makes ETags that are no digests, as for objects under KMS keys. */
  hasOpaqueTags: boolean
  /** Called before an answer with content begins, and after its first byte; the answer waits for them. */
  beforeContent: (path: string) => unknown
  withinContent: (path: string) => unknown
  /** Requests that were answered, as `METHOD /bucket/key`. */
  requests: string[]
  /** Statuses with which the next requests fail. */
  failures: number[]
  refused: number
}

/** A server with the interface of S3, one page of a list at a time, which checks each signature by Amazon's own library. */
export async function startS3Server(pageSize = 1_000): Promise<S3Server> {
  const objects: S3Server['objects'] = new Map()
  const failures: number[] = []
  const server = {
    objects,
    failures,
    requests: [] as string[],
    refused: 0,
    hasOpaqueTags: false,
    beforeContent: (_path: string): unknown => null,
    withinContent: (_path: string): unknown => null,
  }
  const running = await listenOnLoopback(0, async (request, response) => {
    const body = await readBody(request, 100_000_000)
    const failure = failures.shift()
    if (failure !== undefined) return void response.writeHead(failure).end()
    if (!(await isSigned(request, body))) {
      server.refused += 1
      return void response.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>')
    }
    server.requests.push(`${request.method} ${request.url}`)
    await answer(server, pageSize, request, body, response)
  })
  return Object.assign(server, running)
}

async function isSigned({ method = '', url = '', headers }: IncomingMessage, body: Buffer): Promise<boolean> {
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')?.[1]?.split(';') ?? []
  const hash = createHash('sha256').update(body).digest('hex')
  if (headers['x-amz-content-sha256'] !== hash || !names.includes('x-amz-content-sha256')) return false
  // S3 refuses headers of its own that are not signed.
  if (Object.keys(headers).some((name) => name.startsWith('x-amz-') && !names.includes(name))) return false
  const time = String(headers['x-amz-date'])
  const signingDate = new Date(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'))
  const { pathname, searchParams } = new URL(url, 'http://x')
  const signer = new SignatureV4({
    service: 's3',
    region: S3_REGION,
    credentials: S3_KEYS,
    sha256: Sha256,
    uriEscapePath: false,
  })
  const signed = await signer.sign(
    {
      method,
      protocol: 'http:',
      hostname: '127.0.0.1',
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: Object.fromEntries(names.map((name) => [name, String(headers[name] ?? '')])),
      body,
    },
    { signingDate, signableHeaders: new Set(names) },
  )
  return signed.headers.authorization === headers.authorization
}

type Content = Pick<S3Server, 'objects' | 'hasOpaqueTags' | 'beforeContent' | 'withinContent'>

const tagOf = ({ hasOpaqueTags }: Content, body: Buffer): string => {
  const digest = createHash('md5').update(body).digest('hex')
  return hasOpaqueTags ? `opaque-${digest}` : digest
}

async function answer(
  server: Content,
  pageSize: number,
  request: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<void> {
  const { objects } = server
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://x')
  if (searchParams.get('list-type') === '2')
    return void list(server, pageSize, pathname, searchParams, response)
  if (request.method === 'PUT') {
    const fields = request.headers['x-amz-meta-headgate'] as string | undefined
    objects.set(pathname, { body, fields, storedAt: new Date() })
    return void response.writeHead(200, { etag: `"${tagOf(server, body)}"` }).end()
  }
  if (request.method === 'GET') await server.beforeContent(pathname)
  const object = objects.get(pathname)
  if (request.method === 'DELETE') {
    objects.delete(pathname)
    return void response.writeHead(204).end()
  }
  if (object === undefined) return void response.writeHead(404).end()
  const [, first = '0', last = object.body.length - 1] =
    /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
  const part = object.body.subarray(Number(first), Number(last) + 1)
  response.writeHead(request.headers.range ? 206 : 200, {
    etag: `"${tagOf(server, object.body)}"`,
    'content-length': part.length,
    'last-modified': (object.storedAt ?? new Date(0)).toUTCString(),
    ...(object.fields && { 'x-amz-meta-headgate': object.fields }),
  })
  if (request.method === 'HEAD') return void response.end()
  response.write(part.subarray(0, 1))
  await server.withinContent(pathname)
  response.end(part.subarray(1))
}

function list(
  server: Content,
  pageSize: number,
  bucket: string,
  query: URLSearchParams,
  response: ServerResponse,
): void {
  const { objects } = server
  const start = bucket.endsWith('/') ? bucket : `${bucket}/`
  const after = query.get('start-after') ?? ''
  const keys = [...objects.keys()]
    .filter((path) => path.startsWith(start))
    .map((path) => path.slice(start.length))
    .filter((key) => key.startsWith(query.get('prefix') ?? '') && key > after)
    .sort()
  const page = keys.slice(0, Math.min(pageSize, Number(query.get('max-keys'))))
  const entries = page.map((key) => {
    const { body = Buffer.alloc(0), storedAt = new Date(0) } = objects.get(start + key) ?? {}
    return `<Contents><Key>${key}</Key><LastModified>${storedAt.toISOString()}</LastModified><ETag>&quot;${tagOf(server, body)}&quot;</ETag><Size>${body.length}</Size></Contents>`
  })
  const more = `<IsTruncated>${page.length < keys.length}</IsTruncated>`
  response.writeHead(200, { 'content-type': 'application/xml' })
  response.end(`<?xml version="1.0"?><ListBucketResult>${more}${entries.join('')}</ListBucketResult>`)
}
