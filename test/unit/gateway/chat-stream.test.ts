import { describe, expect, it } from 'vitest'
import { Inspection, passAllEngine } from '../../../src/dlp/inspection.ts'
import { chatCompletions, completions } from '../../../src/gateway/protocols/chat-completions.ts'
import { applyEdits, joinBytes } from '../../../src/lib/byte-edits.ts'
import { JsonSyntaxError } from '../../../src/lib/json-visitor.ts'
import { drained } from '../../../src/lib/slices.ts'
import { chunks, notingEngine, readStream } from './stream-reading.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const delta = (content: string, index = 0) => ({ index, delta: { content }, finish_reason: null })
const stop = (index = 0, finish_reason = 'stop') => ({ index, delta: {}, finish_reason })
const chunk = (members: object) => ({ id: 'c', object: 'chat.completion.chunk', model: 'gpt', ...members })
const USAGE = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 }
const DONE = '[DONE]'

const closing = (text: string) =>
  drained(readStream(chatCompletions, text).reader.closingFrames())?.map(({ bytes }) => decoder.decode(bytes))

describe('a chat stream', () => {
  it('passes byte for byte, with unknown members and odd spelling', () => {
    const stream =
      'data: {"id":"c", "choices":[{"index":0,"delta":{"content":"\\u0041 é"},"logprobs":null}],"new":[1.0,1e2]}\r\n\r\n' +
      'id: 7\ndata:{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\\"a\\":"}}]}}]}\n\n' +
      'data: {"choices":[{"delta":{"refusal":"no"},"finish_reason":"stop"}],"obfuscation":"xx"}\n\n' +
      'data: [DONE]\n\n'
    const { text, verdicts, reader } = readStream(chatCompletions, stream)
    expect(text).toBe(stream)
    expect(verdicts.map((verdict) => verdict.kind === 'forward' && verdict.started)).toEqual([
      true,
      true,
      true,
      false,
    ])
    expect(reader.ended).toBe(true)
    expect(drained(reader.closingFrames())).toEqual([])
  })

  it('drops comments and empty frames of the upstream', () => {
    const stream = `: keep-alive\n\n\n\nevent: x\n\ndata:\n\n${chunks(chunk({ choices: [delta('a')] }))}: again\n\n`
    const { text, verdicts, reader } = readStream(chatCompletions, stream)
    expect(text).toBe(chunks(chunk({ choices: [delta('a')] })))
    expect(verdicts.map(({ kind }) => kind)).toEqual(['drop', 'drop', 'drop', 'drop', 'forward', 'drop'])
    expect(reader.ended).toBe(false)
  })

  it('ends with the exact bytes that official clients compare with', () => {
    for (const done of [
      'data: [DONE]\n\n',
      'data:[DONE]\n\n',
      'data: [DONE] \n\n',
      'data:  [DONE]\r\n\r\n',
    ]) {
      const { text, reader } = readStream(chatCompletions, done)
      expect(text.trimEnd()).toMatch(/^data: ?\[DONE\]$/)
      expect(text).toMatch(/\]\r?\n\r?\n$/)
      expect(reader.ended).toBe(true)
    }
  })

  it('does not take a text for an end', () => {
    const { reader } = readStream(chatCompletions, chunks(chunk({ choices: [delta(DONE)] })))
    expect(reader.ended).toBe(false)
  })
})

