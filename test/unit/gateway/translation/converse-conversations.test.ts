import { describe, expect, it } from 'vitest'
import { converseFault } from '../../../../scripts/local/model-upstream/vendors/bedrock/converse-request.ts'
import { type Json, listOf, objectOf, textOf } from '../../../../src/gateway/protocols/json.ts'
import type { ModelEvent } from '../../../../src/gateway/translation/model-events.ts'
import { TranslatedCall } from '../../../../src/gateway/translation/translated-call.ts'
import { encodeFrame, parseFrame } from '../../../../src/lib/sse.ts'
import { PROPERTY_RUNS } from '../../lib/property-runs.ts'
import { SeededRandom } from '../../lib/seeded-random.ts'
import { encoder, encoderOf, requestOf } from '../translated-call-harness.ts'
import {
  begin,
  type ConverseEvent,
  callStart,
  end,
  input,
  signature,
  stop,
  text,
  thought,
} from './fixtures/converse-streams.ts'
import { bedrockModel, CONVERSE_ORIGIN, ofChat, ofMessages } from './requests/converse.ts'
import { randomChatRequest, randomMessagesRequest } from './requests/random-requests.ts'

const SEEDS = [...Array(PROPERTY_RUNS).keys()]
type Caller = 'chat_completions' | 'messages' | 'responses'

const HI = { role: 'user', content: 'Hi' }
const GO_ON = { role: 'user', content: 'Go on.' }
const FIRST: Record<Caller, Json> = {
  chat_completions: { messages: [HI] },
  messages: { max_tokens: 100, messages: [HI] },
  responses: { input: [{ type: 'message', ...HI }] },
}

const callFor = (caller: Caller, request: Json) =>
  new TranslatedCall(encoder.encode(JSON.stringify({ model: 'm', stream: true, ...request })), {
    caller,
    upstream: 'converse',
    target: bedrockModel(),
  })

interface Turn {
  stream: ConverseEvent[]
  /** Blocks that the model is to get back: signed reasoning, texts and calls. */
  blocks: Json[]
}

/** A turn of a model: reasoning with or without a signature, a text, calls. */
function randomTurn(random: SeededRandom): Turn {
  const stream: ConverseEvent[] = [begin]
  const blocks: Json[] = []
  let index = 0
  const pieces = (...from: string[]) => Array.from({ length: 1 + random.below(3) }, () => random.pick(from))
  const finish = () => {
    stream.push(stop(index))
    index++
  }
  if (random.chance(0.5)) {
    const texts = pieces('Hm. ', '**So**', ' é')
    stream.push(...texts.map((piece) => thought(index, piece)))
    if (random.chance(0.7)) {
      stream.push(signature(index, `sig${index}`))
      blocks.push({ reasoningContent: { reasoningText: { text: texts.join(''), signature: `sig${index}` } } })
    }
    finish()
  }
  if (random.chance(0.7)) {
    const texts = pieces('Well', ', ', '\n😀.')
    if (texts.join('').trim() !== '') blocks.push({ text: texts.join('') })
    stream.push(...texts.map((piece) => text(index, piece)))
    finish()
  }
  for (let call = random.below(4); call > 0; call--) {
    const value = random.pick<Json>([{}, { q: 1 }, { deep: [{ a: null }], '"': 'x' }])
    const toolUseId = `tooluse_${index}`
    const name = random.pick(['look', 'find'])
    stream.push(callStart(index, toolUseId, name))
    if (Object.keys(value).length > 0) stream.push(input(index, JSON.stringify(value)))
    blocks.push({ toolUse: { toolUseId, name, input: value } })
    finish()
  }
  return { stream: [...stream, ...end()], blocks }
}

/** The caller's items of an answer, as the engine of responses stores them. */
function itemsOf(events: readonly ModelEvent[]): Json[] {
  const items: Json[] = []
  for (const event of events) {
    const item = items[items.length - 1]
    if (event.type === 'text') {
      if (item?.type === 'message') item.content = `${item.content}${event.text}`
      else items.push({ type: 'message', role: 'assistant', content: event.text })
    } else if (event.type === 'reasoning') {
      if (item?.type === 'reasoning')
        item.content = [{ text: `${textOf(listOf(item.content)[0]?.text)}${event.text}` }]
      else items.push({ type: 'reasoning', content: [{ text: event.text }] })
    } else if (event.type === 'reasoning_signature' && item) {
      Object.assign(item, { signature: event.signature, origin: CONVERSE_ORIGIN })
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
    return { messages: [HI, message, ...results, GO_ON] }
  },
  messages({ content }) {
    const calls = listOf(content).filter(({ type }) => type === 'tool_use')
    const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'r' }))
    const next = [...results, { type: 'text', text: 'Go on.' }]
    return {
      max_tokens: 100,
      messages: [HI, { role: 'assistant', content }, { role: 'user', content: next }],
    }
  },
  responses({ events }) {
    const items = itemsOf(events as ModelEvent[])
    const calls = items.filter(({ type }) => type === 'function_call')
    const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'r' }))
    return { input: [{ type: 'message', ...HI }, ...items, ...results, { type: 'message', ...GO_ON }] }
  },
}

