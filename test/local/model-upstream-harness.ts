import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect } from 'vitest'
import type { RequestRecord } from '../../scripts/local/model-upstream/request-log.ts'
import { startModelUpstream } from '../../scripts/local/model-upstream/server.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'

/** The upstream of the test file that runs. */
export let upstream: RunningServer

/** Gives the test file that calls this an upstream of its own, without a key, for the time of its tests. */
export function useUpstream(): void {
  beforeAll(async () => {
    upstream = await startModelUpstream({ port: 0 })
  })
  afterAll(() => upstream.close())
}

export function post(
  path: string,
  text: string,
  more: object = {},
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(upstream.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
    body: JSON.stringify({
      model: 'm',
      max_tokens: 500,
      messages: [{ role: 'user', content: text }],
      ...more,
    }),
    redirect: 'manual',
  })
}

export function chat(text: string, more: object = {}): Promise<Response> {
  return post('/v1/chat/completions', text, more)
}

export async function control(
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: unknown }> {
  const options = body === undefined ? { method } : { method, body: JSON.stringify(body) }
  const response = await fetch(`${upstream.url}/control${path}`, options)
  return { status: response.status, body: await response.json() }
}

export async function register(name: string, script: object): Promise<void> {
  expect(await control('PUT', `/scripts/${name}`, script)).toMatchObject({ status: 200 })
}

export async function recorded(after = 0): Promise<RequestRecord[]> {
  const { body } = await control('GET', `/requests?after=${after}`)
  return (body as { requests: RequestRecord[] }).requests
}

export async function lastRecorded(): Promise<RequestRecord> {
  const record = (await recorded()).at(-1)
  if (record === undefined) throw new Error('no request was recorded')
  return record
}

/** Sends a raw request so that the test sees every chunk as it arrives and can stop reading. */
export async function openStream(text: string): Promise<IncomingMessage> {
  const outgoing = httpRequest(`${upstream.url}/v1/chat/completions`, { method: 'POST', agent: false })
  outgoing.end(JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: text }] }))
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  return incoming
}

export async function firstChunk(incoming: IncomingMessage): Promise<string> {
  const [chunk] = (await once(incoming, 'data')) as [Buffer]
  return chunk.toString()
}
