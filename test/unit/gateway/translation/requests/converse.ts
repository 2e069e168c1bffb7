import {
  BedrockRuntimeClient,
  ConverseCommand,
  type ConverseCommandInput,
} from '@aws-sdk/client-bedrock-runtime'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import type { CallerProtocol } from '../../../../../src/gateway/protocols/protocol.ts'
import { markedSignature } from '../../../../../src/gateway/translation/marked-signature.ts'
import type { ConvertedRequest } from '../../../../../src/gateway/translation/requests/output-format.ts'
import { TO_CONVERSE } from '../../../../../src/gateway/translation/requests/to-converse.ts'
import type { TargetModel } from '../../../../../src/gateway/translation/target-model.ts'

export const CONVERSE_ORIGIN = 'converse:us.amazon.nova-pro-v1:0@prv_1'

export const bedrockModel = (
  upstreamModel = 'us.amazon.nova-pro-v1:0',
  more: Partial<TargetModel> = {},
): TargetModel => ({
  upstreamModel,
  maxOutputTokens: 10_000,
  capabilities: ['reasoning', 'json_schema', 'vision'],
  origin: CONVERSE_ORIGIN,
  ...more,
})

/** A signature as callers of messages have it. */
export const marked = (signature: string, origin = CONVERSE_ORIGIN): string =>
  markedSignature(signature, origin)

const HELLO: Record<CallerProtocol, Json> = {
  chat_completions: { messages: [{ role: 'user', content: 'Hello' }] },
  messages: { max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] },
  responses: { stream: true, input: 'Hello' },
  completions: { prompt: 'Hello' },
}

/** A converter of the requests of a caller. */
const from =
  (caller: CallerProtocol) =>
  (members: Json, model = bedrockModel()): ConvertedRequest =>
    TO_CONVERSE[caller]({ model: 'm', ...HELLO[caller], ...members }, model, null)

export const ofChat = from('chat_completions')
export const ofMessages = from('messages')
export const ofResponses = from('responses')
export const ofCompletion = from('completions')

/** What the official client sends for a call. */
export async function sentByClient(input: ConverseCommandInput): Promise<{ path: string; body: Json }> {
  const sent: Array<{ path: string; body: Json }> = []
  const client = new BedrockRuntimeClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
    maxAttempts: 1,
    requestHandler: {
      handle(request: { path: string; body: Uint8Array }) {
        sent.push({ path: request.path, body: JSON.parse(new TextDecoder().decode(request.body)) as Json })
        throw new Error('nothing is sent')
      },
    } as never,
  })
  await client.send(new ConverseCommand(input)).catch(() => {})
  const [first] = sent
  if (!first) throw new Error('the client sent nothing')
  return first
}
