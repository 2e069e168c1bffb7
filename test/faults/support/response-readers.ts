import { type IncomingMessage, request } from 'node:http'
import { expect } from 'vitest'
import { checkResponseStream } from '../../harness/conformance.ts'
import type { StreamEvent } from '../../harness/conformance-rules.ts'
import { type CallKind, type CallResult, callKind } from '../../harness/model-calls.ts'
import { readResponseStream } from '../../harness/response-stream-text.ts'
import type { GatewayAddress } from '../../harness/start-gateway.ts'

type Address = Pick<GatewayAddress, 'baseUrl'>
type Json = Record<string, unknown>

/** A response as tests of faults look at it. */
export interface ToldResponse extends Json {
  id: string
  status: string
  output_text: string
  conversation: { id: string } | null
}

export interface Asking {
  key: string
  method?: 'GET' | 'POST' | 'DELETE'
  path: string
  body?: Json
  /** The connection is reset when so many bytes of the answer have arrived; 0 with its head. */
  leaveAfterBytes?: number
  /** The connection is reset after this time, perhaps before there is an answer. */
  leaveAfterMilliseconds?: number
}

/** An answer while it is received. */
export interface Reading {
  /** The complete result. Never rejects. */
  result: Promise<CallResult>
  /** Resolves with the head of the answer, or without one. */
  answered: Promise<void>
  /** The bytes received so far, a character each. */
  bytes(): string
  /** When each piece arrived: bytes there were then, milliseconds since the epoch. */
  arrivals: Array<[bytes: number, at: number]>
}

const BOUND_MS = 60_000
const KIND: CallKind = { ...callKind('chat stream'), name: 'responses', path: '/v1/responses' }

/** Makes a request on a connection of its own and reads its answer until it ends, breaks or is left. */
export function read(address: Address, asking: Asking): Reading {
  const { key, method = 'GET', path, body, leaveAfterBytes, leaveAfterMilliseconds } = asking
  const text = body === undefined ? '' : JSON.stringify(body)
  const startedAt = Date.now()
  const pieces: Buffer[] = []
  const arrivals: Reading['arrivals'] = []
  let incoming: IncomingMessage | null = null
  let total = 0
  const { promise, resolve } = Promise.withResolvers<CallResult>()
  const answered = Promise.withResolvers<void>()
  const outgoing = request(address.baseUrl + path, {
    method,
    agent: false,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      }),
    },
  })
  const timers: NodeJS.Timeout[] = []
  const finish = (end: CallResult['end']): void => {
    for (const timer of timers) clearTimeout(timer)
    answered.resolve()
    const requestId = incoming?.headers['x-request-id']
    resolve({
      kind: KIND,
      status: incoming?.statusCode ?? null,
      headers: incoming?.headers ?? {},
      requestId: typeof requestId === 'string' ? requestId : null,
      text: Buffer.concat(pieces).toString(),
      end,
      milliseconds: Date.now() - startedAt,
    })
  }
  const leave = (end: 'left' | 'hung'): void => {
    finish(end)
    if (outgoing.socket) outgoing.socket.resetAndDestroy()
    else outgoing.destroy()
  }
  timers.push(setTimeout(() => leave('hung'), BOUND_MS))
  if (leaveAfterMilliseconds !== undefined) {
    timers.push(setTimeout(() => leave('left'), leaveAfterMilliseconds))
  }
  outgoing.on('error', () => finish('broken'))
  outgoing.on('response', (answer) => {
    incoming = answer
    answered.resolve()
    if (leaveAfterBytes === 0) return leave('left')
    answer.on('data', (piece: Buffer) => {
      const rest = piece.subarray(0, (leaveAfterBytes ?? Number.POSITIVE_INFINITY) - total)
      pieces.push(rest)
      total += rest.length
      arrivals.push([total, Date.now()])
      if (total >= (leaveAfterBytes ?? Number.POSITIVE_INFINITY)) leave('left')
    })
    answer.on('error', () => finish('broken'))
    answer.on('end', () => finish(answer.complete ? 'complete' : 'broken'))
    answer.on('close', () => finish('broken'))
  })
  outgoing.end(text)
  return {
    result: promise,
    answered: answered.promise,
    bytes: () => Buffer.concat(pieces).toString('latin1'),
    arrivals,
  }
}