describe('usage on a chat stream', () => {
  const usageChunk = chunk({ choices: [], usage: USAGE })

  it('that was not requested is read, and its chunk is dropped', () => {
    const stream = chunks(chunk({ choices: [delta('a')], usage: null }), usageChunk, DONE)
    const { text, reader, verdicts } = readStream(chatCompletions, stream, { usageRequested: false })
    expect(text).toBe(chunks(chunk({ choices: [delta('a')] }), DONE))
    expect(verdicts[1]).toEqual({ kind: 'drop' })
    expect(reader.usage()).toMatchObject({ final: true, usage: { input: 10, output: 4 } })
  })

  it('is read where Groq has it', () => {
    const stream = chunks(
      chunk({ choices: [delta('a')] }),
      chunk({ choices: [stop()], x_groq: { usage: USAGE } }),
    )
    const { reader, text } = readStream(chatCompletions, stream)
    expect(text).toBe(stream)
    expect(reader.usage()).toMatchObject({ final: true, usage: { input: 10, output: 4 } })
  })

  it('that was requested passes unchanged', () => {
    const stream = chunks(chunk({ choices: [delta('a')] }), usageChunk, DONE)
    expect(readStream(chatCompletions, stream, { usageRequested: true }).text).toBe(stream)
  })

  it.each([
    ['last', '{"choices":[],"id":"c","usage":null}', '{"choices":[],"id":"c"}'],
    ['last, with space', '{ "choices":[] , "usage" : null }', '{ "choices":[] }'],
    ['first', '{"usage":null,"choices":[]}', '{"choices":[]}'],
    ['in the middle', '{"id":"c","usage": null , "choices":[]}', '{"id":"c","choices":[]}'],
    ['alone', '{"usage":null}', '{}'],
    ['escaped', '{"\\u0075sage":null,"id":"c"}', '{"id":"c"}'],
  ])('that is null goes from its chunk, asked or not: %s', (_name, from, to) => {
    for (const usageRequested of [true, false]) {
      expect(readStream(chatCompletions, chunks(from), { usageRequested }).text).toBe(chunks(to))
    }
  })

  it('on a chunk with choices is cut out unless requested, and the chunk passes', () => {
    const last = { choices: [stop()], usage: USAGE, id: 'c' }
    const { text, reader } = readStream(chatCompletions, chunks(last, DONE))
    expect(text).toBe(chunks({ choices: [stop()], id: 'c' }, DONE))
    expect(reader.usage()?.usage.output).toBe(4)
    expect(readStream(chatCompletions, chunks(last), { usageRequested: true }).text).toBe(chunks(last))
  })

  it('is the last one reported, and nested members do not count', () => {
    const { reader } = readStream(
      chatCompletions,
      chunks(
        { choices: [delta('a')], usage: { prompt_tokens: 10, completion_tokens: 1 } },
        { choices: [{ usage: { completion_tokens: 99 } }], x: { usage: { completion_tokens: 99 } } },
        { choices: [], usage: { prompt_tokens: 10, completion_tokens: 2 } },
        { choices: [], usage: 'soon' },
      ),
    )
    expect(reader.usage()?.usage).toMatchObject({ input: 10, output: 2 })
  })

  it('is unknown until it is reported', () => {
    expect(
      readStream(chatCompletions, chunks(chunk({ choices: [delta('a')], usage: null }))).reader.usage(),
    ).toBeNull()
  })

  it('with text in it goes without a conflict with that text', () => {
    const engine = notingEngine(/secret/)
    const stream = chunks({
      choices: [delta('secret')],
      usage: { prompt_tokens: 1, note: 'secret' },
      id: 'c',
    })
    expect(readStream(chatCompletions, stream, { engine }).text).toBe(
      chunks({ choices: [delta('***')], id: 'c' }),
    )
  })
})

describe('the end of a chat stream', () => {
  it('may lack [DONE] once each choice has its finish reason', () => {
    expect(closing(chunks({ choices: [stop()] }))).toEqual(['data: [DONE]\n\n'])
    expect(
      closing(chunks({ choices: [delta('a')] }, { choices: [stop()] }, { choices: [], usage: USAGE })),
    ).toEqual(['data: [DONE]\n\n'])
    expect(
      closing(
        chunks({ choices: [delta('a', 0), delta('b', 1)] }, { choices: [stop(1)] }, { choices: [stop(0)] }),
      ),
    ).toEqual(['data: [DONE]\n\n'])
    expect(closing(chunks({ choices: [{ delta: {}, finish_reason: 'tool_calls' }] }))).toEqual([
      'data: [DONE]\n\n',
    ])
  })

  it.each([
    ['nothing came', ''],
    ['no choice is over', chunks({ choices: [delta('a')] })],
    ['the finish reason is null', chunks({ choices: [stop(0)].map((c) => ({ ...c, finish_reason: null })) })],
    ['the finish reason is empty', chunks({ choices: [stop(0, '')] })],
    [
      'one of two choices goes on',
      chunks({ choices: [delta('a', 0)] }, { choices: [delta('b', 1)] }, { choices: [stop(0)] }),
    ],
    [
      'the same choice is over twice',
      chunks({ choices: [delta('b', 1)] }, { choices: [stop(0)] }, { choices: [stop(0)] }),
    ],
    [
      'the finish reason stands elsewhere',
      chunks({ choices: [{ delta: { finish_reason: 'stop' } }], finish_reason: 'stop' }),
    ],
    ['only usage came', chunks({ choices: [], usage: USAGE })],
  ])('is a cut when %s', (_name, stream) => {
    expect(closing(stream)).toBeUndefined()
  })
})

