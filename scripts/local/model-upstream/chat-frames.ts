import { nextIdentifier, nowInSeconds } from './identifiers.ts'

export const streamEnd = 'data: [DONE]\n\n'

export interface ChatUsage {
  prompt: number
  cached: number
  /** Prompt tokens written to the cache; left out when not set. */
  cacheWrite?: number
  completion: number
  reasoning: number
}

/**
 * The JSON text of OpenAI's `usage`: cached tokens are part of the prompt's, reasoning tokens part of the
 * completion's, and all detail counters are present even when zero.
 */
export function chatUsageJson({ prompt, cached, cacheWrite, completion, reasoning }: ChatUsage): string {
  const written = cacheWrite === undefined ? '' : `"cache_write_tokens":${cacheWrite},`
  return (
    `{"prompt_tokens":${prompt},"completion_tokens":${completion},"total_tokens":${prompt + completion},` +
    `"prompt_tokens_details":{"cached_tokens":${cached},${written}"audio_tokens":0},` +
    `"completion_tokens_details":{"reasoning_tokens":${reasoning},"audio_tokens":0,` +
    `"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`
  )
}

export interface ChatFrames {
  id: string
  /** A chunk with one choice; `delta` and `logprobs` are JSON text. */
  choice(index: number, delta: string, finishReason?: string | null, logprobs?: string): string
  text(index: number, text: string, logprobs?: string): string
  finish(index: number, reason: string): string
  usage(usage: ChatUsage): string
}

/** The first delta of every choice: it alone carries the role. */
export const roleDelta = '{"role":"assistant","content":"","refusal":null}'

/**
 * Writes the frames of one streamed chat completion. Every chunk repeats the same id and time; with `includeUsage`
 * every chunk but the usage one carries `usage: null`.
 * Shape: https://platform.openai.com/docs/api-reference/chat-streaming
 */
export function createChatFrames(model: string, includeUsage: boolean): ChatFrames {
  const id = nextIdentifier('chatcmpl-')
  const head =
    `data: {"id":"${id}","object":"chat.completion.chunk","created":${nowInSeconds()},` +
    `"model":${JSON.stringify(model)},"service_tier":"default","system_fingerprint":"fp_local","choices":[`
  const tail = includeUsage ? '],"usage":null}\n\n' : ']}\n\n'
  const choice: ChatFrames['choice'] = (index, delta, finishReason = null, logprobs = 'null') =>
    `${head}{"index":${index},"delta":${delta},"logprobs":${logprobs},"finish_reason":${JSON.stringify(finishReason)}}${tail}`
  return {
    id,
    choice,
    text: (index, text, logprobs) => choice(index, `{"content":${JSON.stringify(text)}}`, null, logprobs),
    finish: (index, reason) => choice(index, '{}', reason),
    usage: (usage) => `${head}],"usage":${chatUsageJson(usage)}}\n\n`,
  }
}
