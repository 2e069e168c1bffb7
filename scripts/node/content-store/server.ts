import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { listenOnLoopback, type RunningServer } from '../loopback-server.ts'
import { makePrivateFolder } from '../private-folder.ts'
import { type ContentObjects, LengthError, ObjectFiles } from './object-files.ts'
import {
  ContentError,
  describeObject,
  invalidArgument,
  noSuchKey,
  operationOfBody,
  operationOfHeader,
  resolveRange,
  type StoreOperation,
} from './wire.ts'

const LIST_LIMIT = 1_000

/** R2 lists fewer at a time when it has to look their metadata up. */
const LIST_LIMIT_WITH_METADATA = 100

/**
 * Starts the server behind workerd's `r2Bucket` binding, one bucket on disk. The protocol is not documented; miniflare
 * implements it, and the tests use it with the real runtime. Reading operations (`get`, `head`, `list`) are a GET with
 * the operation as JSON in `cf-r2-request`; writing ones (`put`, `delete`) a PUT that begins with the JSON,
 * `cf-r2-metadata-size` bytes of it, then the content. Answers are built alike; a failure has its code in `cf-r2-error`.
 *
 * Conditions, digests given by the writer, delimiters and uploads in parts are refused.
 *
 * @param options.folder where the objects are. @param options.port 0 for any free one. @param options.socketPath of a Unix socket
 * in place of a port. @param options.claim takes the folder for this process, and returns what gives it back
 * @throws what `claim` does when another process has the folder, StartError when other users may use it, and the error of `listen`
 */
export async function startContentStore(options: {
  folder: string
  port?: number
  socketPath?: string
  claim: (folder: string) => (() => void) | Promise<() => Promise<void>>
}): Promise<RunningServer> {
  makePrivateFolder(options.folder)
  const release = await options.claim(options.folder)
  try {
    const { port, url, close } = await serveContent(
      new ObjectFiles(options.folder),
      options.socketPath ?? options.port ?? 0,
    )
    return { port, url, close: () => close().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}

/** The same server before any place of objects. @param place as `listenOnLoopback` has it */
export const serveContent = (objects: ContentObjects, place: number | string): Promise<RunningServer> =>
  listenOnLoopback(place, (request, response) => answerOrRefuse(objects, request, response))

async function answerOrRefuse(files: ContentObjects, request: IncomingMessage, response: ServerResponse) {
  try {
    await answer(files, request, response)
  } catch (error) {
    if (response.headersSent || !hasErrorCode(error)) throw error
    sendFailure(response, error)
    request.resume()
  }
}

async function answer(
  files: ContentObjects,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method === 'PUT') return write(files, request, response)
  const operation = operationOfHeader(request)
  switch (operation.method) {
    case 'head':
      return head(files, operation, response)
    case 'get':
      return get(files, operation, response)
    case 'list':
      return list(files, operation, response)
    default:
      throw invalidArgument(`The local content store has no ${operation.method}.`)
  }
}

async function write(
  files: ContentObjects,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { operation, content, contentSize } = await operationOfBody(request)
  const { method, object: key, objects } = operation
  if (method === 'delete') {
    await files.delete(key === undefined ? (objects ?? []) : [key])
    request.resume()
    response.writeHead(200, { 'content-length': 0 }).end()
    return
  }
  if (method !== 'put') throw invalidArgument(`The local content store has no ${method}.`)
  const { httpFields = {}, customFields = [] } = operation
  const stored = await files.put({ key: keyOf(operation), httpFields, customFields }, content, contentSize)
  sendMetadata(response, describeObject(stored))
}

async function head(
  files: ContentObjects,
  operation: StoreOperation,
  response: ServerResponse,
): Promise<void> {
  const object = await files.head(keyOf(operation))
  if (object === undefined) throw noSuchKey()
  sendMetadata(response, describeObject(object))
}

async function get(
  files: ContentObjects,
  operation: StoreOperation,
  response: ServerResponse,
): Promise<void> {
  const opened = await files.open(keyOf(operation))
  if (opened === null) throw noSuchKey()
  const { object } = opened
  try {
    const range = resolveRange(operation.range, object.size)
    const { offset, length } = range
    const metadata = writeMetadata(response, describeObject(object, range), length)
    if (length === 0) return void response.end(metadata)
    const content = await opened.read(offset, length)
    response.write(metadata)
    await pipeline(content, response)
  } finally {
    await opened.close()
  }
}

async function list(
  files: ContentObjects,
  operation: StoreOperation,
  response: ServerResponse,
): Promise<void> {
  const { prefix = '', include = [], cursor, startAfter } = operation
  const requested = operation.limit ?? LIST_LIMIT
  if (requested < 1 || requested > LIST_LIMIT) {
    throw new ContentError(400, 10_022, 'MaxKeys params must be positive integer <= 1000.')
  }
  const limit = include.length > 0 ? Math.min(requested, LIST_LIMIT_WITH_METADATA) : requested
  const after = cursor ? Buffer.from(cursor, 'base64url').toString() : startAfter
  const { objects, more } = await files.list(prefix, after, limit)
  const last = objects.at(-1)?.key ?? ''
  sendMetadata(response, {
    objects: objects.map((object) => describeObject(object, undefined, include)),
    truncated: more,
    ...(more && { cursor: Buffer.from(last).toString('base64url') }),
    delimitedPrefixes: [],
  })
}

function keyOf({ object }: StoreOperation): string {
  if (object === undefined) throw invalidArgument('The operation names no object.')
  return object
}

function sendMetadata(response: ServerResponse, value: unknown): void {
  response.end(writeMetadata(response, value, 0))
}

/** Sends the head of an answer. @returns the bytes that its body begins with */
function writeMetadata(response: ServerResponse, value: unknown, contentLength: number): Buffer {
  const metadata = Buffer.from(JSON.stringify(value))
  response.writeHead(200, {
    'cf-r2-metadata-size': metadata.length,
    'content-type': 'application/json',
    'content-length': metadata.length + contentLength,
  })
  return metadata
}

const hasErrorCode = (error: unknown): error is ContentError | LengthError =>
  error instanceof ContentError || error instanceof LengthError

function sendFailure(response: ServerResponse, error: ContentError | LengthError): void {
  const { status, code } = error instanceof ContentError ? error : invalidArgument('')
  const description = JSON.stringify({ version: 1, v4code: code, message: error.message })
  response.writeHead(status, { 'cf-r2-error': description, 'content-length': 0 }).end()
}
