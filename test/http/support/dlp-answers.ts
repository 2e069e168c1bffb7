import { gateway } from '../../harness/gateway.ts'
import { registerAnswers, type ScriptStep } from '../../harness/upstream.ts'
import type { Way } from './dlp.ts'
import { payloadsOf } from './translated-pairs.ts'

type Json = Record<string, unknown>

/** A part of an answer, in the order in which the model says them. */
export type Part =
  | { kind: 'reasoning' | 'text'; text: string }
  /** A call of a tool, with its arguments as JSON. */
  | { kind: 'call'; name: string; json: string }

export const say = (text: string): Part => ({ kind: 'text', text })
export const think = (text: string): Part => ({ kind: 'reasoning', text })
export const callTool = (name: string, input: unknown): Part => ({
  kind: 'call',
  name,
  json: JSON.stringify(input),
})

const chunk = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`
const event = (data: Json & { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'upstream' }
const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }
const stopOf = (parts: readonly Part[]) => parts.some(({ kind }) => kind === 'call')
const bodyOf = (part: Part) => (part.kind === 'call' ? part.json : part.text)

/** How a text is cut: into pieces of these lengths, over and over. */
export function cut(text: string, lengths: readonly number[] = [3, 1, 7, 2]): string[] {
  const pieces: string[] = []
  for (let at = 0, index = 0; at < text.length; index++) {
    const length = lengths[index % lengths.length] ?? 1
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

/** Frames of a provider, up to and with its end; without `ending` up to what comes before. */
export function framesOf(
  upstream: Way['upstream'],
  parts: readonly Part[],
  lengths?: readonly number[],
  ending = true,
): string[] {
  if (upstream === 'messages') return eventsOf(parts, lengths, ending)
  return chunksOf(upstream === 'completions', parts, lengths, ending)
}

function chunksOf(
  legacy: boolean,
  parts: readonly Part[],
  lengths: readonly number[] | undefined,
  ending: boolean,
) {
  const choice = (delta: Json, finish: string | null = null) =>
    chunk({ ...head, choices: [{ index: 0, ...(legacy ? delta : { delta }), finish_reason: finish }] })
  const frames = legacy ? [] : [choice({ role: 'assistant', content: '' })]
  let calls = 0
  for (const part of parts) {
    const index = part.kind === 'call' ? calls++ : 0
    if (part.kind === 'call') {
      const start = {
        index,
        id: `call_${index}`,
        type: 'function',
        function: { name: part.name, arguments: '' },
      }
      frames.push(choice({ tool_calls: [start] }))
    }
    for (const piece of cut(bodyOf(part), lengths)) {
      if (part.kind === 'call')
        frames.push(choice({ tool_calls: [{ index, function: { arguments: piece } }] }))
      else if (part.kind === 'reasoning') frames.push(choice({ reasoning_content: piece }))
      else frames.push(choice(legacy ? { text: piece } : { content: piece }))
    }
  }
  if (!ending) return frames
  const finish = stopOf(parts) ? 'tool_calls' : 'stop'
  return [
    ...frames,
    choice(legacy ? { text: '' } : {}, finish),
    chunk({ ...head, choices: [], usage }),
    'data: [DONE]\n\n',
  ]
}

const DELTAS = {
  text: (text: string) => ({ type: 'text_delta', text }),
  reasoning: (thinking: string) => ({ type: 'thinking_delta', thinking }),
  call: (partial_json: string) => ({ type: 'input_json_delta', partial_json }),
}

function eventsOf(parts: readonly Part[], lengths: readonly number[] | undefined, ending: boolean): string[] {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'upstream', content: [] }
  const started = {
    ...message,
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 1 },
  }
  const frames = [event({ type: 'message_start', message: started })]
  for (const [index, part] of parts.entries()) {
    const delta = (data: Json) => event({ type: 'content_block_delta', index, delta: data })
    frames.push(event({ type: 'content_block_start', index, content_block: startOf(part, index) }))
    frames.push(...cut(bodyOf(part), lengths).map((piece) => delta(DELTAS[part.kind](piece))))
    if (part.kind === 'reasoning') frames.push(delta({ type: 'signature_delta', signature: 'c2ln' }))
    if (ending || index < parts.length - 1) frames.push(event({ type: 'content_block_stop', index }))
  }
  if (!ending) return frames
  const stop_reason = stopOf(parts) ? 'tool_use' : 'end_turn'
  const delta = { stop_reason, stop_sequence: null }
  return [
    ...frames,
    event({ type: 'message_delta', delta, usage: { output_tokens: 5 } }),
    event({ type: 'message_stop' }),
  ]
}

function startOf(part: Part, index: number): Json {
  if (part.kind === 'call') return { type: 'tool_use', id: `toolu_${index}`, name: part.name, input: {} }
  if (part.kind === 'reasoning') return { type: 'thinking', thinking: '', signature: '' }
  return { type: 'text', text: '' }
}

/** The answer as a whole, without a stream. */
export function wholeOf(upstream: Way['upstream'], parts: readonly Part[]): Json {
  const texts = (kind: Part['kind']) => parts.filter((part) => part.kind === kind).map(bodyOf)
  if (upstream === 'messages') {
    const content = parts.map((part, index) => ({
      ...startOf(part, index),
      ...(part.kind === 'text' && { text: part.text }),
      ...(part.kind === 'reasoning' && { thinking: part.text, signature: 'c2ln' }),
      ...(part.kind === 'call' && { input: JSON.parse(part.json) }),
    }))
    const stop = { stop_reason: stopOf(parts) ? 'tool_use' : 'end_turn', stop_sequence: null }
    return {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'upstream',
      content,
      ...stop,
      usage: { input_tokens: 3, output_tokens: 5 },
    }
  }
  const text = texts('text').join('')
  if (upstream === 'completions') {
    return {
      ...head,
      object: 'text_completion',
      choices: [{ index: 0, text, finish_reason: 'stop', logprobs: null }],
      usage,
    }
  }
  const calls = parts.flatMap((part) => (part.kind === 'call' ? [part] : []))
  const tool_calls = calls.map(({ name, json }, index) => ({
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: json },
  }))
  const reasoning = texts('reasoning').join('')
  const message = {
    role: 'assistant',
    content: text,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(tool_calls.length > 0 && { tool_calls }),
  }
  const finish_reason = tool_calls.length > 0 ? 'tool_calls' : 'stop'
  return { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage }
}

/** A caller's answer, assembled as clients do. */
export interface Told {
  text: string
  reasoning: string
  signature: string
  calls: Array<{ name: string; json: string }>
}

/** Puts a stream together. @throws for deltas outside of their block. */
export function toldBy(stream: string): Told {
  const told: Told = { text: '', reasoning: '', signature: '', calls: [] }
  let block: { index: number; call: number } | null = null
  for (const payload of payloadsOf(stream)) {
    if (payload.type === 'content_block_start') {
      const { type, name } = payload.content_block as Record<string, string>
      if (block) throw new Error('a block begins within another')
      if (type === 'tool_use') told.calls.push({ name: name ?? '', json: '' })
      block = { index: Number(payload.index), call: told.calls.length - 1 }
    } else if (payload.type === 'content_block_stop') {
      if (block?.index !== payload.index) throw new Error('another block ends than the one that is open')
      block = null
    } else if (payload.type === 'content_block_delta') {
      if (block?.index !== payload.index) throw new Error('a delta outside of its block')
      tellDelta(told, payload.delta as Record<string, string>, block?.call ?? 0)
    } else for (const choice of (payload.choices ?? []) as Json[]) tellChoice(told, choice)
  }
  return told
}

function tellDelta(told: Told, delta: Record<string, string>, call: number): void {
  told.text += delta.text ?? ''
  told.reasoning += delta.thinking ?? ''
  told.signature += delta.signature ?? ''
  const last = told.calls[call]
  if (last) last.json += delta.partial_json ?? ''
}

function tellChoice(told: Told, choice: Json): void {
  const delta = (choice.delta ?? choice.message ?? {}) as Record<string, string> & { tool_calls?: Json[] }
  told.text += (choice.text as string | undefined) ?? delta.content ?? ''
  told.reasoning += delta.reasoning_content ?? ''
  for (const [position, { index = position, function: called }] of (
    (delta.tool_calls ?? []) as Array<{ index?: number; function: { name?: string; arguments?: string } }>
  ).entries()) {
    told.calls[index] ??= { name: called.name ?? '', json: '' }
    const call = told.calls[index]
    if (call) call.json += called.arguments ?? ''
  }
}

/** Puts a whole answer together. */
export function toldIn(answer: Json): Told {
  const told: Told = { text: '', reasoning: '', signature: '', calls: [] }
  for (const choice of (answer.choices ?? []) as Json[]) tellChoice(told, choice)
  for (const block of (answer.content ?? []) as Array<Record<string, string>>) {
    tellDelta(told, { ...block, signature: block.signature ?? '' }, -1)
    if (block.type === 'tool_use')
      told.calls.push({ name: block.name ?? '', json: JSON.stringify(block.input) })
  }
  return told
}

/** Registers an answer, streamed and whole. @returns the text that selects it. */
export function answerScript(
  upstream: Way['upstream'],
  parts: readonly Part[],
  lengths?: readonly number[],
): Promise<string> {
  const streamed: ScriptStep[] = [{ sse: framesOf(upstream, parts, lengths) }]
  return registerAnswers(gateway(), [{ streamed, whole: [{ json: wholeOf(upstream, parts) }] }])
}

/** Registers a stream whose bytes come in chunks of these lengths. */
export function bytesScript(stream: string, lengths: readonly number[]): Promise<string> {
  const bytes = Buffer.from(stream)
  const steps: ScriptStep[] = [{ status: 200, headers: { 'content-type': 'text/event-stream' } }]
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const length = lengths[index % lengths.length] ?? 1
    steps.push({ chunkBase64: bytes.subarray(at, at + length).toString('base64') })
    at += length
  }
  return registerAnswers(gateway(), [{ steps: [...steps, { end: true }] }])
}