describe.each<Caller>(['chat_completions', 'messages', 'responses'])(
  'a turn of Converse for a caller of %s',
  (caller) => {
    it('comes back with its texts, calls and signed reasoning in their places', () => {
      for (const seed of SEEDS) {
        const { stream, blocks } = randomTurn(new SeededRandom(seed))
        const call = callFor(caller, FIRST[caller])
        const events = stream.flatMap(([name, payload]) =>
          call.events(parseFrame(encodeFrame(name, payload))),
        )
        const answer = JSON.parse(
          JSON.stringify(encoderOf(caller).answer([...events, ...call.ending()])),
        ) as Json
        const body = requestOf(callFor(caller, NEXT[caller](answer)))
        const messages = listOf(body.messages)
        // Chat completions have no place for signed reasoning.
        const kept =
          caller === 'chat_completions' ? blocks.filter((block) => !block.reasoningContent) : blocks
        if (kept.length === 0) expect(messages, `seed ${seed}`).toHaveLength(1)
        else expect(messages[1], `seed ${seed}`).toEqual({ role: 'assistant', content: kept })
        expect(converseFault(body), `seed ${seed}`).toBeNull()
      }
    })
  },
)

/** The rules of pairs that a body breaks: each call has its result first in the next message. */
function brokenPairs(body: Json): string[] {
  const messages = listOf(body.messages)
  return messages.flatMap(({ content }, index) => {
    const ids = (blocks: unknown, member: string) =>
      listOf(blocks).flatMap((block) => (block[member] ? [objectOf(block[member]).toolUseId] : []))
    const calls = ids(content, 'toolUse')
    const results = ids(messages[index + 1]?.content, 'toolResult')
    return JSON.stringify(calls) === JSON.stringify(results) || (calls.length === 0 && results.length === 0)
      ? []
      : [`message ${index}: ${calls} are answered by ${results}`]
  })
}

describe('random requests', () => {
  /** The media and tools that Converse does not have are left out. */
  const usable = (request: Json): Json =>
    JSON.parse(
      JSON.stringify(request).replaceAll('https://a.example/b.png', 'data:image/png;base64,AAAA'),
      (name, value) => (name === 'web_search_options' || name === 'n' ? undefined : value),
    ) as Json

  it.each(['us.amazon.nova-pro-v1:0', 'mistral.mistral-large-2407-v1:0', 'meta.llama3-1-8b-instruct-v1:0'])(
    'keep the rules of %s, and lose no text',
    (model) => {
      for (const seed of SEEDS) {
        const target = bedrockModel(model)
        const chat = usable(randomChatRequest(new SeededRandom(seed)))
        const messages = usable(randomMessagesRequest(new SeededRandom(seed), false))
        for (const [request, { body }] of [
          [chat, ofChat(chat, target)],
          [messages, ofMessages(messages, target)],
        ] as const) {
          expect(converseFault(body), `seed ${seed}: ${JSON.stringify(body)}`).toBeNull()
          expect(brokenPairs(body), `seed ${seed}`).toEqual([])
          const sent = JSON.stringify(body)
          for (const written of textsOf(request.messages)) {
            expect(sent, `seed ${seed}`).toContain(JSON.stringify(written).slice(1, -1))
          }
        }
      }
    },
  )
})

/** Texts that are not blank. */
function textsOf(list: unknown): string[] {
  const texts = listOf(list).flatMap(({ content }) =>
    typeof content === 'string'
      ? [content]
      : listOf(content).flatMap((part) => (part.type === 'text' ? [textOf(part.text)] : [])),
  )
  return texts.filter((value) => value.trim() !== '')
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
    const body = JSON.parse(Buffer.concat(pieces).toString()) as Json
    expect(listOf(body.messages)[0]?.content).toEqual([
      { text: content[0]?.text },
      { image: { format: 'png', source: { bytes: data } } },
    ])
  })

  it('gives tools their own names back', () => {
    const name = `mcp.${'long'.repeat(20)}`
    const tools = [{ type: 'function', function: { name, parameters: { type: 'object' } } }]
    const call = callFor('chat_completions', { ...FIRST.chat_completions, tools })
    const [tool] = listOf(objectOf(requestOf(call).toolConfig).tools)
    const sent = textOf(objectOf(tool?.toolSpec).name)
    expect(sent).not.toBe(name)
    const [event, payload] = callStart(0, 't', sent)
    const events = call.events(parseFrame(encodeFrame(event, payload)))
    expect(events.find(({ type }) => type === 'tool_call')).toMatchObject({ name })
  })
})
