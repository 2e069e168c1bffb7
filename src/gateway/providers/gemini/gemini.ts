import { SseReader } from '../../../lib/sse.ts'
import { SECRET_ONLY } from '../credential.ts'
import { ROUTING_OF_PROXIES } from '../routing-members.ts'
import type { ProviderKindDefinition, RequestTarget, Transport, UpstreamOperation } from '../transport.ts'

const BASE_URL = 'https://generativelanguage.googleapis.com/v1beta'

/** Methods of a model (https://ai.google.dev/api/generate-content, https://ai.google.dev/api/tokens). */
const METHODS: Readonly<Partial<Record<UpstreamOperation, { whole: string; streamed: string }>>> = {
  // Without `alt=sse` the stream is a list in JSON.
  generate_content: { whole: 'generateContent', streamed: 'streamGenerateContent?alt=sse' },
  input_tokens: { whole: 'countTokens', streamed: 'countTokens' },
}

/** The Gemini API with its own protocol. The key goes in a header, because addresses are logged. */
export const gemini: ProviderKindDefinition = {
  credential: SECRET_ONLY,
  routingMembers: new Set([...ROUTING_OF_PROXIES, 'cachedcontent', 'cached_content']),
  hosts: /^generativelanguage\.googleapis\.com$/,
  defaultBaseUrl: () => BASE_URL,
  connect: (baseUrl, { secret = '' }): Transport => ({
    speaks: (operation, upstreamModel) => METHODS[operation] !== undefined && isModelName(upstreamModel),
    counter: () => 'generate_content',
    prepare: (target, body) => ({
      url: baseUrl + methodPath(target),
      headers: headersFor(target, secret),
      body,
    }),
    authorize: null,
    streamType: 'text/event-stream',
    frames: () => new SseReader(),
  }),
}

/** A name selects no other path. */
const isModelName = (name: string): boolean => name.split('/').every((step) => !/^\.{0,2}$/.test(step))

/** The path of a method, below the base URL. Tuned models have a collection of their own in their name. */
function methodPath({ operation, upstreamModel, stream }: RequestTarget): string {
  const methods = METHODS[operation]
  if (!methods) throw new Error(`the provider does not speak ${operation}`)
  const name = /^(models|tunedModels)\//.test(upstreamModel) ? upstreamModel : `models/${upstreamModel}`
  const path = name.split('/').map(encodeURIComponent).join('/')
  return `/${path}:${stream ? methods.streamed : methods.whole}`
}

const headersFor = ({ stream }: RequestTarget, key: string): Record<string, string> => ({
  'content-type': 'application/json',
  'user-agent': 'headgate',
  accept: stream ? 'text/event-stream' : 'application/json',
  'x-goog-api-key': key,
})
