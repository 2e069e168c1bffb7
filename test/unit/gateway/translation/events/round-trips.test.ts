import { describe, expect, it } from 'vitest'
import { ChatDecoder } from '../../../../../src/gateway/translation/events/chat-decoder.ts'
import { ChatEncoder } from '../../../../../src/gateway/translation/events/chat-encoder.ts'
import { CompletionEncoder } from '../../../../../src/gateway/translation/events/completion-encoder.ts'
import { MessagesDecoder } from '../../../../../src/gateway/translation/events/messages-decoder.ts'
import { MessagesEncoder } from '../../../../../src/gateway/translation/events/messages-encoder.ts'
import type {
  EventDecoder,
  EventEncoder,
  ModelEvent,
} from '../../../../../src/gateway/translation/model-events.ts'
import { PROPERTY_RUNS } from '../../../lib/property-runs.ts'
import { args, call, decoded, end, payloads, readFrames, start, stop } from './events-support.ts'
import { randomEvents } from './random-events.ts'
import { CHAT_CLIENTS, MESSAGES_CLIENTS } from './sdk-accumulators.ts'
import { SeededRandom } from './seeded-random.ts'

type Json = Record<string, unknown>

interface Dialect {
  encoder: () => EventEncoder
  decoder: () => EventDecoder
}

const options = { modelId: 'model-1', usageRequested: true, nowSeconds: 1_800_000_000 }
const chat: Dialect = { encoder: () => new ChatEncoder(options), decoder: () => new ChatDecoder() }
const messages: Dialect = {
  encoder: () => new MessagesEncoder('model-1'),
  decoder: () => new MessagesDecoder(),
}
const completions = () => new CompletionEncoder(options)

const SEEDS = Array.from({ length: PROPERTY_RUNS }, (_, seed) => seed)
const CLIENT_SEEDS = SEEDS.slice(0, PROPERTY_RUNS / 3)

/** Runs a check for each seed, and names the seed that failed. */
async function forEachSeed(seeds: number[], check: (random: SeededRandom) => void | Promise<void>) {
  for (const seed of seeds) {
    try {
      await check(new SeededRandom(seed))
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error })
    }
  }
}

/** The content of events, independent of their cuts and order. */
function saidBy(events: ModelEvent[]) {
  const said = {
    text: '',
    refusal: '',
    reasoning: '',
    calls: [] as Json[],
    stop: null as unknown,
    usage: null as unknown,
  }
  for (const event of events) {
    if (event.type === 'text' || event.type === 'refusal' || event.type === 'reasoning') {
      said[event.type] += event.text
    } else if (event.type === 'tool_call')
      said.calls[event.call] = { id: event.id, name: event.name, json: '' }
    else if (event.type === 'tool_arguments') {
      const call = said.calls[event.call]
      if (call) call.json = `${call.json}${event.json}`
    } else if (event.type === 'stop') said.stop = event.reason
    else if (event.type === 'usage') said.usage = event.usage
  }
  for (const call of said.calls) call.json = JSON.parse(String(call.json) || '{}')
  return said
}

describe('encoded events decode to the same events', () => {
  it('in chat completions', () =>
    forEachSeed(SEEDS, (random) => {
      const events = randomEvents(random, 'chat')
      const chunks = payloads(chat.encoder(), events).filter((data) => data !== '[DONE]') as Json[]
      expect(saidBy(decoded(chat.decoder(), chunks))).toEqual(saidBy(events))
      expect(saidBy(chat.decoder().answer(chat.encoder().answer(events)))).toEqual(saidBy(events))
    }))

  it('in the messages protocol, where a refusal is text', () =>
    forEachSeed(SEEDS, (random) => {
      const events = randomEvents(random, random.chance(50) ? 'chat' : 'messages')
      const { text, refusal, ...rest } = saidBy(events)
      const expected = { ...rest, text: text + refusal, refusal: '' }
      const streamed = decoded(messages.decoder(), payloads(messages.encoder(), events) as Json[])
      expect(saidBy(streamed)).toEqual(expected)
      expect(saidBy(messages.decoder().answer(messages.encoder().answer(events)))).toEqual(expected)
      const proofs = (list: ModelEvent[]) =>
        list.filter(({ type }) => type === 'reasoning_signature' || type === 'redacted_reasoning')
      expect(proofs(streamed)).toEqual(proofs(events))
    }))
})

