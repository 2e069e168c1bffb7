import type { MessagesInput } from './prompt-cache.ts'

export interface MessagesUsage extends MessagesInput {
  output: number
  thinking: number
  /** Web searches made by the provider; null in the answer unless set. */
  searches?: number
}

function serverToolUse(searches: number | undefined): string {
  return searches === undefined ? 'null' : `{"web_search_requests":${searches},"web_fetch_requests":0}`
}

/** The JSON text of the full `usage` of a message (also of `message_start`, where output is a placeholder). */
export function messageUsageJson({
  input,
  created5m,
  created1h,
  read,
  output,
  thinking,
  searches,
}: MessagesUsage): string {
  const details = thinking > 0 ? `{"thinking_tokens":${thinking}}` : 'null'
  return (
    `{"input_tokens":${input},"cache_creation_input_tokens":${created5m + created1h},` +
    `"cache_read_input_tokens":${read},"cache_creation":{"ephemeral_5m_input_tokens":${created5m},` +
    `"ephemeral_1h_input_tokens":${created1h}},"output_tokens":${output},"output_tokens_details":${details},` +
    `"server_tool_use":${serverToolUse(searches)},"service_tier":"standard","speed":null,"inference_geo":"not_available"}`
  )
}

/** The JSON text of the cumulative `usage` of `message_delta`, which has fewer members. */
function deltaUsageJson(usage: MessagesUsage): string {
  const { input, created5m, created1h, read, output, thinking, searches } = usage
  const details = thinking > 0 ? `,"output_tokens_details":{"thinking_tokens":${thinking}}` : ''
  const searched = searches === undefined ? '' : `,"server_tool_use":${serverToolUse(searches)}`
  return (
    `{"input_tokens":${input},"cache_creation_input_tokens":${created5m + created1h},` +
    `"cache_read_input_tokens":${read},"output_tokens":${output}${details}${searched}}`
  )
}

/** A frame. The SDK drops frames without an `event:` line, so each frame has its type twice. */
export function messageFrame(type: string, members: string): string {
  return `event: ${type}\ndata: {"type":"${type}"${members === '' ? '' : `,${members}`}}\n\n`
}

export const pingFrame = messageFrame('ping', '')
export const messageStopFrame = messageFrame('message_stop', '')

/** `message_start`: the message without content and stop reason, with the input's usage. */
export function messageStartFrame(id: string, model: string, usage: MessagesInput): string {
  return messageFrame(
    'message_start',
    `"message":{"id":"${id}","type":"message","role":"assistant",` +
      `"model":${JSON.stringify(model)},"content":[],"stop_reason":null,"stop_sequence":null,` +
      `"stop_details":null,"container":null,"usage":${messageUsageJson({ ...usage, output: 1, thinking: 0 })}}`,
  )
}

/** `content_block_start`; `block` is the JSON text of the still empty block. */
export function blockStartFrame(index: number, block: string): string {
  return messageFrame('content_block_start', `"index":${index},"content_block":${block}`)
}

/** `content_block_delta`, for example `blockDeltaFrame(0, 'text_delta', 'text', 'Hello')`. */
export function blockDeltaFrame(index: number, type: string, member: string, value: string): string {
  const delta = `{"type":"${type}","${member}":${JSON.stringify(value)}}`
  return messageFrame('content_block_delta', `"index":${index},"delta":${delta}`)
}

export function blockStopFrame(index: number): string {
  return messageFrame('content_block_stop', `"index":${index}`)
}

/** `message_delta`: why it stopped, and the cumulative usage. `stopDetails` is JSON text. */
export function messageDeltaFrame(
  stopReason: string,
  stopSequence: string | null,
  usage: MessagesUsage,
  stopDetails = 'null',
): string {
  const delta =
    `{"stop_reason":"${stopReason}","stop_sequence":${JSON.stringify(stopSequence)},` +
    `"stop_details":${stopDetails},"container":null}`
  return messageFrame('message_delta', `"delta":${delta},"usage":${deltaUsageJson(usage)}`)
}
