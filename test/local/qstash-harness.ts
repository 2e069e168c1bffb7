import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, Receiver } from '@upstash/qstash'
import { AdjustableClock } from '../../scripts/local/adjustable-clock.ts'
import { type QstashOptions, startQstash } from '../../scripts/local/qstash/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'

export const CURRENT_KEY = 'sig_current_for_tests'
export const NEXT_KEY = 'sig_next_for_tests'
export const TOKEN = 'token-for-tests'

/** A delivery as the destination saw it. */
export interface Delivery {
  readonly url: string
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: string
}

/** Answers of the destination; a number is a status. */
export type Answer = number | { status: number; headers?: Record<string, string>; body?: string; hang?: true }

/** A destination that notes every delivery and answers as it is told. */
export interface Destination {
  readonly url: string
  readonly deliveries: Delivery[]
  /** Decides the answer to each delivery; 200 until it is set. */
  answer: (delivery: Delivery) => Answer
  /** The paths of all deliveries so far, with how often each was retried. */
  paths(): string[]
  close(): Promise<void>
}

/** Starts a destination on a free port. */
export async function startDestination(): Promise<Destination> {
  const deliveries: Delivery[] = []
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const delivery = {
      url: `${destination.url}${request.url}`,
      method: request.method ?? '',
      headers: request.headers as Record<string, string>,
      body: Buffer.concat(chunks).toString('utf8'),
    }
    deliveries.push(delivery)
    const answer = destination.answer(delivery)
    const { status, headers, body, hang } = typeof answer === 'number' ? { status: answer } : answer
    if (hang !== true) response.writeHead(status, headers).end(body ?? 'seen')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const destination: Destination = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    deliveries,
    answer: () => 200,
    paths: () =>
      deliveries.map(({ url, headers }) => `${new URL(url).pathname} ${headers['upstash-retried']}`),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return destination
}

/** A stand-in with the SDK's client, the SDK's receiver and a clock that the test moves. */
export interface QstashSetup {
  readonly standIn: RunningServer
  readonly client: Client
  readonly receiver: Receiver
  readonly clock: AdjustableClock
}

/** Starts the stand-in with the keys above. */
export async function setUpQstash(options: Partial<QstashOptions> = {}): Promise<QstashSetup> {
  const clock = options.clock ?? new AdjustableClock()
  const standIn = await startQstash({
    currentSigningKey: CURRENT_KEY,
    nextSigningKey: NEXT_KEY,
    token: TOKEN,
    ...options,
    clock,
  })
  return { standIn, clock, client: connectClient(standIn.url), receiver: makeReceiver() }
}

/** The unmodified client of `@upstash/qstash`. */
export function connectClient(baseUrl: string, token = TOKEN): Client {
  return new Client({ baseUrl, token, devMode: false, retry: false })
}

export function makeReceiver(): Receiver {
  return new Receiver({ currentSigningKey: CURRENT_KEY, nextSigningKey: NEXT_KEY, devMode: false })
}

/** Verifies a delivery as an endpoint does. */
export function verify(
  receiver: Receiver,
  delivery: Delivery,
  changes: Partial<Delivery> = {},
): Promise<boolean> {
  const { headers, body, url } = { ...delivery, ...changes }
  return receiver.verify({ signature: headers['upstash-signature'] ?? '', body, url })
}
