import { describe, expect, it } from 'vitest'
import { type Json, objectOf } from '../../../../../src/gateway/protocols/json.ts'
import { chatToMessages } from '../../../../../src/gateway/translation/requests/chat-to-messages.ts'
import {
  cutLargeStrings,
  restoreLargeStrings,
} from '../../../../../src/gateway/translation/requests/large-strings.ts'
import { messagesToChat } from '../../../../../src/gateway/translation/requests/messages-to-chat.ts'
import { joinBytes } from '../../../../../src/lib/byte-edits.ts'
import { JsonSyntaxError } from '../../../../../src/lib/json-visitor.ts'
import { randomSpelling } from '../../../lib/random-json.ts'
import { SeededRandom } from '../../../lib/seeded-random.ts'
import { randomChatRequest, randomMessagesRequest } from './random-requests.ts'
import { assistant, call, target, text, toolMessage, user } from './requests.ts'

const LARGE = 16 * 1024
const long = (letter: string, length = LARGE) => letter.repeat(length)
const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const cutOf = (value: unknown) => cutLargeStrings(bytesOf(value))
const textOfBytes = (pieces: Uint8Array[]) => new TextDecoder().decode(joinBytes(pieces))
const cutTexts = (value: unknown) => cutOf(value).cut.map((bytes) => new TextDecoder().decode(bytes))

describe('what is cut out of a body', () => {
  const data = (head: string) => ({ type: 'image_url', image_url: { url: `${head}${long('A')}` } })

  it.each<[string, unknown, string[]]>([
    ['content', { messages: [user(long('a'))] }, [long('a')]],
    ['texts', { system: [text(long('a'))], messages: [user([text(long('b'))])] }, [long('a'), long('b')]],
    ['contents of results', { messages: [user([{ type: 'tool_result', content: long('a') }])] }, [long('a')]],
    [
      'base64 data',
      { messages: [user([{ type: 'image', source: { type: 'base64', data: long('A') } }])] },
      [long('A')],
    ],
    ['what a data URL holds', { messages: [user([data('data:image/png;x=y;base64,')])] }, [long('A')]],
    [
      'files',
      {
        messages: [
          user([
            { file: { file_data: `data:application/pdf;base64,${long('A')}` } },
            { file: { file_data: long('B') } },
          ]),
        ],
      },
      [long('A'), long('B')],
    ],
    ['a prompt', { prompt: long('a') }, [long('a')]],
    ['prompts', { prompt: [long('a'), 'b', long('c')] }, [long('a'), long('c')]],
    ['nothing else of a prompt', { prompt: [[long('a')]], more: { prompt: long('b') } }, []],
    ['no short string', { messages: [user(long('a', LARGE - 1))] }, []],
    ['no other URL', { messages: [user([data('https://a.example/')])] }, []],
    ['no other member', { messages: [{ ...user('x'), name: long('a'), reasoning_content: long('b') }] }, []],
    [
      'nothing of a caller’s own JSON',
      {
        messages: [
          assistant(null, { tool_calls: [call('a', 'f', JSON.stringify({ text: long('a') }))] }),
          assistant([{ type: 'tool_use', input: { content: long('a'), deeper: { text: long('b') } } }]),
        ],
        tools: [{ function: { parameters: { properties: { a: { default: { text: long('c') } } } } } }],
        response_format: { json_schema: { schema: { examples: [{ text: long('d') }] } } },
      },
      [],
    ],
  ])('%s', (_case, body, cut) => {
    expect(cutTexts(body)).toEqual(cut)
  })

  it('leaves a small text, whatever is in the body', () => {
    const body = { messages: [user([text(long('é', 1_000_000)), data('data:image/png;base64,')])] }
    expect(cutOf(body).text.length).toBeLessThan(300)
  })

  it('refuses invalid JSON where it searches', () => {
    const body = `{"messages": ["${long('a')}"`
    expect(() => cutLargeStrings(new TextEncoder().encode(body))).toThrow(JsonSyntaxError)
  })
})

