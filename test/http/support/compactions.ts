import { gateway } from '../../harness/gateway.ts'
import { administrator, uniqueName } from '../../harness/tenant.ts'
import { seenRequests } from '../../harness/upstream.ts'
import { ask, expectJson, type Json } from './response-calls.ts'
import { bodyOf } from './response-streams.ts'

export interface Compaction extends Json {
  id: string
  output: Array<Json & { id: string; type: string; encrypted_content?: string }>
  usage: Json & { input_tokens: number; output_tokens: number }
}

/** @param address `headers` of the request. */
export const compact = (key: string, body: Json, address: { headers?: Record<string, string> } = {}) =>
  ask(key, 'POST', '/v1/responses/compact', {
    body: JSON.stringify({ model: 'scripted-chat', ...body }),
    ...address,
  })

/** @throws unless that succeeds. */
export const compacted = async (...call: Parameters<typeof compact>) =>
  expectJson<Compaction>(await compact(...call))

export const user = (content: string) => ({ role: 'user', content })
export const assistant = (content: string) => ({ role: 'assistant', content })
/** Longer than what a summary is made for. */
export const LONG_TEXT = 'The launch was discussed at length. '.repeat(300)

/** A conversation that is long enough for a summary. */
export const longConversation = (text: string) => [
  user(`Remember ${text}.`),
  assistant(LONG_TEXT),
  user('And notify support first.'),
]

/** The bodies of the requests with this text that the upstream got, as JSON, oldest first. */
export const sentWith = async (text: string): Promise<string[]> =>
  (await seenRequests(gateway(), text)).map((request) => JSON.stringify(bodyOf(request)))

/** The types of items, and the roles of messages. */
export const kindsOf = (items: ReadonlyArray<Json>) => items.map(({ type, role }) => role ?? type)

/** A model with a window of its own, on one of the scripted providers. */
export async function modelWithWindow(upstream: 'chat' | 'messages', window: number): Promise<string> {
  const { ask: administer } = administrator(gateway())
  const id = uniqueName('window')
  const base = gateway().standIns.modelUpstream
  const provider = await administer<{ id: string }>('POST', '/providers', {
    name: id,
    kind: upstream === 'chat' ? 'openai-compatible' : 'anthropic',
    base_url: upstream === 'chat' ? `${base}/v1` : base,
    credential: `credential ${id}`,
  })
  await administer('PUT', `/models/${id}`, {
    owned_by: 'test',
    context_window: window,
    max_output_tokens: 1_000,
    prices: { input: 1_000_000, output: 5_000_000 },
    routes: [{ provider_id: provider.id, upstream_model: id }],
  })
  return id
}