describe('errors in a chat stream', () => {
  it('are known without a member of that name, as vLLM sends them', () => {
    const error = { object: 'error', message: 'No parser.', type: 'BadRequestError', code: 400 }
    const { verdicts } = readStream(chatCompletions, chunks(error))
    expect(verdicts).toEqual([{ kind: 'failure', forward: null, message: 'No parser.', body: { error } }])
    const context = { inspection: new Inspection(passAllEngine), modelId: null, usageRequested: false }
    const body = encoder.encode(JSON.stringify(error))
    expect(drained(chatCompletions.readAnswer(body, context)).isError).toBe(true)
    const stream = chunks({ object: 'error', choices: [delta('x')] })
    expect(readStream(chatCompletions, stream).text).toBe(stream)
  })

  it.each([
    ['an object', { message: 'overloaded', code: 503 }, 'overloaded'],
    ['a string', 'boom', 'boom'],
    ['without a message', { code: 1 }, 'The upstream reported an error.'],
    ['with an empty message', { message: '' }, 'The upstream reported an error.'],
    ['with a message that is none', { message: {} }, 'The upstream reported an error.'],
    ['a number', 500, 'The upstream reported an error.'],
  ])('are sent in our envelope, with the upstream’s message: %s', (_name, error, message) => {
    const { verdicts } = readStream(chatCompletions, chunks({ error, choices: [delta('x')] }))
    const body = expect.objectContaining({ error })
    expect(verdicts).toEqual([{ kind: 'failure', message, forward: null, body }])
  })

  it('are recognized by the name of their event, whatever they hold', () => {
    const read = (data: string) => readStream(chatCompletions, `event: error\ndata: ${data}\n\n`).verdicts
    const body = { error: expect.anything() }
    const failure = (message: string) => [{ kind: 'failure', message, forward: null, body }]
    expect(read('{"error":{"message":"told"}}')).toEqual(failure('told'))
    expect(read('{"message":"flat"}')).toEqual(failure('flat'))
    expect(read('"text"')).toEqual(failure('text'))
    expect(read('{}')).toEqual(failure('The upstream reported an error.'))
  })

  it('are not seen in a member that is null, nor deeper than the top', () => {
    const stream = chunks({ error: null, choices: [{ error: 'x', delta: { content: 'error' } }] })
    expect(readStream(chatCompletions, stream).text).toBe(stream)
  })

  it.each(['{', '{"a":1,}', 'oops', '[DONE'])('include a payload that is not JSON: %s', (data) => {
    const { verdicts } = readStream(chatCompletions, chunks(data))
    expect(verdicts).toEqual([
      { kind: 'failure', message: 'The upstream sent an event that is not JSON.', forward: null },
    ])
  })

  it('count the bytes of a payload that breaks off behind a text', () => {
    const { inspection } = readStream(chatCompletions, chunks('{"choices":[{"delta":{"content":"12345"}}],'))
    expect(inspection.counts.inspected).toBe(5)
  })

  it('are written in the dialect of the interface', () => {
    const frames = chatCompletions.dialect.failure('why "so"')
    expect(frames.map((frame) => decoder.decode(frame))).toEqual([
      'event: error\ndata: {"error":{"message":"why \\"so\\"","type":"server_error","code":"stream_error"}}\n\n',
      'data: [DONE]\n\n',
    ])
  })

  it('throw what the engine throws', () => {
    const engine = {
      ...notingEngine(),
      inspect() {
        throw new TypeError('engine')
      },
    }
    expect(() => readStream(chatCompletions, chunks({ choices: [delta('a')] }), { engine })).toThrow('engine')
  })
})

