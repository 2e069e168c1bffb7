import { builtInScripts } from '../../../scripts/local/model-upstream/built-in-scripts.ts'
import { ScriptRequest } from '../../../scripts/local/model-upstream/script-request.ts'
import type { UpstreamProtocol } from '../../../src/gateway/protocols/protocol.ts'
import { DIALECTS, encoder, type Json } from './translated-call-harness.ts'
import { CHAT_STREAMS } from './translation/fixtures/chat-streams.ts'
import { MESSAGES_STREAMS } from './translation/fixtures/messages-streams.ts'

/** A stream of an upstream as it sends it, and the same answer whole where there is one. */
export interface UpstreamFixture {
  name: string
  bytes: Uint8Array
  whole: Json | null
}

/** Too large, or without an end of their own. */
const LEFT_OUT = new Set(['flood', 'large-answer', 'large-frame', 'long-stream', 'call-tool', 'pause-turn'])

/** Every stream of the scripted upstream and of the translation's own tests. */
export function upstreamFixtures(upstream: UpstreamProtocol): UpstreamFixture[] {
  const scripted = [...builtInScripts.keys()].flatMap((name) => scriptFixture(name, upstream) ?? [])
  return [...scripted, ...recorded(upstream)]
}

function recorded(upstream: UpstreamProtocol): UpstreamFixture[] {
  const streams: Record<string, Json[]> = upstream === 'messages' ? MESSAGES_STREAMS : CHAT_STREAMS
  return Object.entries(streams).map(([name, payloads]) => {
    const frames = payloads.map((data) => {
      const event = upstream === 'messages' ? `event: ${data.type}\n` : ''
      return `${event}data: ${JSON.stringify(data)}\n\n`
    })
    const end = upstream === 'messages' ? '' : 'data: [DONE]\n\n'
    return { name: `fixture ${name}`, bytes: encoder.encode(frames.join('') + end), whole: null }
  })
}

function scriptFixture(name: string, upstream: UpstreamProtocol): UpstreamFixture | null {
  if (LEFT_OUT.has(name)) return null
  const streamed = playedBy(name, upstream, true)
  if (streamed === null) return null
  const whole = playedBy(name, upstream, false)?.toString() ?? ''
  return { name: `script ${name}`, bytes: new Uint8Array(streamed), whole: parsed(whole) }
}

function parsed(text: string): Json | null {
  try {
    return JSON.parse(text) as Json
  } catch {
    return null
  }
}

/** The bytes that a script answers with; null when it waits, breaks off or tells an error of HTTP. */
function playedBy(name: string, upstream: UpstreamProtocol, stream: boolean): Buffer | null {
  const tools = ['get_weather', 'get_time'].map((tool) =>
    upstream === 'messages'
      ? { name: tool, input_schema: { type: 'object' } }
      : { type: 'function', function: { name: tool, parameters: { type: 'object' } } },
  )
  const body = { model: 'upstream-model', stream, stream_options: { include_usage: true }, tools }
  const request = new ScriptRequest(Buffer.from(JSON.stringify(body)), '', DIALECTS[upstream], '')
  const parts: Buffer[] = []
  for (const step of builtInScripts.get(name)?.(request) ?? []) {
    if ('sse' in step) parts.push(Buffer.from(step.sse.join('')))
    else if ('chunk' in step) parts.push(Buffer.from(step.chunk))
    else if ('chunkBase64' in step) parts.push(Buffer.from(step.chunkBase64, 'base64'))
    else if ('bytes' in step) parts.push(Buffer.from(step.bytes))
    else if ('status' in step && step.status === 200 && 'headers' in step) {
      parts.push(Buffer.from(('body' in step && step.body) || ''))
    } else if (!('end' in step)) return null
  }
  return Buffer.concat(parts)
}
