import { type IncomingHttpHeaders, request } from 'node:http'
import { checkContract } from './contract.ts'

export interface SendOptions {
  method?: string
  /** An array sends the header once for each value, as `fetch` cannot. */
  headers?: Record<string, string | string[]>
  body?: string | Buffer
  /** Sends the body without a Content-Length. */
  chunked?: boolean
}

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  /** Header names and values in turn, as they came. */
  rawHeaders: string[]
  bytes: Buffer
  text: string
}

const CHUNK_BYTES = 64 * 1024

/**
 * Sends one request on a connection of its own and reads the answer whole.
 * @throws whatever the connection fails with, also when it fails after the answer has begun.
 */
export function send(url: string, options: SendOptions = {}): Promise<Answer> {
  const { method = 'GET', headers = {}, body = '', chunked = false } = options
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return new Promise((resolve, reject) => {
    const length =
      chunked || (method === 'GET' && bytes.length === 0) ? {} : { 'content-length': bytes.length }
    const outgoing = request(url, { method, headers: { ...length, ...headers }, agent: false })
    outgoing.on('error', reject)
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const received = Buffer.concat(chunks)
        const { statusCode = 0, headers, rawHeaders } = incoming
        const answer = { status: statusCode, headers, rawHeaders, bytes: received, text: received.toString() }
        try {
          checkJson(method, url, answer)
        } catch (error) {
          reject(error)
        }
        resolve(answer)
      })
    })
    if (!chunked) outgoing.end(bytes)
    else writeInChunks(outgoing, bytes)
  })
}

/** Every JSON answer of the gateway is held against its contract; a body that is no JSON is for the test to find. */
function checkJson(method: string, url: string, { status, headers, text }: Answer): void {
  if (!headers['content-type']?.startsWith('application/json')) return
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return
  }
  checkContract(method, url, status, body)
}

function writeInChunks(outgoing: ReturnType<typeof request>, bytes: Buffer): void {
  let at = 0
  const writeOn = (): void => {
    while (at < bytes.length) {
      const part = bytes.subarray(at, at + CHUNK_BYTES)
      at += part.length
      if (!outgoing.write(part)) {
        outgoing.once('drain', writeOn)
        return
      }
    }
    outgoing.end()
  }
  outgoing.flushHeaders()
  writeOn()
}

/** The body of an answer that has to be a JSON object. */
export function jsonOf(answer: { text: string; status: number }): Record<string, unknown> {
  try {
    return JSON.parse(answer.text) as Record<string, unknown>
  } catch {
    throw new Error(`not JSON (status ${answer.status}): ${answer.text.slice(0, 300)}`)
  }
}