describe('what is put back', () => {
  const restored = (json: string, cut: Uint8Array[]) => textOfBytes(restoreLargeStrings(json, cut))

  it('is the body as it was, escapes and all', () => {
    const odd = `{"messages":[{"role":"user","content":"${'\\/\\u00e9\\ud83d é "'.replace(' "', ' \\"')}${long('a')}"},{"x":"ü"}]}`
    const { text: skeleton, cut } = cutLargeStrings(new TextEncoder().encode(odd))
    expect(cut).toHaveLength(1)
    expect(restored(skeleton, cut)).toBe(odd)
    const [content] = JSON.parse(skeleton).messages
    expect(restored(JSON.stringify({ converted: content.content }), cut)).toBe(
      `{"converted":"\\/\\u00e9\\ud83d é \\"${long('a')}"}`,
    )
  })

  it('follows what became of it: dropped, used twice, joined, in another order', () => {
    const { text: skeleton, cut } = cutOf({ messages: ['a', 'b', 'c'].map((letter) => user(long(letter))) })
    const [a, , c] = (JSON.parse(skeleton) as { messages: Array<{ content: string }> }).messages.map(
      ({ content }) => content,
    )
    expect(restored(JSON.stringify([`${c}: ${a}`, a]), cut)).toBe(
      JSON.stringify([`${long('c')}: ${long('a')}`, long('a')]),
    )
    expect(restored('{}', cut)).toBe('{}')
  })

  it('shares the bytes of the body', () => {
    const body = bytesOf({ messages: [user(long('a'))] })
    const { text: skeleton, cut } = cutLargeStrings(body)
    const shared = restoreLargeStrings(skeleton, cut).filter((piece) => piece.buffer === body.buffer)
    expect(shared.map((piece) => piece.length)).toEqual([LARGE])
  })

  it('can be restored again, and without strings', () => {
    const { text: skeleton, cut } = cutOf({ messages: [user(long('a'))] })
    expect(restored(skeleton, cut)).toBe(restored(skeleton, cut))
    expect(restored('{"a":1}', [])).toBe('{"a":1}')
    expect(restored(skeleton, [])).toBe(skeleton)
  })

  it('cannot be had by a text that looks like a placeholder', () => {
    const first = JSON.parse(cutOf({ messages: [user(long('a'))] }).text) as { messages: Json[] }
    const guess = String(first.messages[0]?.content)
    const { text: skeleton, cut } = cutOf({ messages: [user(guess), user(long('b'))] })
    expect(restored(skeleton, cut)).toContain(guess)
    expect(restored(skeleton, cut)).not.toContain(long('a'))
  })
})

describe('a translated body with long strings', () => {
  const translate = (body: Uint8Array, translation: (request: Json) => Json): unknown => {
    const { text: skeleton, cut } = cutLargeStrings(body)
    const json = JSON.stringify(translation(objectOf(JSON.parse(skeleton))))
    return JSON.parse(textOfBytes(restoreLargeStrings(json, cut)))
  }
  const whole = (body: Uint8Array, translation: (request: Json) => Json): unknown =>
    JSON.parse(JSON.stringify(translation(JSON.parse(new TextDecoder().decode(body)))))

  it('is the same as without the cut', () => {
    const request = {
      model: 'm',
      messages: [
        { role: 'system', content: long('s') },
        user([
          text(`"${long('é')}"`),
          { type: 'image_url', image_url: { url: `data:image/jpg;base64,${long('A')}` } },
          {
            type: 'file',
            file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${long('B')}` },
          },
        ]),
        assistant(long('x'), { tool_calls: [call('a')] }),
        toolMessage('a', long('r')),
      ],
    }
    const body = new TextEncoder().encode(JSON.stringify(request).replaceAll('/', '\\/'))
    const there = (json: Json) => chatToMessages(json, target()).body
    const andBack = (json: Json) => messagesToChat(there(json), target()).body
    expect(translate(body, there)).toEqual(whole(body, there))
    expect(translate(body, andBack)).toEqual(whole(body, andBack))
    expect(cutLargeStrings(body).cut).toHaveLength(6)
  })

  it('is so for random requests in random spellings', () => {
    let cuts = 0
    for (let seed = 0; seed < 60; seed++) {
      const random = new SeededRandom(seed)
      const chat = random.chance(0.5)
      const request = chat ? randomChatRequest(random) : randomMessagesRequest(random, false)
      const body = new TextEncoder().encode(spelledAtLength(request, random))
      const translation = (json: Json) => (chat ? chatToMessages : messagesToChat)(json, target()).body
      const expected = whole(body, translation)
      cuts += cutLargeStrings(body).cut.length
      expect(translate(body, translation), `seed ${seed}`).toEqual(expected)
    }
    expect(cuts).toBeGreaterThan(20)
  })
})

/** A request of which some strings have grown, in a spelling of random escapes. */
function spelledAtLength(request: Json, random: SeededRandom): string {
  const grow = (name: string, value: unknown) => {
    const grows = ['text', 'content', 'data', 'url'].includes(name) && random.chance(0.5)
    if (!grows || typeof value !== 'string' || value.trim() === '' || value.startsWith('https:')) return value
    return `${value}${long('A', LARGE + random.below(9))}`
  }
  return JSON.stringify(JSON.parse(JSON.stringify(request), grow)).replaceAll(
    /"(?:[^"\\]|\\.){16384,}"/g,
    (written) => randomSpelling(random, JSON.parse(written), random.pick([0, 0.01])),
  )
}
