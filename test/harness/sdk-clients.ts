import Anthropic from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic-sdk-0'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import { gateway } from './gateway.ts'

// The majors have the same calls, but their overloads do not unite into one callable type.
export const openAiClients: [string, typeof OpenAI][] = [
  ['openai 7.55', OpenAI],
  ['openai 6.49', OpenAI6 as unknown as typeof OpenAI],
]
export const anthropicClients: [string, typeof Anthropic][] = [
  ['@anthropic-ai/sdk 1.11', Anthropic],
  ['@anthropic-ai/sdk 0.137', Anthropic0 as unknown as typeof Anthropic],
]

/** Enough for what does not depend on the version of a client. */
export const newestOpenAi = OpenAI
export const newestAnthropic = Anthropic

export const CHAT_MODEL = 'scripted-chat'
export const MESSAGES_MODEL = 'scripted-messages'
/** Complete answers of the upstream's built-in scripts. */
export const SCRIPTED_TEXT = 'This is the scripted answer, with an é and a 🦉.'

export const openAiUrl = () => `${gateway().baseUrl}/v1`

export function userMessage(content: string): OpenAI.ChatCompletionMessageParam[] {
  return [{ role: 'user', content }]
}

export function messageRequest(
  content: Anthropic.MessageParam['content'],
): Anthropic.MessageCreateParamsNonStreaming {
  return { model: MESSAGES_MODEL, max_tokens: 2000, messages: [{ role: 'user', content }] }
}

export function textOf(message: Pick<Anthropic.Message, 'content'>): string {
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

export async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}

/** The error of a call that must fail. @throws if the call succeeds */
export async function failureOf(call: PromiseLike<unknown>): Promise<Record<string, unknown>> {
  const outcome = await Promise.resolve(call).then(
    () => null,
    (error: unknown) => error,
  )
  if (outcome === null) throw new Error('the call did not fail')
  return outcome as Record<string, unknown>
}

/** An HTTP request of a client. */
export interface ClientAttempt {
  /** Milliseconds since the epoch, when it was sent and when its headers came. */
  sentAt: number
  answeredAt: number
  status: number
  requestId: string | null
}

/** A `fetch` for an SDK, and the attempts it made: SDKs do not tell how often they tried. */
export function watchedFetch(): { fetch: typeof globalThis.fetch; attempts: ClientAttempt[] } {
  const attempts: ClientAttempt[] = []
  const watched: typeof globalThis.fetch = async (input, init) => {
    const sentAt = Date.now()
    const response = await fetch(input, init)
    const { status, headers } = response
    attempts.push({ sentAt, answeredAt: Date.now(), status, requestId: headers.get('x-request-id') })
    return response
  }
  return { fetch: watched, attempts }
}
