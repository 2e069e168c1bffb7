import { unprocessable } from '../../../lib/api-error.ts'
import { type AwsKeys, awsSigner, signedHeaders } from '../../../lib/aws-signature.ts'
import { ANTHROPIC_VERSION, anthropic } from '../anthropic/anthropic.ts'
import { hostedMembers, isClaude, knownBetas } from '../anthropic/hosted-claude.ts'
import type { CredentialParts } from '../credential.ts'
import { fixedHeaderTransport } from '../fixed-header-transport.ts'
import { ANTHROPIC_HEADERS } from '../forwarded-headers.ts'
import type {
  ConnectOptions,
  CounterForm,
  HeaderRecord,
  ProviderKindDefinition,
  RequestToAuthorize,
  Transport,
  UpstreamOperation,
} from '../transport.ts'
import { EventStreamReader } from './event-stream.ts'

/** The version that InvokeModel documents for Claude; later ones refuse sampling members. */
const VERSION = 'bedrock-2023-05-31'

/** https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html */
const BETAS: ReadonlySet<string> = new Set([
  'computer-use-2025-01-24',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'dev-full-thinking-2025-05-14',
  'effort-2025-11-24',
  'fine-grained-tool-streaming-2025-05-14',
  'interleaved-thinking-2025-05-14',
  'output-128k-2025-02-19',
  'token-efficient-tools-2025-02-19',
  'tool-examples-2025-10-29',
  'tool-search-tool-2025-10-19',
])

/** Regions of a partition of their own have hosts of their own. */
const DOMAINS: ReadonlyArray<[region: RegExp, domain: string]> = [[/^cn-/, 'amazonaws.com.cn']]
const REGION = /^[a-z]{2}(-[a-z]+)+-\d{1,2}$/

/**
 * Amazon Bedrock: Claude by InvokeModel, all other models by Converse. A base URL that ends in `/anthropic`, of `bedrock-runtime` or `bedrock-mantle`,
 * selects the messages API of the same service instead.
 */
export const bedrock: ProviderKindDefinition = {
  credential: {
    region: { secret: false, required: true },
    api_key: { secret: true, required: true, choice: 'api_key' },
    access_key_id: { secret: false, required: true, choice: 'keys' },
    secret_access_key: { secret: true, required: true, choice: 'keys' },
    session_token: { secret: true, required: false, choice: 'keys' },
  },
  routingMembers: anthropic.routingMembers,
  // Other hosts below these domains can be rented by anyone.
  hosts:
    /(^|\.)bedrock-(runtime|runtime-fips|mantle)\.[a-z0-9-]+\.(amazonaws\.com|amazonaws\.com\.cn|api\.aws|vpce\.amazonaws\.com)$/,
  check({ region = '' }, baseUrl) {
    if (!REGION.test(region)) throw unprocessable('credential: `region` must be one such as us-east-1.')
    const host = baseUrl === undefined ? '' : new URL(baseUrl).hostname
    if (bedrock.hosts?.test(host) && !host.includes(`.${region}.`)) {
      throw unprocessable('credential: `region` is not that of base_url. Give both.')
    }
  },
  defaultBaseUrl({ region = '' }) {
    const domain = DOMAINS.find(([pattern]) => pattern.test(region))?.[1] ?? 'amazonaws.com'
    return `https://bedrock-runtime.${region}.${domain}`
  },
  connect(baseUrl, parts, options) {
    const authorization = authorizationOf(baseUrl, parts)
    return new URL(baseUrl).pathname.endsWith('/anthropic')
      ? messagesApi(baseUrl, authorization)
      : runtime(baseUrl, authorization, options)
  },
}

interface Authorization {
  /** Of every request. */
  headers: HeaderRecord
  authorize: Transport['authorize']
}

