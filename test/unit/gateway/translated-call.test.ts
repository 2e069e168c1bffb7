import { describe, expect, it } from 'vitest'
import { ExchangeMeter } from '../../../src/gateway/exchange-meter.ts'
import { MOST_CONTINUATIONS } from '../../../src/gateway/translation/translated-call.ts'
import { NO_USAGE } from '../../../src/governance/credits.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import { parseFrame } from '../../../src/lib/sse.ts'
import {
  encoder,
  type Json,
  nextRequest,
  resultOf,
  TRANSLATIONS,
  tell,
  textOf,
  translatedCall,
  whole,
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
  it('is sent again with all that was said, and nothing else changes', () => {
    const call = translatedCall(SEARCHING)
    const first = nextRequest(call)
    expect(call.mayGoOn).toBe(true)
    whole(call, paused('one'))
    expect(call.goesOn(true)).toBe(true)
    const second = nextRequest(call)
    whole(call, paused('two'))
    expect(call.goesOn(true)).toBe(true)
    const third = nextRequest(call)
    const said = (...texts: string[]) => ({
      role: 'assistant',
      content: texts.map((text) => ({ type: 'text', text })),
    })
    const asked = first.messages as Json[]
    expect(second).toEqual({ ...first, messages: [...asked, said('one')] })
    expect(third).toEqual({ ...first, messages: [...asked, said('one', 'two')] })
    whole(call, messageOf('three'))
    expect(call.goesOn(true)).toBe(false)
    expect(resultOf(call)).toMatchObject({
      choices: [{ message: { content: 'onetwothree' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 15, total_tokens: 24 },
    })
  })

  it('is cut off where it cannot be paid for, or does not come to an end', () => {
    for (const affordable of [false, true]) {
      const call = translatedCall(SEARCHING)
      let exchanges = 0
      do {
        call.nextBody()
        whole(call, paused('a'))
        exchanges++
      } while (call.goesOn(affordable))
      expect(exchanges).toBe(affordable ? MOST_CONTINUATIONS + 1 : 1)
      const { choices } = resultOf(call) as { choices: Json[] }
      expect(choices).toMatchObject([
        { finish_reason: 'length', message: { content: 'a'.repeat(exchanges) } },
      ])
    }
  })

  it('has its tool calls numbered over all exchanges', () => {
    const call = translatedCall(SEARCHING)
    for (const [id, reason] of [
      ['a', 'pause_turn'],
      ['b', 'tool_use'],
    ]) {
      call.nextBody()
      const content = ['1', '2'].map((n) => ({
        type: 'tool_use',
        id: `toolu_${id}${n}`,
        name: 'look',
        input: { n },
      }))
      whole(call, messageOf('', { content, stop_reason: reason }))
      call.goesOn(true)
    }
    const { choices } = resultOf(call) as { choices: Array<{ message: { tool_calls: Json[] } }> }
    expect(choices[0]?.message.tool_calls).toMatchObject([
      { id: 'toolu_a1', function: { arguments: '{"n":"1"}' } },
      { id: 'toolu_a2', function: { arguments: '{"n":"2"}' } },
      { id: 'toolu_b1', function: { arguments: '{"n":"1"}' } },
      { id: 'toolu_b2', function: { arguments: '{"n":"2"}' } },
    ])
  })

  it('that nobody can continue is told as cut off at once', () => {
    const call = translatedCall({
      caller: 'completions',
      upstream: 'messages',
      request: { prompt: ['a', 'b'] },
    })
    call.nextBody()
    whole(call, paused('one'))
    expect(call.goesOn(true)).toBe(true)
    expect(nextRequest(call).messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'b' }] }])
    whole(call, messageOf('two'))
    expect(call.goesOn(true)).toBe(false)
    expect(resultOf(call)).toMatchObject({
      choices: [
        { index: 0, text: 'one', finish_reason: 'length' },
        { index: 1, text: 'two', finish_reason: 'stop' },
      ],
    })
  })

  it('tells its beginning, its role and its end once, and usage of all exchanges', () => {
    const call = translatedCall(SEARCHING)
    const exchange = (text: string, reason: string) => {
      call.nextBody()
      const told = [
        {
          type: 'message_start',
          message: { id: `msg_${text}`, usage: { input_tokens: 3, output_tokens: 1 } },
        },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 5 } },
        { type: 'message_stop' },
      ].map((event) => tell(call, event))
      return [told.join(''), call.goesOn(true)] as const
    }
    const [first, goesOn] = exchange('one', 'pause_turn')
    expect(goesOn).toBe(true)
    expect(first).not.toContain('"finish_reason":"')
    expect(first).not.toContain('[DONE]')
    const [second, again] = exchange('two', 'end_turn')
    expect(again).toBe(false)
    const all = first + second + textOf(call.finish())
    expect(new Set(all.match(/"id":"[^"]*"/g))).toEqual(new Set(['"id":"chatcmpl-msg_one"']))
    expect(all.match(/"role":"assistant"/g)).toHaveLength(1)
    expect(all.match(/"finish_reason":"stop"/g)).toHaveLength(1)
    expect(all.match(/"prompt_tokens":6,"completion_tokens":10,/g)).toHaveLength(1)
    expect(all.endsWith('data: [DONE]\n\n')).toBe(true)
  })
})

