import { type ConformanceOptions, checkResponseStream } from '../../harness/conformance.ts'
import type { StreamEvent } from '../../harness/conformance-rules.ts'
import { gateway } from '../../harness/gateway.ts'
import { inOwnForm, openResponsesEvents } from '../../harness/open-responses.ts'
import { readResponseStream } from '../../harness/response-stream-text.ts'
import { CHAT_MODEL, MESSAGES_MODEL } from '../../harness/sdk-clients.ts'
import type { Answer } from '../../harness/send.ts'
import { registerAnswers } from '../../harness/upstream.ts'
import { RESPONSES_ROUTE } from '../../matrices/routes.ts'
import { framesOf, type Part } from './dlp-answers.ts'
import { ask, expectJson, type Json, type ToldResponse } from './response-calls.ts'

/** The entries of `tools` for the tools that the service runs, which every response has. */
export const HOSTED_TOOLS = [{ type: 'shell' }, { type: 'web_search' }, { type: 'computer' }]

/** Form of the request, and protocol of the model's provider. */
export interface ResponseWay {
  upstream: 'chat' | 'messages'
  model: string
  stream: boolean
}

const PROTOCOLS = [
  ['chat', CHAT_MODEL],
  ['messages', MESSAGES_MODEL],
] as const

/** Both protocols of providers, streamed and whole, with a name for each. */
export const RESPONSE_WAYS: ReadonlyArray<readonly [name: string, way: ResponseWay]> = PROTOCOLS.flatMap(
  ([upstream, model]) =>
    [true, false].map(
      (stream) => [`${upstream}, ${stream ? 'streamed' : 'whole'}`, { upstream, model, stream }] as const,
    ),
)

/**
 * Both protocols, one streamed and one whole: for behaviour that does not depend on the form.
 * `responses-scripts.test.ts` shows for all answers of models that a whole response is the end of its stream.
 */
export const CORNER_WAYS = RESPONSE_WAYS.filter(
  ([, { upstream, stream }]) => stream === (upstream === 'chat'),
)

/** Both protocols, streamed. */
export const STREAMED_WAYS = RESPONSE_WAYS.filter(([, { stream }]) => stream)

/**
 * @returns the events of a stream that keeps every rule of the surface, and in the form of Open Responses also those of its
 *   specification. @throws naming what breaks them.
 */
export function checkedEvents(text: string, options: ConformanceOptions = {}): StreamEvent[] {
  const isOpenResponses = text.endsWith('data: [DONE]\n\n')
  const events = isOpenResponses ? openResponsesEvents(text) : readResponseStream(text)
  const violations = checkResponseStream(isOpenResponses ? inOwnForm(events) : events, options)
  if (violations.length > 0) throw new Error(`the stream breaks rules: ${violations.join('; ')}\n${text}`)
  return events
}

/** A response that has ended, as its creator received it. */
export interface Told {
  response: ToldResponse
  /** Events of a streamed response. */
  events: StreamEvent[]
  answer: Answer
}

interface Address {
  baseUrl?: string
  headers?: Record<string, string>
}

/** Makes a response. A streamed one is checked. @throws unless it begins and ends, however it ends. */
export async function respond(key: string, body: Json, address: Address = {}): Promise<Told> {
  const answer = await postResponse(key, body, address)
  if (body.stream !== true) return { response: expectJson<ToldResponse>(answer), events: [], answer }
  const type = answer.headers['content-type']
  if (answer.status !== 200 || type !== 'text/event-stream') {
    throw new Error(`status ${answer.status}, ${type}: ${answer.text.slice(0, 500)}`)
  }
  const events = checkedEvents(answer.text)
  return { response: events.at(-1)?.data.response as unknown as ToldResponse, events, answer }
}

/** Sends a request for a response, whatever is answered. */
export function postResponse(key: string, body: Json, address: Address = {}): Promise<Answer> {
  const request = JSON.stringify({ ...RESPONSES_ROUTE.request('Hello'), ...body })
  return ask(key, 'POST', '/v1/responses', { ...address, body: request })
}

/** Registers what the model says in each turn, of which the last repeats. @returns the text that selects it. */
export function turnsScript(
  upstream: ResponseWay['upstream'],
  turns: ReadonlyArray<readonly Part[]>,
  address: Parameters<typeof registerAnswers>[0] = gateway(),
): Promise<string> {
  return registerAnswers(
    address,
    turns.map((parts) => ({ steps: [{ sse: framesOf(upstream, parts) }] })),
  )
}

/** A `fetch` for an SDK that keeps what was streamed, so that it can be checked. */
export function recordingFetch(): {
  fetch: typeof globalThis.fetch
  /** Checks every stream of which all was read. @returns their events. */
  check: () => Promise<StreamEvent[][]>
} {
  const streams: Array<{ after: number; text: Promise<string> }> = []
  const recording: typeof globalThis.fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (response.headers.get('content-type') === 'text/event-stream') {
      const after = Number(new URL(String(input)).searchParams.get('starting_after') ?? 0)
      streams.push({ after, text: response.clone().text() })
    }
    return response
  }
  const check = () =>
    Promise.all(streams.map(async ({ after, text }) => checkedEvents(await text, { after })))
  return { fetch: recording, check }
}

/** The bodies of requests that the upstream saw, as far as tests look into them. */
export interface SeenBody extends Json {
  messages: Array<Json & { role: string; content: unknown }>
  tools?: Json[]
}

export const bodyOf = (request: { body: string }): SeenBody => JSON.parse(request.body) as SeenBody
