import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { CallerProtocol, UpstreamProtocol } from '../../../src/gateway/protocols/protocol.ts'
import { TranslatedCall } from '../../../src/gateway/translation/translated-call.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import { parseFrame } from '../../../src/lib/sse.ts'
import {
  encoder,
  encoderOf,
  eventsOf,
  type Json,
  requestOf,
  resultOf,
  TRANSLATIONS,
  textOf,
  translatedCall,
  wholeEvents,
} from './translated-call-harness.ts'

const SEARCHING = {
  caller: 'chat_completions',
  upstream: 'messages',
  request: { web_search_options: {} },
} as const

const messageOf = (text: string, more: Json = {}) => ({
  id: 'msg_1',
  type: 'message',
  content: [{ type: 'text', text }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 5 },
  ...more,
})
const paused = (text: string) => messageOf(text, { stop_reason: 'pause_turn' })
const completionOf = (...texts: string[]) => ({
  id: 'chatcmpl-1',
  created: 1,
  choices: texts.map((text, index) => ({ index, message: { content: text }, finish_reason: 'stop' })),
  usage: { prompt_tokens: 3, completion_tokens: 5 },
})

describe('a paused turn', () => {
  const pausedOn = { ...SEARCHING, caller: 'responses' } as const

  it('ends as cut off, with what was said and used so far', () => {
    expect(resultOf(SEARCHING, paused('one'))).toMatchObject({
      choices: [{ message: { content: 'one' }, finish_reason: 'length' }],
      usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 },
    })
    expect(resultOf({ caller: 'completions', upstream: 'messages' }, paused('one'))).toMatchObject({
      choices: [{ index: 0, text: 'one', finish_reason: 'length' }],
    })
    const events = wholeEvents(translatedCall(pausedOn), paused('one'))
    expect(events.filter(({ type }) => type === 'stop')).toMatchObject([{ reason: 'length' }])
  })

  it('ends so on a stream, once', () => {
    const call = translatedCall(SEARCHING)
    const encoding = encoderOf('chat_completions')
    const events = [
      ...[
        { type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 3, output_tokens: 1 } } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'one' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'pause_turn' }, usage: { output_tokens: 5 } },
        { type: 'message_stop' },
      ].flatMap((data) => eventsOf(call, data)),
      ...call.ending(),
    ]
    const all = textOf(events.flatMap((event) => encoding.frames(event)))
    expect(all.match(/"finish_reason":"[^"]+"/g)).toEqual(['"finish_reason":"length"'])
    expect(all.match(/"prompt_tokens":3,"completion_tokens":5,/g)).toHaveLength(1)
    expect(all.match(/\[DONE\]/g)).toHaveLength(1)
  })
})

describe('an echoed prompt', () => {
  const asked = { caller: 'completions', upstream: 'chat_completions' } as const

  it('stands before every choice', () => {
    const request = { prompt: 'a', n: 2, echo: true }
    expect(requestOf(translatedCall({ ...asked, request }))).toMatchObject({ n: 2 })
    const { choices } = resultOf({ ...asked, request }, completionOf('1', '2')) as { choices: Json[] }
    expect(choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'a1'],
      [1, 'a2'],
    ])
  })
})

