import { describe, expect, it } from 'vitest'
import { type Json, listOf, objectOf, textOf } from '../../../../src/gateway/protocols/json.ts'
import type { CallerProtocol } from '../../../../src/gateway/protocols/protocol.ts'
import type { ModelEvent } from '../../../../src/gateway/translation/model-events.ts'
import { TranslatedCall } from '../../../../src/gateway/translation/translated-call.ts'
import { PROPERTY_RUNS } from '../../lib/property-runs.ts'
import { SeededRandom } from '../../lib/seeded-random.ts'
import { decoder, encoder, encoderOf, eventsOf, requestOf } from '../translated-call-harness.ts'
import { CHAT_CLIENTS, MESSAGES_CLIENTS } from './events/sdk-accumulators.ts'
import { SeededRandom as EventRandom } from './events/seeded-random.ts'
import { chunk, functionCall, last, text, thought } from './fixtures/generate-content-streams.ts'
import { chat, gemini, messages, ORIGIN } from './requests/generate-content.ts'
import { brokenGenerateContentRules } from './requests/generate-content-rules.ts'
import { randomChatRequest, randomMessagesRequest } from './requests/random-requests.ts'

const SEEDS = [...Array(PROPERTY_RUNS).keys()]
const TARGET = gemini()
type Caller = Exclude<CallerProtocol, 'completions'>

/** Requests of the callers, of which the next turn is made. */
const FIRST: Record<Caller, Json> = {
  chat_completions: { messages: [{ role: 'user', content: 'Hi' }] },
  messages: { max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
  responses: { input: [{ type: 'message', role: 'user', content: 'Hi' }] },
}

const callFor = (caller: Caller, request: Json) =>
  new TranslatedCall(encoder.encode(JSON.stringify({ model: 'm', stream: true, ...request })), {
    caller,
    upstream: 'generate_content',
    target: TARGET,
  })

/** A turn of Gemini: each step of calls is signed on its first call, a text at its end. */
function randomTurn(random: SeededRandom): Json[] {
  const parts: Json[] = []
  if (random.chance(0.5)) parts.push(...several(random, () => thought(random.pick(['Hm. ', '**So**', ' é']))))
  if (random.chance(0.7)) parts.push(...several(random, () => text(random.pick(['Well', ', ', '\n😀']))))
  const calls = random.below(4)
  for (let index = 0; index < calls; index++) {
    const args = random.pick<Json>([{}, { q: 1 }, { deep: [{ a: null }], '"': 'x' }])
    const signature = index === 0 ? { signature: `sig${random.below(99)}` } : {}
    parts.push(functionCall(random.pick(['look', 'find']), args, { id: `id${index}`, ...signature }))
  }
  if (calls > 0) return parts
  if (parts.length === 0) parts.push(text('Yes.'))
  return random.chance(0.5) ? [...parts, { text: '', thoughtSignature: 'end' }] : parts
}

function several<Item>(random: SeededRandom, make: () => Item): Item[] {
  return Array.from({ length: 1 + random.below(3) }, make)
}

/** What the model is to get back of its turn: without its thoughts, and with each text in one piece. */
function expectedParts(turn: readonly Json[]): Json[] {
  const parts: Json[] = []
  for (const part of turn) {
    const before = parts[parts.length - 1]
    if (part.thought === true) continue
    const continues = before && typeof before.text === 'string' && before.thoughtSignature === undefined
    if (typeof part.text !== 'string' || part.thoughtSignature || !continues) parts.push({ ...part })
    else before.text = `${before.text}${part.text}`
  }
  return parts
}

/** The caller's items of an answer, as the engine of responses stores them. */
function itemsOf(events: readonly ModelEvent[]): Json[] {
  const items: Json[] = []
  for (const event of events) {
    const item = items[items.length - 1]
    const isOpen = item?.type === 'reasoning' && item.signature === undefined
    if (event.type === 'text') {
      if (item?.type === 'message') item.content = `${item.content}${event.text}`
      else items.push({ type: 'message', role: 'assistant', content: event.text })
    } else if (event.type === 'reasoning') {
      if (isOpen) item.content = [{ text: `${textOf(listOf(item.content)[0]?.text)}${event.text}` }]
      else items.push({ type: 'reasoning', content: [{ text: event.text }] })
    } else if (event.type === 'reasoning_signature') {
      const proof = { signature: event.signature, origin: ORIGIN }
      if (isOpen) Object.assign(item, proof)
      else items.push({ type: 'reasoning', content: [], ...proof })
    } else if (event.type === 'tool_call') {
      items.push({ type: 'function_call', call_id: event.id, name: event.name, arguments: '' })
    } else if (event.type === 'tool_arguments' && item) item.arguments = `${item.arguments}${event.json}`
  }
  return items
}

/** The request of the next turn, with a result for each call. */
const NEXT: Record<Caller, (answer: Json) => Json> = {
  chat_completions(answer) {
    const message = objectOf(listOf(answer.choices)[0]?.message)
    const results = listOf(message.tool_calls).map(({ id }) => ({
      role: 'tool',
      tool_call_id: id,
      content: 'r',
    }))
    return {
      messages: [{ role: 'user', content: 'Hi' }, message, ...results, { role: 'user', content: 'Go on.' }],
    }
  },
  messages({ content }) {
    const calls = listOf(content).filter(({ type }) => type === 'tool_use')
    const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'r' }))
    const next = [...results, { type: 'text', text: 'Go on.' }]
    return {
      max_tokens: 100,
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content },
        { role: 'user', content: next },
      ],
    }
  },
  responses({ events }) {
    const items = itemsOf(events as ModelEvent[])
    const calls = items.filter(({ type }) => type === 'function_call')
    const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'r' }))
    const first = { type: 'message', role: 'user', content: 'Hi' }
    return { input: [first, ...items, ...results, { type: 'message', role: 'user', content: 'Go on.' }] }
  },
}

