import { unprocessable } from '../../../lib/api-error.ts'
import { SseReader } from '../../../lib/sse.ts'
import { accessTokens } from '../access-tokens.ts'
import { anthropic } from '../anthropic/anthropic.ts'
import { hostedMembers, knownBetas } from '../anthropic/hosted-claude.ts'
import type { CredentialParts } from '../credential.ts'
import type { ConnectOptions, ProviderKindDefinition, RequestTarget, Transport } from '../transport.ts'
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
 * Google Vertex AI: Claude by `rawPredict`, and models named `<publisher>/<model>` over chat completions. Its credential
 * is the key file of a service account, with `location` added to it where that is not `global`.
 */
export const vertex: ProviderKindDefinition = {
  credential: { ...SERVICE_ACCOUNT, location: { secret: false, required: false } },
  routingMembers: anthropic.routingMembers,
  hosts: /(^|\.)googleapis\.com$/,
  check(parts) {
    checkServiceAccount(parts)
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
    speaks: (operation, upstreamModel) =>
      operation === (isPublished(upstreamModel) ? 'chat_completions' : 'messages'),
    withheld: () => (hasOutputFormat ? [] : ['json_schema']),
    counter: (upstreamModel) => (isPublished(upstreamModel) ? null : 'vertex'),
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

/** Models of the OpenAI-compatible endpoint have their publisher in their name. */
const isPublished = (upstreamModel: string): boolean => upstreamModel.includes('/')

function pathOf({ operation, upstreamModel, stream }: RequestTarget): string {
  if (operation === 'chat_completions') return '/endpoints/openapi/chat/completions'
  const models = '/publishers/anthropic/models'
  if (operation === 'input_tokens') return `${models}/count-tokens:rawPredict`
  if (operation !== 'messages') throw new Error(`the provider does not speak ${operation}`)
  // The version of a model follows an `@`, which the vendor's own client does not encode.
  const model = encodeURIComponent(upstreamModel).replaceAll('%40', '@')
  return `${models}/${model}:${stream ? 'streamRawPredict' : 'rawPredict'}`
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
