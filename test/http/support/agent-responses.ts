import { expect } from 'vitest'
import type { StreamEvent } from '../../harness/conformance-rules.ts'
import type { Tenant } from '../../harness/tenant.ts'
import { ask, expectJson, type Json, type ToldResponse } from './response-calls.ts'
import { checkedEvents, respond, type Told } from './response-streams.ts'

type Caller = Pick<Tenant, 'key'>
type Address = { baseUrl?: string; headers?: Record<string, string> }

/** Runs an agent as a response. @throws unless it begins. */
export const callAgent = (
  { key }: Caller,
  agentId: string,
  body: Json = {},
  address: Address = {},
): Promise<Told> =>
  respond(
    key,
    // Replaces defaults that are for models only.
    { model: `agent/${agentId}`, input: '', max_output_tokens: null, ...body },
    address,
  )

export const runPath = (runId: string, rest = '') => `/v1/responses/resp_run_${runId}${rest}`

export async function readRunResponse({ key }: Caller, runId: string, address: Address = {}) {
  return expectJson<ToldResponse>(await ask(key, 'GET', runPath(runId), address))
}

/** All events of a run, until it ends. The stream is checked. */
export async function runEvents(
  { key }: Caller,
  runId: string,
  { condensed = false, ...address }: Address & { condensed?: boolean } = {},
): Promise<StreamEvent[]> {
  const answer = await ask(key, 'GET', runPath(runId, '?stream=true'), address)
  if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.text}`)
  return checkedEvents(answer.text, { condensed })
}

/** Names of events, without repeating deltas. */
export const shapeOf = (events: readonly StreamEvent[]): string[] =>
  events.map(({ event }) => event).filter((event, index, all) => event !== all[index - 1])

export const endOf = (events: readonly StreamEvent[]): ToldResponse =>
  events.at(-1)?.data.response as unknown as ToldResponse

/** The text of each message of an output. */
export const textsOf = ({ output }: Pick<ToldResponse, 'output'>): string[] =>
  output
    .filter(({ type }) => type === 'message')
    .map(({ content }) => (content as Array<{ text: string }>).map(({ text }) => text).join(''))

/** The error of a refused request. */
export const refused = (code: string, message: RegExp, type = 'invalid_request_error') => ({
  error: { message: expect.stringMatching(message), type, code },
})