describe('choices of several prompts', () => {
  it('are numbered over all exchanges', () => {
    const request = { prompt: ['a', 'b'], n: 2, echo: true }
    const call = translatedCall({ caller: 'completions', upstream: 'chat_completions', request })
    for (const texts of [
      ['1', '2'],
      ['3', '4'],
    ]) {
      expect(nextRequest(call)).toMatchObject({ n: 2, stream_options: { include_usage: true } })
      whole(call, completionOf(...texts))
      expect(call.goesOn(true)).toBe(texts[0] === '1')
    }
    const { choices } = resultOf(call) as { choices: Json[] }
    expect(choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'a1'],
      [1, 'a2'],
      [2, 'b3'],
      [3, 'b4'],
    ])
  })
})

describe.each(TRANSLATIONS)('%s on %s', (caller, upstream) => {
  const call = () => translatedCall({ caller, upstream })

  it('asks the upstream for its own model, and for usage where that has to be asked for', () => {
    for (const stream of [true, false]) {
      const sent = nextRequest(translatedCall({ caller, upstream, request: { stream } }))
      expect(sent.model).toBe('upstream-model')
      const usage = stream && upstream === 'chat_completions' ? { include_usage: true } : undefined
      expect(sent.stream_options).toEqual(usage)
      expect(sent.stream ?? false).toBe(stream)
    }
  })

  it('says nothing for frames without a payload and for the end of another protocol', () => {
    const silent = call()
    silent.nextBody()
    for (const text of [': comment\n\n', 'event: ping\n\n', 'data: [DONE]\n\n', 'data:[DONE] \n\n']) {
      expect(silent.frame(parseFrame(encoder.encode(text)))).toEqual([])
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
      const asked = call()
      asked.nextBody()
      expect(asked.answer(encoder.encode(JSON.stringify(body))), JSON.stringify(body)).toBe(says)
    }
    const answered = call()
    answered.nextBody()
    expect(whole(answered, upstream === 'messages' ? messageOf('a') : completionOf('a'))).toBeNull()
    expect(answered.mayGoOn).toBe(false)
    expect(() => answered.nextBody()).toThrow('the call is complete')
  })

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
      call.nextBody()
      whole(call, upstream === 'messages' ? messageOf('é 🦉') : completionOf('é 🦉'))
      expect(call.goesOn(true)).toBe(false)
      const told = textOf(call.resultAsFrames())
      expect(told).toContain('é 🦉')
      const endings: Record<string, RegExp> = {
        messages: /message_stop"\}\n\n$/,
        responses: /"type":"end"\}\n\n$/,
      }
      expect(told).toMatch(endings[caller] ?? /\[DONE\]\n\n$/)
    }
  })
})

describe('the meter of several exchanges', () => {
  const used = (input: number, output: number) => ({ ...NO_USAGE, input, output })
  const meterOf = (usage: ReturnType<typeof used> | null, final: boolean, textBytes = 0) => ({
    usage: () => usage && { usage, final },
    textBytes,
  })

  it('adds what each of them reports', () => {
    const meter = new ExchangeMeter()
    expect(meter.usage()).toBeNull()
    meter.add(used(3, 5), 10, 100)
    expect(meter.usage()).toEqual({ usage: used(3, 5), final: true })
    meter.follow(meterOf(used(4, 1), false, 7), 100)
    expect(meter.usage()).toEqual({ usage: used(7, 6), final: false })
    meter.follow(meterOf(used(1, 1), true, 2), 100)
    // The second never told its usage to the end.
    expect(meter.usage()).toEqual({ usage: used(8, 7), final: false })
    expect(meter.textBytes).toBe(19)
  })

  it('counts an exchange that reports nothing by what was sent and by what came', () => {
    const meter = new ExchangeMeter()
    meter.add(null, 10, 300)
    // Nothing was told at all: the call as a whole is estimated.
    expect(meter.usage()).toBeNull()
    meter.add(used(3, 5), 10, 100)
    expect(meter.usage()).toEqual({ usage: used(103, 9), final: false })
    const other = new ExchangeMeter()
    other.add(used(3, 5), 10, 100)
    other.follow(meterOf(null, false, 4), 300_000)
    expect(other.usage()).toEqual({ usage: used(100_003, 7), final: false })
    expect(other.textBytes).toBe(14)
  })
})
