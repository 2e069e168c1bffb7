import { type BodyMembers, changeMembers } from '../protocols/body-members.ts'
import { type Json, numberOf, objectOf, parseJson } from '../protocols/json.ts'
import type { CounterForm } from '../providers/transport.ts'
import { TO_CONVERSE } from '../translation/requests/to-converse.ts'
import { TO_GENERATE_CONTENT } from '../translation/requests/to-generate-content.ts'
import type { TargetModel } from '../translation/target-model.ts'
import { responsesCountRequest } from './responses-count-request.ts'

/** A provider's token counter: its request for one of messages, and the count in its answer. */
interface Counter {
  /**
   * @param messages with the members alone that the provider takes. @param upstreamModel its id at the provider.
   * @throws ApiError invalid_request as the call itself.
   */
  request(messages: Json, upstreamModel: string): Json
  count(answer: Json): unknown
}

const COUNTERS: Readonly<Record<CounterForm, Counter>> = {
  // https://platform.openai.com/docs/api-reference/responses/input-tokens
  responses: { request: responsesCountRequest, count: ({ input_tokens: tokens }) => tokens },
  // https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/count-tokens
  vertex: {
    request: ({ max_tokens: _, stream: __, ...messages }, model) => ({ ...messages, model }),
    count: ({ input_tokens: tokens }) => tokens,
  },
  // https://docs.aws.amazon.com/bedrock/latest/userguide/count-tokens.html: the body as InvokeModel takes it.
  bedrock: {
    request(messages) {
      const budget = numberOf(objectOf(messages.thinking).budget_tokens) ?? 0
      const body = { ...messages, max_tokens: budget + 1 }
      return { input: { invokeModel: { body: Buffer.from(JSON.stringify(body)).toString('base64') } } }
    },
    count: ({ inputTokens }) => inputTokens,
  },
  // https://ai.google.dev/api/tokens: instructions and tools are counted as a part of the whole request only.
  generate_content: {
    request: (messages, upstreamModel) => ({
      generateContentRequest: {
        model: `models/${upstreamModel.replace(/^models\//, '')}`,
        ...withoutGeneration(messages, upstreamModel),
      },
    }),
    count: ({ totalTokens }) => totalTokens,
  },
  // https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/count-tokens
  vertex_generate_content: {
    request(messages, upstreamModel) {
      const { toolConfig: _, ...body } = withoutGeneration(messages, upstreamModel)
      return body
    },
    count: ({ totalTokens }) => totalTokens,
  },
  // https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseTokensRequest.html
  converse: {
    request(messages, upstreamModel) {
      const { body } = TO_CONVERSE.messages(messages, countedModel(upstreamModel), null)
      const { inferenceConfig: _, outputConfig: __, ...counted } = body
      return { input: { converse: counted } }
    },
    count: ({ inputTokens }) => inputTokens,
  },
}

/** A request of Gemini's protocol without the settings of its answer. */
function withoutGeneration(messages: Json, upstreamModel: string): Json {
  const { generationConfig: _, ...body } = TO_GENERATE_CONTENT.messages(
    messages,
    countedModel(upstreamModel),
    null,
  ).body
  return body
}

/** The model of a request that is only counted. */
const countedModel = (upstreamModel: string): TargetModel => ({
  upstreamModel,
  maxOutputTokens: Number.MAX_SAFE_INTEGER,
  capabilities: [],
})

/**
 * The request of a counter as bytes.
 * @param members that the provider takes of a messages request; null for those of the protocol.
 * @throws ApiError invalid_request as the call itself.
 */
export function counterRequest(
  form: CounterForm,
  messages: Uint8Array,
  upstreamModel: string,
  members: BodyMembers | null,
): Uint8Array {
  const given = objectOf(parseJson(new TextDecoder().decode(messages)))
  const request = members ? changeMembers(given, members).body : given
  return new TextEncoder().encode(JSON.stringify(COUNTERS[form].request(request, upstreamModel)))
}

/** The count in a counter's answer; null for any other answer. @throws SyntaxError if it is not JSON. */
export function countIn(form: CounterForm, answer: Uint8Array): number | null {
  const tokens = numberOf(COUNTERS[form].count(objectOf(JSON.parse(new TextDecoder().decode(answer)))))
  return tokens !== undefined && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : null
}
