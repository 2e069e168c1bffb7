import { MODEL_ROUTES, type ModelRoute } from '../../matrices/routes.ts'

type Json = Record<string, unknown>

/** A caller's protocol and a model whose provider speaks another one. */
export interface TranslatedPair {
  name: string
  /** The caller's. */
  route: ModelRoute
  model: string
  provider: 'scripted-openai' | 'scripted-anthropic'
  upstream: UpstreamWords
  /** A valid request of the caller with this text of the user. */
  request(text: string, more?: Json): Json
}

/** An answer of a model's provider, in its own protocol. */
export interface UpstreamWords {
  protocol: 'chat' | 'messages'
  /** Frames before the first text. */
  opening: readonly string[]
  text(text: string): string
  /** Frames from the last text to the end, with usage of 3 tokens in and 5 out. */
  ending: readonly string[]
  /** The answer without usage. */
  endingUnmetered: readonly string[]
  error(message: string): string
  keepAlive: string
  /** A whole answer: 3 tokens in, 5 out. */
  whole(text: string): Json
}

const chunk = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`
const event = (data: Json & { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'upstream' }
const choice = (delta: Json, finish: string | null = null) =>
  chunk({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] })
const chatUsage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }
const DONE = 'data: [DONE]\n\n'

const CHAT: UpstreamWords = {
  protocol: 'chat',
  opening: [choice({ role: 'assistant', content: '' })],
  text: (text) => choice({ content: text }),
  ending: [choice({}, 'stop'), chunk({ ...head, choices: [], usage: chatUsage }), DONE],
  endingUnmetered: [choice({}, 'stop'), DONE],
  error: (message) => chunk({ error: { message, type: 'server_error' } }),
  keepAlive: ': keep-alive\n\n',
  whole: (text) => ({
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: chatUsage,
  }),
}

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'upstream',
  stop_reason: null,
  stop_sequence: null,
}
const stopped = { stop_reason: 'end_turn', stop_sequence: null }
const blockStop = event({ type: 'content_block_stop', index: 0 })
const messageStop = event({ type: 'message_stop' })

const MESSAGES: UpstreamWords = {
  protocol: 'messages',
  opening: [
    event({
      type: 'message_start',
      message: { ...message, content: [], usage: { input_tokens: 3, output_tokens: 1 } },
    }),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  ],
  text: (text) => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
  ending: [
    blockStop,
    event({ type: 'message_delta', delta: stopped, usage: { output_tokens: 5 } }),
    messageStop,
  ],
  endingUnmetered: [blockStop, event({ type: 'message_delta', delta: stopped }), messageStop],
  error: (text) => event({ type: 'error', error: { type: 'overloaded_error', message: text } }),
  keepAlive: event({ type: 'ping' }),
  whole: (text) => ({
    ...message,
    ...stopped,
    content: [{ type: 'text', text }],
    usage: { input_tokens: 3, output_tokens: 5 },
  }),
}

function pair(routeName: ModelRoute['name'], model: string, upstream: UpstreamWords): TranslatedPair {
  const route = MODEL_ROUTES.find(({ name }) => name === routeName) as ModelRoute
  return {
    name: `${routeName} on a ${upstream.protocol} model`,
    route,
    model,
    provider: upstream === CHAT ? 'scripted-openai' : 'scripted-anthropic',
    upstream,
    request: (text, more) => route.request(text, { model, ...more }),
  }
}

export const CHAT_ON_MESSAGES = pair('chat completions', 'scripted-messages', MESSAGES)
export const MESSAGES_ON_CHAT = pair('messages', 'scripted-chat', CHAT)
/** The two directions. */
export const PAIRS: readonly TranslatedPair[] = [CHAT_ON_MESSAGES, MESSAGES_ON_CHAT]
/** Each protocol on a model of the same protocol. */
export const NATIVE_PAIRS: readonly TranslatedPair[] = [
  pair('chat completions', 'scripted-chat', CHAT),
  pair('messages', 'scripted-messages', MESSAGES),
]
/** Legacy completions, where the model does not have them itself. */
export const COMPLETION_PAIRS: readonly TranslatedPair[] = [
  pair('completions', 'scripted-messages', MESSAGES),
  pair('completions', 'scripted-chat-large', CHAT),
]
export const ALL_PAIRS: readonly TranslatedPair[] = [...PAIRS, ...COMPLETION_PAIRS]
export const named = (pairs: readonly TranslatedPair[]) => pairs.map((each) => [each.name, each] as const)

/** How a failure after the first event is told to the caller (interface: Events). */
export function failureFrames({ surface }: ModelRoute, text: string): string {
  if (surface === 'messages') return event({ type: 'error', error: { type: 'api_error', message: text } })
  const error = { message: text, type: 'server_error', code: 'stream_error' }
  return `event: error\n${chunk({ error })}${DONE}`
}

/** The heartbeat on a silent stream. */
export const heartbeatOf = ({ surface }: ModelRoute): string =>
  surface === 'messages' ? event({ type: 'ping' }) : ': heartbeat\n\n'

export const endOf = ({ surface }: ModelRoute): string => (surface === 'messages' ? messageStop : DONE)

/** The payloads of a stream, in order, comments and `[DONE]` left out. */
export function payloadsOf(stream: string): Json[] {
  return stream
    .split('\n\n')
    .flatMap((frame) => /^data: (\{.*\})$/m.exec(frame)?.[1] ?? [])
    .map((text) => JSON.parse(text) as Json)
}

/** The generated text of a caller's stream. */
export function streamedText(stream: string): string {
  return payloadsOf(stream)
    .map((payload) => {
      const [first] = (payload.choices ?? []) as Array<{ text?: string; delta?: { content?: string } }>
      const delta = payload.delta as { text?: string } | undefined
      return first?.text ?? first?.delta?.content ?? delta?.text ?? ''
    })
    .join('')
}

/** The generated text of a caller's whole answer. */
export function wholeText(answer: Json): string {
  const [first] = (answer.choices ?? []) as Array<{ text?: string; message?: { content: string | null } }>
  if (first) return first.text ?? first.message?.content ?? ''
  return ((answer.content ?? []) as Array<{ text?: string }>).map(({ text }) => text ?? '').join('')
}
