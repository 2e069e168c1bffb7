import { TEXT } from './text.ts'

/** A surface of the gateway that the playground calls. */
export const SURFACES = ['chat_completions', 'messages', 'responses'] as const
export type Surface = (typeof SURFACES)[number]

/** What an event of a stream adds to what is shown. */
interface Piece {
  text?: string
  thinking?: string
  outputTokens?: number
  inputTokens?: number
  /** A failure inside of a stream that had begun. */
  error?: string
}

interface SurfaceParts {
  path: string
  /** A body to begin with. */
  body: (model: string) => object
  /** Reads an event of a stream, or the whole body of an answer. */
  read: (data: Data) => Piece
  sdk: (baseUrl: string, body: string) => string
}

/** JSON of an upstream: any member may be missing or of another type. */
// biome-ignore lint/suspicious/noExplicitAny: what a provider sends has no type, and is only looked at
type Data = any

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const python = (client: string, call: string, body: string) => {
  const indented = body.split('\n').join('\n    ')
  return `import json\n${client}\nanswer = ${call}(**json.loads('''\n    ${indented}\n'''))`
}

const openai = (url: string) =>
  `from openai import OpenAI\n\nclient = OpenAI(base_url="${url}/v1")  # OPENAI_API_KEY`

export const PARTS: Record<Surface, SurfaceParts> = {
  chat_completions: {
    path: '/v1/chat/completions',
    body: (model) => ({ model, stream: true, messages: [{ role: 'user', content: TEXT.prompt }] }),
    read: readChat,
    sdk: (url, body) => python(openai(url), 'client.chat.completions.create', body),
  },
  messages: {
    path: '/v1/messages',
    body: (model) => ({
      model,
      stream: true,
      max_tokens: 500,
      messages: [{ role: 'user', content: TEXT.prompt }],
    }),
    read: readMessages,
    sdk: (url, body) =>
      python(
        `from anthropic import Anthropic\n\nclient = Anthropic(base_url="${url}")  # ANTHROPIC_AUTH_TOKEN`,
        'client.messages.create',
        body,
      ),
  },
  responses: {
    path: '/v1/responses',
    body: (model) => ({ model, stream: true, input: TEXT.prompt }),
    read: readResponses,
    sdk: (url, body) => python(openai(url), 'client.responses.create', body),
  },
}

function readChat(data: Data): Piece {
  const choice = data?.choices?.[0]
  const message = choice?.delta ?? choice?.message
  return {
    text: textOf(message?.content) + textOf(message?.refusal),
    thinking: textOf(message?.reasoning_content),
    ...usageOf(data?.usage?.prompt_tokens, data?.usage?.completion_tokens),
    ...errorOf(data?.error),
  }
}

function readMessages(data: Data): Piece {
  const usage = data?.usage ?? data?.message?.usage
  const whole = data?.type === 'message' && Array.isArray(data.content) ? data.content : []
  const read = (kind: string) => whole.map((block: Data) => textOf(block?.[kind])).join('')
  return {
    text: textOf(data?.delta?.text) + read('text'),
    thinking: textOf(data?.delta?.thinking) + read('thinking'),
    ...usageOf(usage?.input_tokens, usage?.output_tokens),
    ...(data?.type === 'error' && errorOf(data.error)),
  }
}

function readResponses(data: Data): Piece {
  const response = data?.object === 'response' ? data : data?.response
  const usage = usageOf(response?.usage?.input_tokens, response?.usage?.output_tokens)
  if (data?.object === 'response') {
    const parts = (data.output ?? []).flatMap((item: Data) => item?.content ?? [])
    return { text: parts.map((part: Data) => textOf(part?.text)).join(''), ...usage, ...errorOf(data.error) }
  }
  return {
    ...(data?.type === 'response.output_text.delta' && { text: textOf(data.delta) }),
    ...(data?.type === 'response.reasoning_text.delta' && { thinking: textOf(data.delta) }),
    ...usage,
    ...errorOf(response?.error ?? (data?.type === 'error' ? data : undefined)),
  }
}

const usageOf = (input: unknown, output: unknown): Piece => ({
  ...(typeof input === 'number' && input > 0 && { inputTokens: input }),
  ...(typeof output === 'number' && { outputTokens: output }),
})

const errorOf = (error: Data): Piece =>
  error ? { error: textOf(error.message) || JSON.stringify(error) } : {}
