import { GoogleGenAI } from '@google/genai'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { markedSignature } from '../../../../../src/gateway/translation/marked-signature.ts'
import type { ConvertedRequest } from '../../../../../src/gateway/translation/requests/output-format.ts'
import { TO_GENERATE_CONTENT } from '../../../../../src/gateway/translation/requests/to-generate-content.ts'
import type { TargetModel } from '../../../../../src/gateway/translation/target-model.ts'

export const ORIGIN = 'generate_content:gemini-3-pro-preview@prv_1'

export const gemini = (
  upstreamModel = 'gemini-3-pro-preview',
  more: Partial<TargetModel> = {},
): TargetModel => ({
  upstreamModel,
  maxOutputTokens: 10_000,
  capabilities: ['reasoning', 'json_object', 'json_schema', 'vision'],
  origin: ORIGIN,
  ...more,
})

/** A signature as callers of chat completions and messages have it. */
export const marked = (signature: string, origin = ORIGIN): string => markedSignature(signature, origin)

const HELLO = [{ role: 'user', content: 'Hello' }]

export const chat = (members: Json, model = gemini()): ConvertedRequest =>
  TO_GENERATE_CONTENT.chat_completions({ model: 'm', messages: HELLO, ...members }, model, null)
export const messages = (members: Json, model = gemini()): ConvertedRequest =>
  TO_GENERATE_CONTENT.messages({ model: 'm', max_tokens: 100, messages: HELLO, ...members }, model, null)
export const responses = (members: Json, model = gemini()): ConvertedRequest =>
  TO_GENERATE_CONTENT.responses({ model: 'm', stream: true, input: 'Hello', ...members }, model, null)
export const completion = (members: Json, model = gemini()): ConvertedRequest =>
  TO_GENERATE_CONTENT.completions({ model: 'm', prompt: 'Hello', ...members }, model, null)

export const configOf = ({ body }: ConvertedRequest): unknown => body.generationConfig
export const contentsOf = ({ body }: ConvertedRequest): unknown => body.contents

/** A request of the official client, as it is sent. */
export interface SentByClient {
  path: string
  headers: Record<string, string>
  body: Json
}

/** What the official client sends for a call. @param call of `generateContent`. */
export async function sentByClient(
  call: Parameters<GoogleGenAI['models']['generateContent']>[0],
): Promise<SentByClient> {
  const sent: SentByClient[] = []
  const original = globalThis.fetch
  // The client takes no `fetch` of its own.
  globalThis.fetch = (async (input: RequestInfo | URL, init?: RequestInit) => {
    const url = new URL(String(input instanceof Request ? input.url : input))
    const body = JSON.parse(String(init?.body)) as Json
    sent.push({
      path: url.pathname + url.search,
      headers: Object.fromEntries(new Headers(init?.headers)),
      body,
    })
    return Response.json({ candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }] })
  }) as typeof fetch
  try {
    await new GoogleGenAI({ apiKey: 'AIzaDUMMY' }).models.generateContent(call)
  } finally {
    globalThis.fetch = original
  }
  const [first] = sent
  if (!first) throw new Error('the client sent nothing')
  return first
}