function answerTo(caller: Caller, stream: readonly Json[]): { answer: Json; frames: Uint8Array[] } {
  const decode = () => {
    const call = callFor(caller, FIRST[caller])
    return [...stream.flatMap((data) => eventsOf(call, data)), ...call.ending()]
  }
  const encoding = encoderOf(caller)
  const events = decode()
  const answer = JSON.parse(JSON.stringify(encoderOf(caller).answer(events))) as Json
  return { answer, frames: events.flatMap((event) => encoding.frames(event)) }
}

const contentsAfter = (caller: Caller, answer: Json) =>
  listOf(requestOf(callFor(caller, NEXT[caller](answer))).contents)

/** Chat completions have no place for the signature of a text. */
const inChat = (parts: Json[]) =>
  parts.filter(({ text, thoughtSignature }) => !(text === '' && thoughtSignature))

describe.each<Caller>(['chat_completions', 'messages', 'responses'])(
  'a turn of Gemini for a caller of %s',
  (caller) => {
    it('comes back with its calls, texts and signatures in their places', () => {
      for (const seed of SEEDS) {
        const random = new SeededRandom(seed)
        const turn = randomTurn(random)
        const stream: Json[] = []
        for (let at = 0; at < turn.length; ) {
          const size = 1 + random.below(3)
          stream.push(chunk(turn.slice(at, at + size)))
          at += size
        }
        const { answer } = answerTo(caller, [...stream, last()])
        const contents = contentsAfter(caller, answer)
        const expected = expectedParts(turn)
        const kept = caller === 'chat_completions' ? inChat(expected) : expected
        // A turn of thoughts alone leaves nothing behind.
        if (kept.length === 0) expect(contents, `seed ${seed}`).toHaveLength(1)
        else expect(contents[1], `seed ${seed}`).toEqual({ role: 'model', parts: kept })
        expect(brokenGenerateContentRules({ contents }), `seed ${seed}`).toEqual([])
      }
    })
  },
)

const SIGNED = [
  chunk([thought('Hm.')]),
  chunk([
    functionCall('look', { q: 1 }, { id: 'f1', signature: 'U0lH' }),
    functionCall('find', {}, { id: 'f2' }),
  ]),
  last('STOP', [text('')]),
]

