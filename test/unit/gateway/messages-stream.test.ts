import { describe, expect, it } from 'vitest'
import { Inspection } from '../../../src/dlp/inspection.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { JsonSyntaxError } from '../../../src/lib/json-visitor.ts'
import { drained } from '../../../src/lib/slices.ts'
import { events, notingEngine, readStream } from './stream-reading.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const start = (usage: unknown, model = 'claude') => ({
  type: 'message_start',
  message: { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], usage },
})
const textDelta = (text: string) => ({
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'text_delta', text },
})
const finish = (usage?: unknown) => ({
  type: 'message_delta',
  delta: { stop_reason: 'end_turn' },
  ...(usage !== undefined && { usage }),
})
const STOP = { type: 'message_stop' }

const usageOf = (stream: string) => readStream(messages, stream).reader.usage()

describe('a messages stream', () => {
  it('passes byte for byte: thinking, signatures, tools, citations, pings and unknown events', () => {
    const unusual = 'event: ping\r\ndata: { "type" : "ping" , "n":1.0 }\r\n\r\n'
    const stream = `${events(
      start({ input_tokens: 5, output_tokens: 1 }),
      { type: 'ping' },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'thinking', thinking: '', signature: '' },
      },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'c2ln' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'redacted_thinking', data: 'ZW5j' } },
      {
        type: 'content_block_start',
        index: 2,
        content_block: { type: 'tool_use', id: 't', name: 'f', input: {} },
      },
      { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '' } },
      { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"a":' } },
      {
        type: 'content_block_delta',
        index: 3,
        delta: { type: 'citations_delta', citation: { cited_text: 'x' } },
      },
      { type: 'content_block_delta', index: 3, delta: { type: 'delta_of_tomorrow', x: 1 } },
      { type: 'event_of_tomorrow', payload: [1, 2] },
      finish({ output_tokens: 9 }),
      STOP,
    )}${unusual}`
    const { text, verdicts, reader } = readStream(messages, stream)
    expect(text).toBe(stream)
    const started = verdicts.map((verdict) => verdict.kind === 'forward' && verdict.started)
    expect(started.filter((value) => !value)).toHaveLength(2)
    expect(started[1]).toBe(false)
    expect(reader.ended).toBe(true)
    expect(drained(reader.closingFrames())).toEqual([])
  })

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
    'passes an event with the name %s',
    (name) => {
      const stream = `event: ${name}\ndata: {"type":"${name}"}\n\n`
      expect(readStream(messages, stream).text).toBe(stream)
    },
  )

  it('is read by the type in its payload where the event line is missing or empty', () => {
    for (const line of ['', 'event:\n', 'event: \n']) {
      const stream = `${line}data: {"type":"message_stop"}\n\n`
      const { text, reader } = readStream(messages, stream)
      expect(text).toBe(stream)
      expect(reader.ended).toBe(true)
    }
  })

  it('drops comments, and is cut off without a stop reason', () => {
    const cut = `: c\n\n${events(start({}), textDelta('a'))}`
    const { text, reader } = readStream(messages, cut)
    expect(text).toBe(cut.slice(5))
    expect(reader.ended).toBe(false)
    expect(drained(reader.closingFrames())).toBeNull()
    expect(drained(readStream(messages, '').reader.closingFrames())).toBeNull()
  })

  it('is given the end that its upstream left out', () => {
    const stopped = readStream(messages, events(start({}), textDelta('a'), finish({ output_tokens: 3 })))
    const owed = drained(stopped.reader.closingFrames())?.map(({ bytes }) => new TextDecoder().decode(bytes))
    expect(owed).toEqual(['event: message_stop\ndata: {"type":"message_stop"}\n\n'])
  })
})

describe('usage on a messages stream', () => {
  const START = {
    input_tokens: 10,
    cache_creation_input_tokens: 100,
    cache_read_input_tokens: 50,
    cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 60 },
    output_tokens: 1,
  }
  const KNOWN = {
    input: 10,
    cacheRead: 50,
    cacheWrite5Minutes: 40,
    cacheWrite1Hour: 60,
    output: 1,
    reasoning: 0,
  }

  it('begins with message_start and is not final', () => {
    expect(usageOf(events(start(START)))).toEqual({ usage: KNOWN, final: false })
  })

  it('is overwritten, never added, and final with message_delta', () => {
    const stream = events(start(START), finish({ output_tokens: 7 }), finish({ output_tokens: 9 }))
    expect(usageOf(stream)).toEqual({ usage: { ...KNOWN, output: 9 }, final: true })
  })

  it('keeps the classes of cache writes when a later event sums them up', () => {
    const later = {
      input_tokens: 10,
      cache_creation_input_tokens: 100,
      cache_read_input_tokens: 50,
      output_tokens: 8,
    }
    expect(usageOf(events(start(START), finish(later)))?.usage).toEqual({ ...KNOWN, output: 8 })
    const more = { ...later, cache_creation_input_tokens: 130 }
    expect(usageOf(events(start(START), finish(more)))?.usage).toMatchObject({
      cacheWrite5Minutes: 70,
      cacheWrite1Hour: 60,
    })
  })

  it('takes members that are null or absent for unchanged', () => {
    const later = {
      input_tokens: null,
      cache_creation_input_tokens: null,
      cache_read_input_tokens: null,
      cache_creation: null,
      output_tokens: 3,
      output_tokens_details: { thinking_tokens: 2 },
    }
    expect(usageOf(events(start(START), finish(later)))?.usage).toEqual({ ...KNOWN, output: 3, reasoning: 2 })
  })

  it('corrects input that was not known at the start', () => {
    const stream = events(
      start({ input_tokens: 0, output_tokens: 0 }),
      finish({ input_tokens: 12, output_tokens: 3 }),
    )
    expect(usageOf(stream)?.usage).toMatchObject({ input: 12, output: 3 })
  })

  it('is unknown while nothing was counted', () => {
    expect(usageOf(events(start(null)))).toBeNull()
    expect(usageOf(events(start({})))).toBeNull()
    expect(usageOf(events(start(undefined), textDelta('a')))).toBeNull()
    expect(usageOf(events({ type: 'content_block_delta', usage: { output_tokens: 5 } }))).toBeNull()
  })

  it('is not final when message_delta has none', () => {
    for (const usage of [undefined, null, {}]) {
      expect(usageOf(events(start(START), finish(usage)))).toEqual({ usage: KNOWN, final: false })
    }
  })
})

