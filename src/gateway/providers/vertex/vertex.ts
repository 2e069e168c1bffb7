import { unprocessable } from '../../../lib/api-error.ts'
import { SseReader } from '../../../lib/sse.ts'
import { accessTokens } from '../access-tokens.ts'
import { anthropic } from '../anthropic/anthropic.ts'
import { hostedMembers, isClaude, knownBetas } from '../anthropic/hosted-claude.ts'
import type { CredentialParts } from '../credential.ts'
import type {
  ConnectOptions,
  CounterForm,
  ProviderKindDefinition,
  RequestTarget,
  Transport,
} from '../transport.ts'
import { checkServiceAccount, SERVICE_ACCOUNT, serviceAccountExchange } from './service-account.ts'

/** The version that Vertex documents for Claude; later ones refuse sampling members. */
const VERSION = 'vertex-2023-10-16'

/** https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai */
const BETAS: ReadonlySet<string> = new Set([
  'computer-use-2025-01-24',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'effort-2025-11-24',
  'fine-grained-tool-streaming-2025-05-14',
  'interleaved-thinking-2025-05-14',
  'output-128k-2025-02-19',
  'token-efficient-tools-2025-02-19',
  'tool-search-tool-2025-10-19',
  'web-search-2025-03-05',
])

const LOCATION = /^[a-z0-9]+(-[a-z0-9]+)*$/

/** Locations with hosts of another form than `<location>-aiplatform.googleapis.com`. */
const HOSTS: Readonly<Record<string, string>> = {
  global: 'aiplatform.googleapis.com',
  us: 'aiplatform.us.rep.googleapis.com',
  eu: 'aiplatform.eu.rep.googleapis.com',
}

/**
 * Google Vertex AI: Claude by `rawPredict`, Gemini by `generateContent`, and models named `<publisher>/<model>` over chat
 * completions. Its credential is the key file of a service account, with `location` added to it where that is not `global`.
 */
export const vertex: ProviderKindDefinition = {
  credential: { ...SERVICE_ACCOUNT, location: { secret: false, required: false } },
  routingMembers: anthropic.routingMembers,
  hosts: /^([a-z0-9-]+-)?aiplatform(\.(us|eu)\.rep)?\.googleapis\.com$/,
  check(parts, baseUrl) {
    checkServiceAccount(parts)
    const host = baseUrl === undefined ? '' : new URL(baseUrl).hostname
    if (vertex.hosts?.test(host) && host !== hostOf(locationOf(parts))) {
      throw unprocessable('credential: `location` is not that of base_url. Give both.')
    }
    if (!LOCATION.test(locationOf(parts))) {
      throw unprocessable('credential: `location` must be one such as us-east5 or global.')
    }
  },
  defaultBaseUrl: (parts) => `https://${hostOf(locationOf(parts))}`,
  connect: connectVertex,
}

const locationOf = ({ location = 'global' }: CredentialParts): string => location
const hostOf = (location: string): string =>
  Object.hasOwn(HOSTS, location) ? (HOSTS[location] as string) : `${location}-aiplatform.googleapis.com`

function connectVertex(
  baseUrl: string,
  parts: CredentialParts,
  { allowedMembers }: ConnectOptions,
): Transport {
  const location = locationOf(parts)
  const place = `${baseUrl}/v1/projects/${encodeURIComponent(parts.project_id ?? '')}/locations/${location}`
  const hasOutputFormat = allowedMembers.includes('output_config')
  const key = [parts.client_email, parts.private_key, parts.token_uri].map((each) => each ?? '')
  return {
    speaks: (operation, upstreamModel) => operation === protocolOf(upstreamModel),
    withheld: (upstreamModel) => (isClaude(upstreamModel) && !hasOutputFormat ? ['json_schema'] : []),
    counter(upstreamModel) {
      const protocol = protocolOf(upstreamModel)
      return (protocol && COUNTERS[protocol]) ?? null
    },
    omitsCallIds: true,
    bodyMembers({ operation, callerHeaders }) {
      if (operation !== 'messages') return null
      const { dropped } = knownBetas(callerHeaders, BETAS)
      const betas = { betas: null, alsoDropped: dropped }
      return hostedMembers({ version: VERSION, takesStream: true, hasOutputFormat, ...betas })
    },
    prepare: (target, body) => ({ url: place + pathOf(target), headers: headersFor(target), body }),
    ...accessTokens(key, serviceAccountExchange(parts)),
    streamType: 'text/event-stream',
    frames: () => new SseReader(),
  }
}

type Protocol = 'messages' | 'generate_content' | 'chat_completions'

/**
 * Models of the OpenAI-compatible endpoint have their publisher in their name. Google's own are not called there: it would
 * read media from Google's storage with the rights of the service account.
 */
function protocolOf(upstreamModel: string): Protocol | null {
  if (upstreamModel.startsWith('google/')) return null
  if (upstreamModel.includes('/')) return 'chat_completions'
  return isClaude(upstreamModel) ? 'messages' : 'generate_content'
}

const COUNTERS: Readonly<Partial<Record<Protocol, CounterForm>>> = {
  messages: 'vertex',
  generate_content: 'vertex_generate_content',
}

/** Methods by protocol and operation: of a whole answer, and of a stream. */
const METHODS = {
  messages: ['rawPredict', 'streamRawPredict'],
  // Without `alt=sse` the stream is a list in JSON.
  generate_content: ['generateContent', 'streamGenerateContent?alt=sse'],
} as const

function pathOf({ operation, upstreamModel, stream }: RequestTarget): string {
  const protocol = protocolOf(upstreamModel)
  if (protocol === null) throw new Error(`the provider does not speak ${operation}`)
  if (protocol === 'chat_completions') return '/endpoints/openapi/chat/completions'
  const models = `/publishers/${protocol === 'messages' ? 'anthropic' : 'google'}/models`
  // The version of a model follows an `@`, which the vendor's own client does not encode.
  const model = encodeURIComponent(upstreamModel).replaceAll('%40', '@')
  if (operation === 'input_tokens') {
    return protocol === 'messages' ? `${models}/count-tokens:rawPredict` : `${models}/${model}:countTokens`
  }
  return `${models}/${model}:${METHODS[protocol][stream ? 1 : 0]}`
}

function headersFor({ stream, callerHeaders }: RequestTarget): Record<string, string> {
  const { betas } = knownBetas(callerHeaders, BETAS)
  return {
    'content-type': 'application/json',
    'user-agent': 'headgate',
    accept: stream ? 'text/event-stream' : 'application/json',
    ...(betas.length > 0 && { 'anthropic-beta': betas.join(',') }),
  }
}