/** The events of a stream after a number, from an answer that has to come to its end. @returns a byte to a character. */
export async function replay(address: Address, key: string, id: string, after = 0): Promise<string> {
  const path = `/v1/responses/${id}?stream=true&starting_after=${after}`
  const reading = read(address, { key, path })
  const { status, end, text } = await reading.result
  if (status !== 200 || end !== 'complete') throw new Error(`replay of ${id}: ${status} ${end} ${text}`)
  return withoutComments(reading.bytes())
}

/** @throws unless the answer is a success. */
export async function askJson<Body = Json>(address: Address, asking: Asking): Promise<Body> {
  const { status, end, text } = await read(address, asking).result
  if (status !== 200 || end !== 'complete') throw new Error(`${asking.path}: ${status} ${end} ${text}`)
  return JSON.parse(text) as Body
}

/** Removes the comments of a stream, which are heartbeats. A comment at the end may have been cut. */
export const withoutComments = (bytes: string): string =>
  bytes.replaceAll(': keep-alive\n\n', '').replace(/(^|\n\n):[^\n]*\n?$/, '$1')

/** The events that arrived whole. @param bytes a byte to a character. */
export function wholeEvents(bytes: string): StreamEvent[] {
  const known = withoutComments(bytes)
  const end = known.lastIndexOf('\n\n')
  return readResponseStream(Buffer.from(known.slice(0, end < 0 ? 0 : end + 2), 'latin1').toString())
}

/** The response id of a stream, even if it was cut in its first event; null if that part did not arrive. */
export const responseIdIn = (bytes: string): string | null =>
  /"response":\{"id":"(resp_[0-9A-Za-z]{32,37})"/.exec(bytes)?.[1] ?? null

export const lastSequence = (bytes: string): number =>
  Number(wholeEvents(bytes).at(-1)?.data.sequence_number ?? 0)

/** The response that a whole stream ends with. Fails for a stream that breaks a rule or has not one last event. */
export function expectWholeStream(bytes: string): ToldResponse {
  const events = wholeEvents(bytes)
  expect(checkResponseStream(events)).toEqual([])
  const terminal = events.filter(({ event }) => ['response.completed', 'response.failed'].includes(event))
  expect(terminal).toHaveLength(1)
  return terminal[0]?.data.response as ToldResponse
}

/**
 * Fails unless what a reader saw, from a number on, is what the whole stream says, as far as the reader got.
 * @param about what else the message of a failure tells.
 */
export function expectSeenIn(whole: string, seen: string, after = 0, about = ''): void {
  const known = withoutComments(seen)
  const end = after === 0 ? 0 : endOfEvent(whole, after)
  // A reader that resumes after the last event gets that event again.
  const from = end < whole.length ? end : whole.lastIndexOf('\n\n', end - 3) + 2
  const told = whole.slice(from, from + known.length)
  expect(told === known, `after ${after}: ${differenceOf(told, known)} ${about}`).toBe(true)
}

/** Characters of both texts around the first one that is not the same. */
const SHOWN_AROUND = 200

function differenceOf(told: string, seen: string): string {
  let at = 0
  while (at < seen.length && told[at] === seen[at]) at++
  const around = (text: string) =>
    JSON.stringify(text.slice(Math.max(0, at - SHOWN_AROUND), at + SHOWN_AROUND))
  return `differs at ${at}\nseen: ${around(seen)}\ntold: ${around(told)}\n`
}

function endOfEvent(whole: string, sequence: number): number {
  const start = whole.indexOf(`\nid: ${sequence}\n`)
  if (start < 0) throw new Error(`there is no event ${sequence}`)
  return whole.indexOf('\n\n', start) + 2
}
