import { isDeepStrictEqual } from 'node:util'
import { routeRequest } from '../../../../../src/gateway/calls/route-request.ts'
import { routesFor } from '../../../../../src/gateway/catalogue/call-routes.ts'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { OPERATIONS } from '../../../../../src/gateway/protocols/operations.ts'
import {
  PROVIDER_KINDS,
  type Provider,
  type ProviderKind,
  transportOf,
} from '../../../../../src/gateway/providers/provider.ts'
import { ApiError } from '../../../../../src/lib/api-error.ts'
import { joinBytes } from '../../../../../src/lib/byte-edits.ts'
import { drained } from '../../../../../src/lib/slices.ts'
import type { Verdict } from './features.ts'
import { CAPABILITIES } from './run-request.ts'

/** What a request becomes at each vendor, by the code that makes the request of every route. */

/** A column of the tables: one kind of provider, with a model of the family that it calls there. */
export interface Vendor {
  title: string
  kind: ProviderKind
  upstreamModel: string
}

export const VENDORS: readonly Vendor[] = [
  { title: 'OpenAI', kind: 'openai-compatible', upstreamModel: 'gpt-4.1' },
  { title: 'Azure OpenAI', kind: 'azure-openai', upstreamModel: 'my-deployment' },
  { title: 'Mistral', kind: 'mistral', upstreamModel: 'mistral-large-latest' },
  { title: 'Groq', kind: 'groq', upstreamModel: 'openai/gpt-oss-120b' },
  { title: 'xAI', kind: 'xai', upstreamModel: 'grok-4.6' },
  { title: 'DeepSeek', kind: 'deepseek', upstreamModel: 'deepseek-v4-pro' },
  { title: 'Together', kind: 'together', upstreamModel: 'zai-org/GLM-5.3' },
  { title: 'Fireworks', kind: 'fireworks', upstreamModel: 'accounts/fireworks/models/kimi-k3' },
  { title: 'OpenRouter', kind: 'openrouter', upstreamModel: 'qwen/qwen3.7-max' },
  { title: 'Ollama', kind: 'ollama', upstreamModel: 'llama3.3' },
  { title: 'vLLM', kind: 'vllm', upstreamModel: 'qwen3' },
  { title: 'Gemini over chat', kind: 'gemini-openai', upstreamModel: 'gemini-3.1-pro-preview' },
  { title: 'Anthropic', kind: 'anthropic', upstreamModel: 'claude-sonnet-4-5' },
  { title: 'Claude in Foundry', kind: 'foundry', upstreamModel: 'claude-deployment' },
  {
    title: 'Claude on Bedrock',
    kind: 'bedrock',
    upstreamModel: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  },
  { title: 'Claude on Vertex', kind: 'vertex', upstreamModel: 'claude-sonnet-4-5@20250929' },
  { title: 'Gemini', kind: 'gemini', upstreamModel: 'gemini-3.1-pro-preview' },
  { title: 'Gemini on Vertex', kind: 'vertex', upstreamModel: 'gemini-3.1-pro-preview' },
  { title: 'Nova on Bedrock', kind: 'bedrock', upstreamModel: 'us.amazon.nova-pro-v1:0' },
  { title: 'others on Bedrock', kind: 'bedrock', upstreamModel: 'meta.llama4-scout-17b-instruct-v1:0' },
]

export type VendorCaller = 'chat_completions' | 'messages' | 'responses'

/** A request, as it is sent to a vendor. */
export interface Sent {
  url: string
  body: Json
  text: string
  dropped: readonly string[]
  isNative: boolean
}

const PARTS: Partial<Record<ProviderKind, Record<string, string>>> = {
  bedrock: { region: 'us-east-1', api_key: 'key' },
  vertex: { project_id: 'project', client_email: 'a@b', private_key: 'key', location: 'us-east5' },
  'azure-openai': { api_key: 'key' },
  foundry: { api_key: 'key' },
}

const providers = new Map<ProviderKind, Provider>()

function providerOf(kind: ProviderKind): Provider {
  const known = providers.get(kind)
  if (known) return known
  const parts = PARTS[kind] ?? { secret: 'key' }
  const baseUrl = PROVIDER_KINDS[kind].defaultBaseUrl?.(parts) ?? 'https://provider.example'
  const provider: Provider = { id: kind, name: kind, kind, baseUrl, credential: { parts, secrets: [] } }
  providers.set(kind, provider)
  return provider
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** The request that a vendor is sent for a caller's. @returns the error of one that is refused. */
export function sentTo(
  vendor: Vendor,
  caller: VendorCaller,
  request: Json,
  capabilities = CAPABILITIES,
): Sent | ApiError {
  const model = {
    ...{ id: 'some-model', ownedBy: 'x', created: 0, contextWindow: 200_000, maxOutputTokens: 8_000 },
    prices: { input: 1, output: 1, cacheRead: 1, cacheWrite5Minutes: 1, cacheWrite1Hour: 1 },
    capabilities,
    routes: [{ provider: providerOf(vendor.kind), upstreamModel: vendor.upstreamModel }],
  }
  try {
    const [route] = routesFor(model, caller)
    if (route === undefined) throw new Error(`${vendor.title} has no route for ${caller}`)
    const outline = drained(OPERATIONS[caller].protocol.outline(encoder.encode(JSON.stringify(request))))
    const planned = {
      request: { operation: caller, headers: new Headers(), principal: { organizationId: 'o' } },
      outline,
      model,
      inspected: { edits: [], changedThinking: new Set() },
    }
    const made = drained(routeRequest(planned as unknown as Parameters<typeof routeRequest>[0], route))
    if (made instanceof ApiError) return made
    const bytes = joinBytes(made.translated?.takeRequest().pieces ?? made.body.pieces)
    const target = { operation: route.operation, upstreamModel: vendor.upstreamModel, stream: outline.stream }
    const { url } = transportOf(route.provider).prepare({ ...target, callerHeaders: null }, bytes as never)
    const text = decoder.decode(bytes)
    return { url, text, body: JSON.parse(text) as Json, dropped: made.dropped, isNative: !made.translated }
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

/** What becomes of one member of a request: the difference that it makes, and whether the caller is told of its loss. */
export function memberVerdict(
  vendor: Vendor,
  caller: VendorCaller,
  { member, request, capabilities }: { member: string; request: Json; capabilities?: readonly string[] },
): Verdict {
  const sent = sentTo(vendor, caller, request, capabilities)
  if (sent instanceof ApiError) return 'refused'
  if (sent.dropped.includes(member)) return 'dropped'
  if (isDeepStrictEqual(sent.body[member], request[member])) return 'kept'
  const { [member]: _, ...others } = request
  const without = sentTo(vendor, caller, others, capabilities)
  const isSame = !(without instanceof ApiError) && without.url === sent.url && without.text === sent.text
  return isSame ? 'dropped' : 'translated'
}

/** What becomes of something within the messages that a text identifies. */
export function contentVerdict(
  vendor: Vendor,
  caller: VendorCaller,
  { request, marker }: { request: Json; marker: RegExp },
): Verdict {
  const sent = sentTo(vendor, caller, request)
  if (sent instanceof ApiError) return 'refused'
  if (!marker.test(sent.text)) return 'dropped'
  return isDeepStrictEqual(sent.body.messages, request.messages) ? 'kept' : 'translated'
}