describe('state of a chat stream', () => {
  it('the model id is ours where the upstream’s differs, in each chunk and only there', () => {
    const stream = chunks(
      { model: 'theirs', choices: [{ delta: { content: 'model' }, model: 'theirs' }] },
      '{"choices":[], "model" : "" }',
      '{"choices":[],"\\u006dodel":null}',
    )
    const { text } = readStream(chatCompletions, stream, { modelId: 'ours/é"' })
    expect(text).toBe(
      chunks(
        { model: 'ours/é"', choices: [{ delta: { content: 'model' }, model: 'theirs' }] },
        '{"choices":[], "model" : "ours/é\\"" }',
        '{"choices":[],"\\u006dodel":"ours/é\\""}',
      ),
    )
    expect(readStream(chatCompletions, stream, { modelId: null }).text).toBe(stream)
  })

  it('texts go to the engine as pieces, in source form, and can be replaced', () => {
    const engine = notingEngine(/4111/)
    const stream = chunks(
      { choices: [{ index: 0, delta: { role: 'assistant', content: 'my card 4111é' } }], model: 'theirs' },
      {
        choices: [
          { index: 1, delta: { tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{"a":4111' } }] } },
        ],
      },
      { choices: [{ delta: { refusal: 'no', reasoning_content: 'hm' } }] },
    )
    const { text } = readStream(chatCompletions, stream, { engine, modelId: 'ours' })
    expect(engine.seen).toEqual([
      'choices.0.delta.content=my card 4111é…',
      'choices.0.delta.tool_calls.0.function.name=f',
      'choices.0.delta.tool_calls.0.function.arguments={\\"a\\":4111…',
      'choices.0.delta.refusal=no…',
      'choices.0.delta.reasoning_content=hm…',
    ])
    expect(text).toBe(
      chunks(
        { choices: [{ index: 0, delta: { role: 'assistant', content: '***' } }], model: 'ours' },
        {
          choices: [
            { index: 1, delta: { tool_calls: [{ id: 'c', function: { name: 'f', arguments: '***' } }] } },
          ],
        },
        { choices: [{ delta: { refusal: 'no', reasoning_content: 'hm' } }] },
      ),
    )
  })

  it('generated text is counted in bytes, tool arguments among it', () => {
    const { reader } = readStream(
      chatCompletions,
      chunks(
        { choices: [delta('é漢')], note: 'not generated' },
        { choices: [{ delta: { tool_calls: [{ function: { arguments: '{}' } }] } }] },
      ),
    )
    expect(reader.textBytes).toBe(5 + 2)
  })

  it('completions read alike', () => {
    const stream = chunks({ choices: [{ index: 0, text: 'abc', finish_reason: 'length' }], model: 'theirs' })
    const { text, reader } = readStream(completions, stream, { modelId: 'ours' })
    expect(text).toBe(stream.replace('theirs', 'ours'))
    expect(reader.textBytes).toBe(3)
    expect(drained(reader.closingFrames())).toHaveLength(1)
  })

  it('the heartbeat is a comment', () => {
    expect(decoder.decode(chatCompletions.dialect.heartbeat)).toBe(': heartbeat\n\n')
  })
})

describe('a whole chat answer', () => {
  const read = (body: string, modelId: string | null = null, engine = notingEngine()) => {
    const bytes = encoder.encode(body)
    const inspection = new Inspection(engine)
    const reading = drained(chatCompletions.readAnswer(bytes, { inspection, modelId, usageRequested: false }))
    const edited = applyEdits(bytes, reading.edits)
    inspection.sink(edited.released, edited.withheld)
    const { inspected, uninspected, released, withheld } = inspection.counts
    expect(inspected + uninspected).toBe(bytes.length)
    expect(released + withheld).toBe(bytes.length)
    return { text: decoder.decode(joinBytes(edited.pieces)), usage: reading.usage, inspection }
  }

  it('keeps its usage and every byte but the model id', () => {
    const body = ` { "model":"theirs", "choices":[{"message":{"content":"hi","model":"theirs"}}], "usage":{"prompt_tokens":3,"completion_tokens":1} }\n`
    expect(read(body).text).toBe(body)
    expect(read(body, 'ours').text).toBe(body.replace('theirs', 'ours'))
    expect(read(body).usage).toMatchObject({ input: 3, output: 1 })
    expect(read(body).inspection.counts.inspected).toBe(2)
  })

  it('shows whole texts to the engine', () => {
    const engine = notingEngine(/secret/)
    expect(read('{"choices":[{"message":{"content":"secret"}}]}', null, engine).text).toBe(
      '{"choices":[{"message":{"content":"***"}}]}',
    )
    expect(engine.seen).toEqual(['choices.0.message.content=secret'])
  })

  it.each(['{}', '{"usage":null}', '{"usage":"x"}', '{"usage":{}}', '[]', '"x"'])(
    'without usage: %s',
    (body) => {
      expect(read(body).usage).toBeNull()
    },
  )

  it('that is not JSON is an error', () => {
    const context = { inspection: new Inspection(passAllEngine), modelId: null, usageRequested: false }
    expect(() => drained(chatCompletions.readAnswer(encoder.encode('<html>'), context))).toThrow(
      JsonSyntaxError,
    )
  })
})