function authorizationOf(baseUrl: string, parts: CredentialParts): Authorization {
  if (parts.api_key !== undefined) {
    return { headers: { authorization: `Bearer ${parts.api_key}` }, authorize: null }
  }
  const keys: AwsKeys = {
    accessKeyId: parts.access_key_id ?? '',
    secretAccessKey: parts.secret_access_key ?? '',
    sessionToken: parts.session_token ?? null,
  }
  const service = new URL(baseUrl).hostname.startsWith('bedrock-mantle.') ? 'bedrock-mantle' : 'bedrock'
  const sign = awsSigner(keys, parts.region ?? '', service)
  const authorize = async ({ method, url, bodyHash, now }: RequestToAuthorize) =>
    signedHeaders(sign, keys, { method, url, bodyHash: await bodyHash(), now })
  return { headers: {}, authorize }
}

const messagesApi = (baseUrl: string, { headers, authorize }: Authorization): Transport => ({
  ...fixedHeaderTransport({
    baseUrl,
    paths: { messages: '/v1/messages', count_tokens: '/v1/messages/count_tokens' },
    headers: { ...headers, ...ANTHROPIC_VERSION },
    forwarded: ANTHROPIC_HEADERS,
  }),
  authorize,
})

function runtime(
  baseUrl: string,
  { headers, authorize }: Authorization,
  { allowedMembers }: ConnectOptions,
): Transport {
  const fixed = { ...headers, 'content-type': 'application/json', 'user-agent': 'headgate' }
  const hasOutputFormat = allowedMembers.includes('output_config')
  return {
    speaks: (operation, upstreamModel) =>
      operation === (isClaude(upstreamModel) ? 'messages' : 'converse') && isModelId(upstreamModel),
    withheld: (upstreamModel) => (isClaude(upstreamModel) && !hasOutputFormat ? ['json_schema'] : []),
    counter: counterFor,
    bodyMembers({ operation, callerHeaders }) {
      if (operation !== 'messages') return null
      const { betas, dropped } = knownBetas(callerHeaders, BETAS)
      return hostedMembers({
        version: VERSION,
        takesStream: false,
        hasOutputFormat,
        betas,
        alsoDropped: dropped,
      })
    },
    prepare({ operation, upstreamModel, stream }, body) {
      const model = operation === 'input_tokens' ? withoutProfile(upstreamModel) : upstreamModel
      return {
        url: `${baseUrl}/model/${encodeURIComponent(model)}/${methodOf(operation, stream)}`,
        headers: { ...fixed, accept: stream ? STREAM_TYPE : 'application/json' },
        body,
      }
    },
    authorize,
    streamType: STREAM_TYPE,
    frames: () => new EventStreamReader(),
  }
}

const STREAM_TYPE = 'application/vnd.amazon.eventstream'

/** A name selects no other path. */
const isModelId = (name: string): boolean => !/^\.{0,2}$/.test(name)

/** Profiles of the account count no tokens. */
function counterFor(upstreamModel: string): CounterForm | null {
  if (upstreamModel.startsWith('arn:')) return null
  return isClaude(upstreamModel) ? 'bedrock' : 'converse'
}

/** Methods of a model (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html). */
const METHODS: Readonly<Partial<Record<UpstreamOperation, { whole: string; streamed: string }>>> = {
  messages: { whole: 'invoke', streamed: 'invoke-with-response-stream' },
  converse: { whole: 'converse', streamed: 'converse-stream' },
  input_tokens: { whole: 'count-tokens', streamed: 'count-tokens' },
}

function methodOf(operation: UpstreamOperation, stream: boolean): string {
  const methods = METHODS[operation]
  if (!methods) throw new Error(`the provider does not speak ${operation}`)
  return stream ? methods.streamed : methods.whole
}

/** The id of a model without the prefix of an inference profile, which counts no tokens. */
const withoutProfile = (upstreamModel: string): string =>
  upstreamModel.replace(/^(us-gov|us|eu|apac|jp|au|amer|global)\./, '')