describe('errors in a messages stream', () => {
  it('are the upstream’s own frame', () => {
    const body = {
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded' },
      request_id: 'r',
    }
    const frame = events(body)
    const { verdicts, text } = readStream(messages, frame)
    expect(verdicts).toEqual([{ kind: 'failure', message: 'Overloaded', forward: [], body }])
    expect(text).toBe('')
  })

  it.each([{}, { error: null }, { error: { message: 7 } }, { error: { message: '' } }, { error: 'x' }])(
    'without a message: %j',
    (members) => {
      const body = { type: 'error', ...members }
      expect(readStream(messages, events(body)).verdicts).toEqual([
        { kind: 'failure', message: 'The upstream reported an error.', forward: [], body },
      ])
    },
  )

  it('include a payload that is not JSON', () => {
    const { verdicts } = readStream(messages, 'event: content_block_delta\ndata: {"a"\n\n')
    expect(verdicts).toEqual([
      { kind: 'failure', message: 'The upstream sent an event that is not JSON.', forward: null },
    ])
  })

  it('are written in the dialect of the interface', () => {
    const frames = messages.dialect.failure('why')
    expect(frames.map((frame) => decoder.decode(frame))).toEqual([
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"why"}}\n\n',
    ])
  })
})

describe('state of a messages stream', () => {
  it('the model id is ours in message_start, and nowhere it is not the model', () => {
    const stream = events(start({ input_tokens: 1 }, 'theirs'), {
      type: 'message_delta',
      'message.model': 'theirs',
      delta: { model: 'theirs' },
    })
    const { text } = readStream(messages, stream, { modelId: 'ours' })
    expect(text).toBe(stream.replace('"model":"theirs"', '"model":"ours"'))
    expect(readStream(messages, stream).text).toBe(stream)
  })

  it('texts go to the engine as pieces and can be replaced, at the right place behind an event line', () => {
    const engine = notingEngine(/4111/)
    const stream = events(
      start({ input_tokens: 1 }, 'theirs'),
      textDelta('card 4111 é'),
      { type: 'content_block_delta', delta: { type: 'input_json_delta', partial_json: '{"card":4111' } },
      { type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'about 4111' } },
      { type: 'content_block_delta', delta: { type: 'signature_delta', signature: '4111' } },
    )
    const { text } = readStream(messages, stream, { engine, modelId: 'ours' })
    expect(engine.seen).toEqual([
      'delta.text=card 4111 é…',
      'delta.partial_json={\\"card\\":4111…',
      'delta.thinking=about 4111…',
    ])
    expect(text).toBe(
      stream
        .replace('theirs', 'ours')
        .replace('card 4111 é', '***')
        .replace('{\\"card\\":4111', '***')
        .replace('about 4111', '***'),
    )
  })

  it('generated text is counted in bytes, and nothing else', () => {
    const { reader } = readStream(
      messages,
      events(
        start({}),
        textDelta('é'),
        { type: 'content_block_delta', delta: { partial_json: '{}' } },
        finish({}),
      ),
    )
    expect(reader.textBytes).toBe(2 + 2)
  })

  it('the heartbeat is a ping', () => {
    expect(decoder.decode(messages.dialect.heartbeat)).toBe('event: ping\ndata: {"type":"ping"}\n\n')
  })
})

describe('a whole message', () => {
  const read = (body: string, modelId: string | null = null) => {
    const bytes = encoder.encode(body)
    const engine = notingEngine(/secret/)
    const inspection = new Inspection(engine)
    const reading = drained(messages.readAnswer(bytes, { inspection, modelId, usageRequested: false }))
    const edited = applyEdits(bytes, reading.edits)
    const { inspected, uninspected } = inspection.counts
    expect(inspected + uninspected).toBe(bytes.length)
    expect(edited.released + edited.withheld).toBe(bytes.length)
    return { text: decoder.decode(joinBytes(edited.pieces)), usage: reading.usage, seen: engine.seen }
  }

  it('keeps every byte but the model id and what the engine replaces', () => {
    const body = ` {"model" : "theirs","content":[{"type":"text","text":"hi"},{"type":"tool_use","input":{"id":"secret"}}],"usage":{"input_tokens":3,"output_tokens":1} }`
    const { text, usage, seen } = read(body, 'ours')
    expect(text).toBe(body.replace('theirs', 'ours').replace('secret', '***'))
    expect(usage).toMatchObject({ input: 3, output: 1 })
    // The name of a tool's value is text of the tool as well.
    expect(seen).toEqual(['content.0.text=hi', 'content.1.input.id=secret', 'content.1.input.id=id'])
  })

  it.each(['{}', '{"usage":null}', '{"usage":{}}', '{"usage":7}', '{"input_tokens":7}', '[]'])(
    'without usage: %s',
    (body) => {
      expect(read(body).usage).toBeNull()
    },
  )

  it('that is not JSON is an error', () => {
    expect(() => read('{"a":1')).toThrow(JsonSyntaxError)
  })
})
