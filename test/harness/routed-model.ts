import type { MakerKind } from '../../src/gateway/providers/makers/makers.ts'
import { upstreamControl } from './gateway.ts'
import { auditEntryOf } from './records.ts'
import { type Answer, send } from './send.ts'
import type { GatewayAddress } from './start-gateway.ts'
import { administrator, bearer, type Tenant, uniqueName } from './tenant.ts'
import type { ScriptStep } from './upstream.ts'

/** Kinds of one credential whose base URL ends before the path of their protocol. */
export type ProviderKind = 'openai-compatible' | 'anthropic' | MakerKind

/** A model that several providers serve, with the names of the providers in the order of its routes. */
export interface RoutedModel {
  id: string
  providers: string[]
}

/** Prices of a model made here: an input token costs one micro-credit, an output token five. */
export const PRICES = { input: 1_000_000, output: 5_000_000 }

/**
 * Makes a model with a provider of its own for each route, best first.
 * @param kinds of the providers. @param urls where they stand; the scripted upstream where left out.
 * @param isRenamed whether the providers have other names for it. The runtime carries streams only where they do not.
 */
export async function createRoutedModel(
  address: GatewayAddress,
  kinds: readonly ProviderKind[],
  urls: ReadonlyArray<string | undefined> = [],
  isRenamed = true,
): Promise<RoutedModel> {
  const { ask } = administrator(address)
  const id = uniqueName('routed')
  const providers: string[] = []
  const routes: Array<{ provider_id: unknown; upstream_model: string }> = []
  for (const [index, kind] of kinds.entries()) {
    const name = uniqueName(`route${index}`)
    const base = urls[index] ?? address.standIns.modelUpstream
    const base_url = kind === 'anthropic' ? base : `${base}/v1`
    const provider = await ask('POST', '/providers', {
      name,
      kind,
      base_url,
      credential: `credential ${name}`,
    })
    providers.push(name)
    routes.push({ provider_id: provider.id, upstream_model: isRenamed ? `${id}-at-${index}` : id })
  }
  await ask('PUT', `/models/${id}`, {
    owned_by: 'test',
    context_window: 100_000,
    max_output_tokens: 1_000,
    prices: PRICES,
    routes,
  })
  return { id, providers }
}

export type Dialect = 'chat' | 'messages'

/** The kind of a provider that speaks a dialect. */
export const KINDS: Record<Dialect, ProviderKind> = { chat: 'openai-compatible', messages: 'anthropic' }

const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
const MESSAGES_USAGE = { input_tokens: 11, output_tokens: 7 }
/** Cost of the usage of `answered`, in micro-credits by `PRICES`. */
export const ANSWER_COST = 11 + 7 * 5

const frame = (data: unknown): string => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const named = (data: { type: string }): string => `event: ${data.type}\n${frame(data)}`

function chatChunk(delta: object, finish: string | null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return frame({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })
}

const message = (content: unknown[], stop: string | null) => ({
  id: 'msg',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason: stop,
  stop_sequence: null,
  usage: MESSAGES_USAGE,
})

/** Answers with a text, streamed or whole. */
export function answered(dialect: Dialect, text: string, stream: boolean): ScriptStep[] {
  if (dialect === 'chat') {
    if (!stream) {
      const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }]
      const body = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage: USAGE }
      return [{ body: JSON.stringify(body), headers: JSON_TYPE }]
    }
    const usage = frame({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [],
      usage: USAGE,
    })
    return streamed([
      chatChunk({ role: 'assistant', content: text }, null),
      chatChunk({}, 'stop'),
      usage,
      frame('[DONE]'),
    ])
  }
  if (!stream) {
    return [{ body: JSON.stringify(message([{ type: 'text', text }], 'end_turn')), headers: JSON_TYPE }]
  }
  const block = { index: 0, content_block: { type: 'text', text: '' } }
  return streamed([
    named({ type: 'message_start', message: message([], null) } as { type: string }),
    named({ type: 'content_block_start', ...block } as { type: string }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } } as { type: string }),
    named({ type: 'content_block_stop', index: 0 } as { type: string }),
    named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } } as {
      type: string
    }),
    named({ type: 'message_stop' }),
  ])
}

const JSON_TYPE = { 'content-type': 'application/json' }
const streamed = (sse: string[]): ScriptStep[] => [
  { headers: { 'content-type': 'text/event-stream' } },
  { sse },
  { end: true },
]

/** A streamed answer with a pause after its first event. */
export function slowed([headers, content, ...rest]: ScriptStep[], milliseconds: number): ScriptStep[] {
  if (!headers || !content || !('sse' in content)) throw new Error('not a stream')
  const [first = '', ...others] = content.sse
  return [headers, { sse: [first] }, { waitMilliseconds: milliseconds }, { sse: others }, ...rest]
}

/** Answers with an error. */
export const failed = (
  status: number,
  body = `{"error":{"message":"status ${status}"}}`,
  headers = {},
): ScriptStep[] => [{ status, headers: { ...JSON_TYPE, ...headers }, body }]

/** Registers what the upstream answers in turn, whichever route is asked. @returns the text that selects it. */
export async function inTurn(
  address: Pick<GatewayAddress, 'standIns'>,
  ...responses: ScriptStep[][]
): Promise<string> {
  const name = uniqueName('turns')
  await upstreamControl(address).putScript(name, { responses: responses.map((steps) => ({ steps })) })
  return `script:${name}`
}

const PATHS: Record<Dialect, string> = { chat: '/v1/chat/completions', messages: '/v1/messages' }

/** The request of a call of a routed model. */
export function routedRequest(dialect: Dialect, model: RoutedModel, text: string, more: object = {}) {
  const body = { model: model.id, max_tokens: 100, messages: [{ role: 'user', content: text }], ...more }
  return { path: PATHS[dialect], body: JSON.stringify(body) }
}

export function callRouted(
  address: GatewayAddress,
  tenant: Tenant,
  request: { path: string; body: string },
  headers: Record<string, string> = {},
): Promise<Answer> {
  return send(address.baseUrl + request.path, {
    method: 'POST',
    headers: { ...bearer(tenant.key), ...headers },
    body: request.body,
  })
}

/** An attempt in the form of the audit row. */
export interface AttemptRow {
  provider: string
  upstreamModel: string
  status: number | null
  failure: string | null
  durationMilliseconds: number
}

/** The audit row of an answered call, with its attempts as `<route> <status or failure>`. */
export async function recordedCall(
  address: GatewayAddress,
  tenant: Tenant,
  model: RoutedModel,
  answer: { headers: Record<string, unknown> },
) {
  const entry = await auditEntryOf(address, tenant, answer.headers['x-request-id'])
  const rows = entry.record.attempts as AttemptRow[]
  const attempts = rows.map(
    ({ provider, status, failure }) =>
      `${model.providers.indexOf(provider)} ${[status, failure].filter((part) => part !== null).join(' ')}`,
  )
  return { entry, record: entry.record, rows, attempts }
}