const LARGE = 200_000
/** In a function of its own, so that nothing else refers to the body. */
function largeCall(caller: CallerProtocol, upstream: UpstreamProtocol) {
  const text = 'x'.repeat(LARGE)
  const messages = [{ role: 'user', content: text }]
  const input = [{ type: 'message', ...messages[0] }]
  const members = {
    chat_completions: { messages },
    messages: { messages, max_tokens: 10 },
    completions: { prompt: text },
    responses: { input },
  }
  const bytes = encoder.encode(JSON.stringify({ model: 'm', stream: true, ...members[caller] }))
  const target = { upstreamModel: 'upstream-model', maxOutputTokens: 1_000, capabilities: [] }
  return { asked: new TranslatedCall(bytes, { caller, upstream, target }), body: new WeakRef(bytes.buffer) }
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

describe.each(TRANSLATIONS)('%s on %s', (caller, upstream) => {
  const call = () => translatedCall({ caller, upstream })

  it('asks the upstream for its own model, and for usage where that has to be asked for', () => {
    for (const stream of [true, false]) {
      const sent = requestOf(translatedCall({ caller, upstream, request: { stream } }))
      expect(sent.model).toBe('upstream-model')
      const usage = stream && upstream === 'chat_completions' ? { include_usage: true } : undefined
      expect(sent.stream_options).toEqual(usage)
      expect(sent.stream ?? false).toBe(stream)
    }
  })

  it('says nothing for frames without a payload and for the end of another protocol', () => {
    const silent = call()
    for (const text of [': comment\n\n', 'event: ping\n\n', 'data: [DONE]\n\n', 'data:[DONE] \n\n']) {
      expect(silent.events(parseFrame(encoder.encode(text)))).toEqual([])
    }
  })

  it('knows what is no answer', () => {
    const bodies: Array<[body: unknown, says: string]> = [
      [{}, 'The upstream sent JSON that is no answer.'],
      [[], 'The upstream sent JSON that is no answer.'],
      [null, 'The upstream sent JSON that is no answer.'],
      ['text', 'The upstream sent JSON that is no answer.'],
      [{ choices: null, content: null }, 'The upstream sent JSON that is no answer.'],
      [{ error: 'No.' }, 'No.'],
      [{ error: { message: 'No.' } }, 'No.'],
      [{ error: { message: 'No.' }, choices: [], content: [] }, 'No.'],
      [{ type: 'error', error: { type: 'api_error', message: 'No.' } }, 'No.'],
      [{ error: {} }, 'The upstream sent JSON that is no answer.'],
    ]
    for (const [body, says] of bodies) {
      const answer = call().answer(encoder.encode(JSON.stringify(body)))
      expect(answer, JSON.stringify(body)).toEqual({ error: says })
    }
  })

  it('hands its request over once, and ends its events once', () => {
    const asked = call()
    const { pieces, length } = asked.takeRequest()
    expect(pieces.reduce((sum, piece) => sum + piece.length, 0)).toBe(length)
    expect(() => asked.takeRequest()).toThrow('taken before')
    const answer = asked.answer(
      encoder.encode(JSON.stringify(upstream === 'messages' ? messageOf('a') : completionOf('a'))),
    )
    expect(answer).not.toContainEqual({ type: 'end' })
    expect(asked.ending()).toEqual([{ type: 'end' }])
  })

  it('keeps nothing of the body once its request is taken', async () => {
    const { asked, body } = largeCall(caller, upstream)
    expect(asked.takeRequest().length).toBeGreaterThan(LARGE)
    // A reference is kept until the end of the job that made it.
    await new Promise(setImmediate)
    collectGarbage()
    expect(body.deref()).toBeUndefined()
    expect(asked.ending().at(-1)).toEqual({ type: 'end' })
  })
})

/** Each caller has one upstream, because the size of a body is checked before it is translated. */
const CALLERS = TRANSLATIONS.filter(
  ([caller], index) => TRANSLATIONS.findIndex(([other]) => other === caller) === index,
)

describe.each(CALLERS)('%s, here on %s,', (caller, upstream) => {
  it('refuses a body whose tree would be too large, and only that', () => {
    const content = Array.from({ length: 60_000 }, () => ({ type: 'text', text: 'x'.repeat(120) }))
    const request =
      caller === 'completions'
        ? { prompt: content.map(({ text }) => text) }
        : { messages: [{ role: 'user', content }] }
    const refused = (more: Json) => {
      try {
        translatedCall({ caller, upstream, request: { ...request, ...more } })
        return null
      } catch (error) {
        return error instanceof ApiError ? [error.status, error.code] : error
      }
    }
    expect(refused({ padding: 'x'.repeat(2_000_000) })).toEqual([400, 'invalid_body'])
    if (caller === 'completions') return
    const long = [{ role: 'user', content: 'x'.repeat(9_000_000) }]
    expect(refused({ messages: long })).toBeNull()
  })
})

describe('a stream that was not streamed', () => {
  it('is told as the frames that it would have been', () => {
    for (const [caller, upstream] of TRANSLATIONS) {
      const call = translatedCall({ caller, upstream })
      const encoding = encoderOf(caller)
      const events = wholeEvents(call, upstream === 'messages' ? messageOf('é 🦉') : completionOf('é 🦉'))
      const told = textOf(events.flatMap((event) => encoding.frames(event)))
      expect(told).toContain('é 🦉')
      const endings: Record<string, RegExp> = {
        messages: /message_stop"\}\n\n$/,
        responses: /"type":"end"\}\n\n$/,
      }
      expect(told).toMatch(endings[caller] ?? /\[DONE\]\n\n$/)
    }
  })
})
