import Anthropic from '@anthropic-ai/sdk'
import Anthropic0 from 'anthropic-sdk-0'
import OpenAI from 'openai'
import OpenAI6 from 'openai-6'
import type { SeededRandom } from './seeded-random.ts'

/**
 * Answers that the official clients build from a stream: they parse the bytes, check the order of events and assemble
 * the answer.
 */
export type Accumulate = (frames: Uint8Array[], random: SeededRandom) => Promise<Record<string, unknown>>

const options = (frames: Uint8Array[], random: SeededRandom) => ({
  apiKey: 'none',
  maxRetries: 0,
  fetch: async () =>
    new Response(inPieces(frames, random), { headers: { 'content-type': 'text/event-stream' } }),
})
const messages = [{ role: 'user' as const, content: 'Hi' }]

export const CHAT_CLIENTS: Array<[name: string, accumulate: Accumulate]> = [
  [
    'openai 7',
    async (frames, random) => {
      const client = new OpenAI(options(frames, random))
      return plain(await client.chat.completions.stream({ model: 'm', messages }).finalChatCompletion())
    },
  ],
  [
    'openai 6',
    async (frames, random) => {
      const client = new OpenAI6(options(frames, random))
      return plain(await client.chat.completions.stream({ model: 'm', messages }).finalChatCompletion())
    },
  ],
]

export const MESSAGES_CLIENTS: Array<[name: string, accumulate: Accumulate]> = [
  [
    'anthropic 1',
    async (frames, random) => {
      const client = new Anthropic(options(frames, random))
      return plain(await client.messages.stream({ model: 'm', max_tokens: 9, messages }).finalMessage())
    },
  ],
  [
    'anthropic 0',
    async (frames, random) => {
      const client = new Anthropic0(options(frames, random))
      return plain(await client.messages.stream({ model: 'm', max_tokens: 9, messages }).finalMessage())
    },
  ],
]

/** The message as a caller would store it. */
const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>

/** The bytes of the frames, cut anywhere. */
function inPieces(frames: Uint8Array[], random: SeededRandom): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const frame of frames) {
        const cut = random.below(frame.length + 1)
        if (cut > 0) controller.enqueue(frame.slice(0, cut))
        if (cut < frame.length) controller.enqueue(frame.slice(cut))
      }
      controller.close()
    },
  })
}