describe.each([
  ['chat_completions', CHAT_CLIENTS],
  ['messages', MESSAGES_CLIENTS],
] as const)('the signature of a call, in official clients of %s,', (caller, clients) => {
  it.each(clients)('is kept by %s', async (_name, accumulate) => {
    const random = new EventRandom(3)
    const answer = (await accumulate(answerTo(caller, SIGNED).frames, random)) as Json
    expect(contentsAfter(caller, answer)[1]).toEqual({
      role: 'model',
      parts: [
        { functionCall: { id: 'f1', name: 'look', args: { q: 1 } }, thoughtSignature: 'U0lH' },
        { functionCall: { id: 'f2', name: 'find', args: {} } },
      ],
    })
  })
})

describe('random requests', () => {
  /** The media and tools that generateContent does not have are left out. */
  const usable = (request: Json): Json =>
    JSON.parse(
      JSON.stringify(request).replaceAll('https://a.example/b.png', 'data:image/png;base64,AAAA'),
      (name, value) => (name === 'web_search_options' ? undefined : value),
    ) as Json

  it.each(['gemini-3-flash', 'gemini-2.5-flash'])('keep the rules of %s, and lose no text', (model) => {
    for (const seed of SEEDS) {
      const target = gemini(model)
      const ofChat = usable(randomChatRequest(new SeededRandom(seed)))
      const ofMessages = usable(randomMessagesRequest(new SeededRandom(seed), false))
      for (const [request, { body }] of [
        [ofChat, chat(ofChat, target)],
        [ofMessages, messages(ofMessages, target)],
      ] as const) {
        expect(brokenGenerateContentRules(body, model), `seed ${seed}: ${JSON.stringify(body)}`).toEqual([])
        const sent = JSON.stringify(body)
        for (const written of textsOf(request.messages)) {
          expect(sent, `seed ${seed}`).toContain(JSON.stringify(written).slice(1, -1))
        }
      }
    }
  })
})

function textsOf(list: unknown): string[] {
  return listOf(list).flatMap(({ content }) =>
    typeof content === 'string'
      ? [content]
      : listOf(content).flatMap((part) => (part.type === 'text' ? [textOf(part.text)] : [])),
  )
}

describe('a translated call', () => {
  it('takes long texts and files as pieces of the body, unchanged', () => {
    const data = 'A'.repeat(40_000)
    const content = [
      { type: 'text', text: `é"${'x'.repeat(30_000)}` },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
    ]
    const call = callFor('chat_completions', { messages: [{ role: 'user', content }] })
    const { pieces } = call.takeRequest()
    expect(pieces.length).toBe(5)
    const body = JSON.parse(pieces.map((piece) => decoder.decode(piece)).join('')) as Json
    expect(listOf(body.contents)[0]?.parts).toEqual([
      { text: content[0]?.text },
      { inlineData: { mimeType: 'image/png', data } },
    ])
  })

  it('gives tools their own names back', () => {
    const name = `mcp.${'long'.repeat(20)}`
    const tools = [{ type: 'function', function: { name, parameters: { type: 'object' } } }]
    const call = callFor('chat_completions', { ...FIRST.chat_completions, tools })
    const sent = listOf(listOf(requestOf(call).tools)[0]?.functionDeclarations)[0]?.name as string
    expect(sent).not.toBe(name)
    const events = eventsOf(call, last('STOP', [functionCall(sent, {})]))
    expect(events.find(({ type }) => type === 'tool_call')).toMatchObject({ name })
  })

  it.each(['MALFORMED_FUNCTION_CALL', 'MALFORMED_RESPONSE'])(
    'takes a whole answer with %s for an error',
    (reason) => {
      const call = callFor('messages', FIRST.messages)
      expect(call.answer(encoder.encode(JSON.stringify(last(reason))))).toEqual({
        error: `The model's answer ended with ${reason}.`,
      })
      expect(call.answer(encoder.encode('{}'))).toEqual({
        error: 'The upstream sent JSON that is no answer.',
      })
    },
  )

  it('takes a blocked prompt for an answer', () => {
    const blocked = encoder.encode(JSON.stringify({ promptFeedback: { blockReason: 'SAFETY' } }))
    const events = callFor('messages', FIRST.messages).answer(blocked)
    expect(events).toContainEqual(expect.objectContaining({ type: 'stop', reason: 'refusal' }))
  })
})
