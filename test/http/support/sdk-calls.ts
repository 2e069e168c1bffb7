import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { gateway } from '../../harness/gateway.ts'
import type { Dialect } from '../../harness/routed-model.ts'
import {
  anthropicClients,
  CHAT_MODEL,
  MESSAGES_MODEL,
  messageRequest,
  newestAnthropic,
  newestOpenAi,
  openAiClients,
  textOf,
  userMessage,
} from '../../harness/sdk-clients.ts'

/** Options that both SDKs take. */
export interface SdkOptions {
  apiKey?: string | null
  /** Sends the key as a bearer token (Anthropic SDK only). */
  authToken?: string
  /** The gateway, without the `/v1` that the OpenAI SDK needs. */
  baseURL?: string
  fetch?: typeof globalThis.fetch
  maxRetries?: number
  timeout?: number
}

/** A text that arrives in pieces, and the request id of its response. */
export interface StreamedText {
  requestId: string | null | undefined
  pieces: AsyncIterable<string>
}

/** An official SDK that calls models of one protocol: the same calls for all of them. */
export interface SdkCalls {
  /** For titles: the SDK, its version and the protocol of the model. */
  name: string
  sdk: 'openai' | 'anthropic'
  dialect: Dialect
  /** Whether this is the newest major version of its SDK. */
  newest: boolean
  /** The class of the SDK, which has its error classes as members. */
  Client: Pick<typeof OpenAI, (typeof ERROR_CLASSES)[number]>
  /** Asks for a whole answer, whose text it returns. */
  ask(options: SdkOptions, text: string, more?: { signal?: AbortSignal; body?: object }): Promise<string>
  /** Asks for a stream: by its iterator with the OpenAI SDK, by its stream helper with the Anthropic SDK. */
  stream(options: SdkOptions, text: string, signal?: AbortSignal): Promise<StreamedText>
}

export const ERROR_CLASSES = [
  'APIError',
  'APIConnectionTimeoutError',
  'APIUserAbortError',
  'AuthenticationError',
  'BadRequestError',
  'InternalServerError',
  'NotFoundError',
  'PermissionDeniedError',
  'RateLimitError',
] as const

export const MODEL_OF: Record<Dialect, string> = { chat: CHAT_MODEL, messages: MESSAGES_MODEL }

function openAiCalls(version: string, Client: typeof OpenAI, dialect: Dialect): SdkCalls {
  const connect = (options: SdkOptions) =>
    new Client({ maxRetries: 0, ...options, baseURL: `${options.baseURL ?? gateway().baseUrl}/v1` } as object)
  const request = (text: string) => ({ model: MODEL_OF[dialect], messages: userMessage(text) })
  return {
    name: `${version} on a ${dialect} model`,
    sdk: 'openai',
    dialect,
    newest: Client === newestOpenAi,
    Client,
    async ask(options, text, { signal, body } = {}) {
      const asked = { ...request(text), ...body }
      const answer = await connect(options).chat.completions.create(asked, { signal })
      return answer.choices[0]?.message.content ?? ''
    },
    async stream(options, text, signal) {
      const asked = { ...request(text), stream: true as const }
      const call = connect(options).chat.completions.create(asked, { signal })
      const { data, request_id: requestId } = await call.withResponse()
      const pieces = async function* () {
        for await (const { choices } of data) yield choices[0]?.delta.content ?? ''
      }
      return { requestId, pieces: pieces() }
    },
  }
}

function anthropicCalls(version: string, Client: typeof Anthropic, dialect: Dialect): SdkCalls {
  const connect = (options: SdkOptions) =>
    new Client({ baseURL: gateway().baseUrl, maxRetries: 0, ...options } as object)
  const request = (text: string) => ({ ...messageRequest(text), model: MODEL_OF[dialect] })
  return {
    name: `${version} on a ${dialect} model`,
    sdk: 'anthropic',
    dialect,
    newest: Client === newestAnthropic,
    Client: Client as unknown as SdkCalls['Client'],
    async ask(options, text, { signal, body } = {}) {
      return textOf(await connect(options).messages.create({ ...request(text), ...body }, { signal }))
    },
    async stream(options, text, signal) {
      const stream = connect(options).messages.stream(request(text), { signal })
      const { request_id: requestId } = await stream.withResponse()
      const pieces = async function* () {
        for await (const event of stream) {
          if (event.type === 'content_block_delta' && event.delta.type === 'text_delta')
            yield event.delta.text
        }
      }
      return { requestId, pieces: pieces() }
    },
  }
}

/** Every SDK, in both of its major versions, on models of both protocols. */
export const sdkCalls: SdkCalls[] = (['chat', 'messages'] as const).flatMap((dialect) => [
  ...openAiClients.map(([version, Client]) => openAiCalls(version, Client, dialect)),
  ...anthropicClients.map(([version, Client]) => anthropicCalls(version, Client, dialect)),
])

/** Each SDK once, for what depends neither on its version nor on the model. */
export const nativeSdkCalls: SdkCalls[] = sdkCalls.filter(
  ({ newest, sdk, dialect }) => newest && (sdk === 'openai') === (dialect === 'chat'),
)