describe('a stream and a whole answer have the same contents', () => {
  const pairs: Array<[name: string, upstream: Dialect, family: 'chat' | 'messages', caller: Dialect]> = [
    ['chat completions to messages', chat, 'chat', messages],
    ['messages to chat completions', messages, 'messages', chat],
  ]

  it.each(pairs)('%s', (_name, upstream, family, caller) =>
    forEachSeed(SEEDS, (random) => {
      const events = randomEvents(random, family)
      const stream = payloads(upstream.encoder(), events).filter((data) => data !== '[DONE]') as Json[]
      const streamed = payloads(caller.encoder(), [...decoded(upstream.decoder(), stream), end])
      const answered = upstream.decoder().answer(upstream.encoder().answer(events))
      const whole = caller.encoder().answer([...answered, end])
      const chunks = streamed.filter((data) => data !== '[DONE]') as Json[]
      expect(saidBy(decoded(caller.decoder(), chunks))).toEqual(saidBy(caller.decoder().answer(whole)))
    }),
  )

  it.each([
    ['chat completions', chat, 'chat'],
    ['messages', messages, 'messages'],
  ] as Array<[string, Dialect, 'chat' | 'messages']>)('%s to completions', (_name, upstream, family) =>
    forEachSeed(SEEDS, (random) => {
      const events = randomEvents(random, family)
      const stream = payloads(upstream.encoder(), events).filter((data) => data !== '[DONE]') as Json[]
      const parts = payloads(completions(), [...decoded(upstream.decoder(), stream), end]).slice(
        0,
        -1,
      ) as Array<{
        choices: Array<{ text: string; finish_reason: string | null }>
        usage?: unknown
      }>
      const answered = upstream.decoder().answer(upstream.encoder().answer(events))
      const whole = completions().answer([...answered, end])
      const choices = parts.flatMap((part) => part.choices)
      expect([
        {
          ...choices.at(-1),
          text: choices.map((choice) => choice.text).join(''),
        },
      ]).toEqual(whole.choices)
      expect(parts.at(-1)?.usage).toEqual(whole.usage)
    }),
  )
})

describe('official clients put a stream together to the whole answer', () => {
  it.each(CHAT_CLIENTS)('%s', (_name, accumulate) =>
    forEachSeed(CLIENT_SEEDS, async (random) => {
      const events = randomEvents(random, random.chance(50) ? 'chat' : 'messages')
      const one = chat.encoder()
      const made = await accumulate(
        events.flatMap((event) => one.frames(event)),
        random,
      )
      expect(chatEssence(made)).toEqual(chatEssence(chat.encoder().answer(events)))
    }),
  )

  it.each(MESSAGES_CLIENTS)('%s', (_name, accumulate) =>
    forEachSeed(CLIENT_SEEDS, async (random) => {
      const events = randomEvents(random, random.chance(50) ? 'chat' : 'messages')
      const one = messages.encoder()
      const frames = events.flatMap((event) => one.frames(event))
      const made = await accumulate(frames, random)
      expect(messageEssence(made)).toEqual(messageEssence(messages.encoder().answer(events)))
      expectOrderlyBlocks(readFrames(frames).map(({ data }) => data as Json))
    }),
  )
})

describe('arguments that are not JSON', () => {
  it.each(MESSAGES_CLIENTS)('reach %s unchanged', async (_name, accumulate) => {
    const one = messages.encoder()
    const events = [start(), call(0, 'look'), args(0, "{'q': 1}"), stop('tool_calls'), end]
    const made = accumulate(
      events.flatMap((event) => one.frames(event)),
      new SeededRandom(1),
    )
    await expect(made).rejects.toThrow('JSON')
  })
})

/** Clients keep only the last piece of members that they do not know, of reasoning too; and say `""` for null. */
function chatEssence(completion: Json) {
  const { id, created, model, object, usage, choices } = completion
  return {
    ...{ id, created, model, object, usage },
    choices: (choices as Array<{ message: Json } & Json>).map(({ index, finish_reason, message }) => ({
      index,
      finish_reason,
      role: message.role,
      content: message.content ?? '',
      refusal: message.refusal,
      annotations: message.annotations,
      calls: (message.tool_calls as Json[] | undefined)?.map(({ id, type, function: made }) => ({
        id,
        type,
        name: (made as Json).name,
        arguments: (made as Json).arguments,
      })),
    })),
  }
}

/** Clients add what they parsed. */
function messageEssence({ parsed_output, content, ...message }: Json) {
  const blocks = (content as Json[]).map(({ parsed_output: _parsed, ...block }) => block)
  return { ...message, content: blocks }
}

/** Each block begins once, ends once, in order, and has nothing outside of that. */
function expectOrderlyBlocks(events: Json[]) {
  let open: number | null = null
  let next = 0
  for (const { type, index } of events) {
    if (type === 'content_block_start') {
      expect([open, index]).toEqual([null, next])
      open = next++
    } else if (type === 'content_block_delta') expect(index).toBe(open)
    else if (type === 'content_block_stop') {
      expect(index).toBe(open)
      open = null
    } else if (type === 'message_delta') expect(open).toBeNull()
  }
}
