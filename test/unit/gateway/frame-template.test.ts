import { describe, expect, it } from 'vitest'
import { Inspection, passAllEngine } from '../../../src/dlp/inspection.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { Protocol, StreamReader } from '../../../src/gateway/protocols/protocol.ts'
import { drained } from '../../../src/lib/slices.ts'
import { encodeFrame, parseFrame } from '../../../src/lib/sse.ts'
import { PROPERTY_RUNS } from '../lib/property-runs.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { readStream } from './stream-reading.ts'

const decoder = new TextDecoder()

interface Options {
  modelId: string | null
  usageRequested: boolean
}

interface Reading {
  reader: StreamReader
  inspection: Inspection
}

function begin(protocol: Protocol, options: Options): Reading {
  const inspection = new Inspection(passAllEngine)
  return { inspection, reader: protocol.streamReader({ inspection, ...options }) }
}

/** What a reader makes of a frame. */
function read({ reader, inspection }: Reading, bytes: Uint8Array) {
  const before = { ...inspection.counts, text: reader.textBytes }
  const read = drained(reader.read(parseFrame(bytes)))
  const verdict = read.kind === 'forward' ? { ...read, before: read.before ?? [] } : read
  const { inspected, uninspected } = inspection.counts
  const counts = { inspected: inspected - before.inspected, uninspected: uninspected - before.uninspected }
  return { verdict, ...counts, text: reader.textBytes - before.text }
}

/** Reads every frame after all the others, and alone by a reader that has seen no other: both have to agree. */
function expectSame(protocol: Protocol, frames: readonly Uint8Array[], options: Options): void {
  const after = begin(protocol, options)
  let hasReasoned = false
  for (const bytes of frames) {
    const alone = begin(protocol, options)
    const frame = decoder.decode(bytes)
    expect({ frame, ...read(after, bytes) }).toEqual({ frame, ...read(alone, bytes) })
    hasReasoned ||= alone.reader.reasoned ?? false
    expect(after.reader.reasoned ?? false).toBe(hasReasoned)
  }
}

const TEXTS = [
  '',
  'a',
  'hello ',
  'é€😀',
  '\\n',
  '\\"',
  '\\u0041',
  'x'.repeat(70),
  '}',
  '"},{"',
  '\u2028',
  'null',
]
const PADDINGS = ['', 'ab', 'abcdef', '\\u0000']
const ENDINGS = ['', ',"usage":null', ',"usage":{"prompt_tokens":1,"completion_tokens":2}', ',"usage":{}']
const DELTAS = [
  (text: string) => `"delta":{"content":"${text}"}`,
  (text: string) => `"delta":{"role":"assistant","content":"${text}","name":"some text"}`,
  (text: string) => `"delta":{"reasoning_content":"${text}"}`,
  (text: string) => `"delta":{"content":null,"refusal":"${text}"}`,
  (text: string) => `"delta":{"tool_calls":[{"index":0,"function":{"arguments":"${text}"}}]}`,
  (text: string) => `"delta":{"content":"a","content":"${text}"},"logprobs":{"content":"${text}"}`,
  (text: string) => `"delta":{"image_url":"${text}"}`,
  (text: string) => `"text":"${text}"`,
]

type Pick = <Value>(values: readonly Value[]) => Value

function chatFrame(pick: Pick): Uint8Array {
  const finish = pick(['null', 'null', 'null', 'null', '"stop"'])
  const choice = `{"index":${pick([0, 0, 0, 1])},${pick(DELTAS)(pick(TEXTS))},"finish_reason":${finish}}`
  const choices = pick([choice, choice, choice, `${choice},${choice}`])
  const padding = pick(['', '', `,"obfuscation":"${pick(PADDINGS)}"`])
  const error = pick(['', '', '', '', '', '', '', '', ',"error":{"message":"no"}'])
  const payload = `{"id":"c","model":"gpt","choices":[${choices}]${pick(ENDINGS)}${padding}${error}}`
  return encodeFrame(pick([null, null, null, null, 'error']), payload)
}

function messagesFrame(pick: Pick): Uint8Array {
  const text = pick(TEXTS)
  const delta = pick([
    `{"type":"text_delta","text":"${text}"}`,
    `{"type":"thinking_delta","thinking":"${text}"}`,
    `{"type":"input_json_delta","partial_json":"${text}"}`,
    `{"type":"signature_delta","signature":"${text}"}`,
    `{"type":"citations_delta","citation":{"cited_text":"${text}","source":{"type":"text","data":"${text}"}}}`,
  ])
  const type = pick(['content_block_delta', 'content_block_delta', 'content_block_delta', 'message_delta'])
  const payload = `{"type":"${type}","index":${pick([0, 1])},"model":"m","delta":${delta}}`
  return encodeFrame(pick([type, type, type, 'ping']), payload)
}

describe('frames that differ in their texts alone', () => {
  it.each([
    ['chat completions', chatCompletions, chatFrame],
    ['messages', messages, messagesFrame],
  ] as const)('are read as by a scan of each: %s', (_name, protocol, frameOf) => {
    for (let run = 0; run < PROPERTY_RUNS; run++) {
      const random = new SeededRandom(run + 1)
      const pick: Pick = (values) => random.pick(values)
      const options = { modelId: pick([null, null, 'alias']), usageRequested: pick([true, false]) }
      // Few kinds, so that most frames are like the one before.
      const kinds = Array.from({ length: 3 }, () => frameOf(pick))
      const frames = Array.from({ length: 30 }, () => pick([pick(kinds), frameOf(pick)]))
      expectSame(protocol, frames, options)
    }
  })

  it('are refused when they are not JSON', () => {
    const frame = (text: string) =>
      `data: {"choices":[{"index":0,"delta":{"content":"${text}"},"finish_reason":null}],"usage":null}\n\n`
    const broken = [...['a\tb', 'a\\q', 'a\\', 'a" "b'].map(frame), frame('a').replace('null}\n', 'null}}\n')]
    for (const last of broken) {
      const { verdicts } = readStream(chatCompletions, frame('one') + frame('two') + last)
      expect(verdicts.map(({ kind }) => kind)).toEqual(['forward', 'forward', 'failure'])
    }
  })
})
