import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import type { Wire } from './features.ts'

/** Payloads of the stream that a plain server sends in place of a whole answer. */
export function streamOf(wire: Wire, answer: Json): Array<Json | string> {
  return wire === 'messages' ? messageEvents(answer) : [...chunks(answer), '[DONE]']
}

/** The text of a stream. Events of the messages protocol are named by their type. */
export function streamText(wire: Wire, payloads: ReadonlyArray<Json | string>): string {
  return payloads
    .map((payload) => {
      if (typeof payload === 'string') return `data: ${payload}\n\n`
      const event = wire === 'messages' ? `event: ${payload.type}\n` : ''
      return `${event}data: ${JSON.stringify(payload)}\n\n`
    })
    .join('')
}

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter((half) => half !== '')
}

function chunks({ choices, usage, ...answer }: Json): Json[] {
  const object = answer.object === 'chat.completion' ? 'chat.completion.chunk' : answer.object
  const head = { ...answer, object }
  const parts = (choices as Json[]).flatMap((choice) =>
    choice.message === undefined ? completionParts(choice) : chatParts(choice),
  )
  const converted = parts.map((choice) => ({ ...head, choices: [choice] }))
  return usage === undefined ? converted : [...converted, { ...head, choices: [], usage }]
}

function completionParts({ text, finish_reason, logprobs = null, ...choice }: Json): Json[] {
  const pieces = halves(String(text)).map((half) => ({
    ...choice,
    text: half,
    logprobs,
    finish_reason: null,
  }))
  return [...pieces, { ...choice, text: '', logprobs: null, finish_reason }]
}

function chatParts({ message, finish_reason, logprobs = null, ...choice }: Json): Json[] {
  const { role, tool_calls, ...members } = message as Json
  const part = (delta: Json, more: Json = {}) => ({
    ...choice,
    delta,
    logprobs: null,
    finish_reason: null,
    ...more,
  })
  const said = Object.entries(members).flatMap(([name, value]) =>
    typeof value === 'string'
      ? halves(value).map((half) => part({ [name]: half }))
      : [part({ [name]: value })],
  )
  const calls = ((tool_calls as Json[] | undefined) ?? []).flatMap((call, index) => callParts(call, index))
  const fragments = calls.map((call) => part({ tool_calls: [call] }))
  const proven = logprobs === null ? [] : [part({}, { logprobs })]
  return [part({ role }), ...said, ...fragments, ...proven, part({}, { finish_reason })]
}

function callParts({ function: made, ...call }: Json, index: number): Json[] {
  const { arguments: json, ...named } = made as Json
  const begin = { index, ...call, function: { ...named, arguments: '' } }
  return [begin, ...halves(String(json)).map((half) => ({ index, function: { arguments: half } }))]
}

function messageEvents({
  content,
  stop_reason,
  stop_sequence,
  stop_details,
  usage,
  ...answer
}: Json): Json[] {
  const { output_tokens, ...input } = usage as Json
  const start = {
    ...answer,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...input, output_tokens: 1 },
  }
  const delta = { stop_reason, stop_sequence, ...(stop_details ? { stop_details } : {}) }
  return [
    { type: 'message_start', message: start },
    ...(content as Json[]).flatMap(blockEvents),
    { type: 'message_delta', delta, usage: { output_tokens } },
    { type: 'message_stop' },
  ]
}

function blockEvents(block: Json, index: number): Json[] {
  const begin = (content_block: Json) => ({ type: 'content_block_start', index, content_block })
  const piece = (type: string, more: Json) => ({
    type: 'content_block_delta',
    index,
    delta: { type, ...more },
  })
  const stop = { type: 'content_block_stop', index }
  if (block.type === 'text') {
    const { citations = [], ...rest } = block
    const cited = (citations as Json[]).map((citation) => piece('citations_delta', { citation }))
    const texts = halves(String(block.text)).map((text) => piece('text_delta', { text }))
    return [begin({ ...rest, text: '' }), ...cited, ...texts, stop]
  }
  if (block.type === 'thinking') {
    const thoughts = halves(String(block.thinking)).map((thinking) => piece('thinking_delta', { thinking }))
    const { signature } = block
    return [
      begin({ ...block, thinking: '', signature: '' }),
      ...thoughts,
      piece('signature_delta', { signature }),
      stop,
    ]
  }
  if (block.type === 'tool_use' || block.type === 'server_tool_use') {
    const json = JSON.stringify(block.input)
    const pieces =
      json === '{}' ? [] : halves(json).map((partial_json) => piece('input_json_delta', { partial_json }))
    return [begin({ ...block, input: {} }), ...pieces, stop]
  }
  return [begin(block), stop]
}
