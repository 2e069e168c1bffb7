import OpenAI from 'openai'
import OpenAI6 from 'openai-6'

/** Result of an official client for the text of a stream. */
export type Accumulate = (text: string) => Promise<Record<string, unknown>>

const options = (text: string) => ({
  apiKey: 'none',
  maxRetries: 0,
  fetch: async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } }),
})

/** The stream helpers of the official clients: they put the response together from its events, and check their order. */
export const RESPONSE_CLIENTS: Array<[name: string, accumulate: Accumulate]> = [
  [
    'openai 7',
    async (text) =>
      plain(await new OpenAI(options(text)).responses.stream({ model: 'm', input: 'Hi' }).finalResponse()),
  ],
  [
    'openai 6',
    async (text) =>
      plain(await new OpenAI6(options(text)).responses.stream({ model: 'm', input: 'Hi' }).finalResponse()),
  ],
]

/** Members that the helpers add for structured outputs. */
const ADDED = ['parsed', 'parsed_arguments', 'output_parsed']

const plain = (value: unknown): Record<string, unknown> =>
  JSON.parse(JSON.stringify(value, (name, member) => (ADDED.includes(name) ? undefined : member)))
