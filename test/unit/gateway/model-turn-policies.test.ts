import { afterEach, describe, expect, it, vi } from 'vitest'
import { TurnFailure } from '../../../src/gateway/calls/turn-failure.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import {
  batchesOf,
  type Json,
  said,
  streamed,
  TurnWorld,
  thrownBy,
  user,
  whole,
} from './model-turn-harness.ts'
import { chunks, events } from './stream-reading.ts'

afterEach(() => vi.unstubAllGlobals())

const CODE = 'CODE-1234'
const DIRECTIONS = ['request', 'response', 'tool_arguments', 'tool_result']

/** A policy that looks for codes in some directions. */
const policy = (action: string, directions: readonly string[] = DIRECTIONS, more: Json = {}): Json => ({
  directions,
  rules: [{ custom: 'code', action }],
  patterns: [{ id: 'code', pattern: 'CODE-[0-9]{4}' }],
  uninspectable: { tool_result: 'allow' },
  ...more,
})

const CHAT_ANSWER = chunks(
  { id: 'c', choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] },
  '[DONE]',
)
const messagesAnswer = (...blocks: Array<{ type: string } & Json>) =>
  events(
    { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, output_tokens: 1 } } },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  )
const MESSAGES_ANSWER = messagesAnswer()

const thought = (text: string) => ({
  type: 'reasoning',
  content: [{ type: 'reasoning_text', text }],
  signature: 'proof',
  origin: 'messages:claude',
})
const CALL = { type: 'function_call', call_id: 't', name: 'look', arguments: '{}' }
const OUTPUT = { type: 'function_call_output', call_id: 't', output: 'seen' }

/** The parts of a turn that reach an upstream. */
async function sent(policies: Json[], members: Json): Promise<string> {
  const model = members.model ?? 'chat-model'
  const answer = model === 'chat-model' ? CHAT_ANSWER : MESSAGES_ANSWER
  const world = new TurnWorld([streamed(answer)], policies)
  await world.events({ model, ...members })
  const outcome = await world.outcome()
  const { inspected, uninspected, released, withheld } = outcome?.request ?? {
    inspected: 0,
    uninspected: 0,
    released: 0,
    withheld: -1,
  }
  expect(inspected + uninspected).toBe(released + withheld)
  return JSON.stringify(world.asked[0]?.body)
}

const refusal = async (policies: Json[], members: Json) => {
  const world = new TurnWorld([], policies)
  const error = await thrownBy(() => world.begin({ model: 'chat-model', ...members }))
  expect(world.asked).toEqual([])
  return error instanceof ApiError ? error.code : error
}

/** Each place of a turn that can have a text, with its direction. */
const PLACES: Array<[name: string, direction: string, members: Json]> = [
  ['instructions', 'request', { instructions: `a ${CODE}`, input: [user('Hi')] }],
  ['a message as text', 'request', { input: [user(`a ${CODE}`)] }],
  ['a message without a type', 'request', { input: [{ role: 'user', content: `a ${CODE}` }] }],
  ['a part of a message', 'request', { input: [user([{ type: 'input_text', text: `a ${CODE}` }])] }],
  ['a developer', 'request', { input: [{ type: 'message', role: 'developer', content: CODE }, user('Hi')] }],
  [
    'the assistant',
    'request',
    {
      input: [
        user('Hi'),
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: `a ${CODE}` }] },
        user('Go on'),
      ],
    },
  ],
  [
    'a refusal',
    'request',
    {
      input: [
        user('Hi'),
        { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: `a ${CODE}` }] },
        user('Go on'),
      ],
    },
  ],
  [
    'the address of an image',
    'request',
    { input: [user([{ type: 'input_image', image_url: `https://a.example/${CODE}` }])] },
  ],
  [
    'a tool',
    'request',
    { input: [user('Hi')], tools: [{ type: 'function', name: 'f', description: CODE, parameters: {} }] },
  ],
  [
    'a schema, whatever its members are named',
    'request',
    {
      input: [user('Hi')],
      tools: [
        { type: 'function', name: 'f', parameters: { properties: { input: { type: 'string', id: CODE } } } },
      ],
    },
  ],
  [
    'what a function is called with',
    'tool_arguments',
    { input: [user('Hi'), { ...CALL, arguments: JSON.stringify({ a: CODE }) }, OUTPUT] },
  ],
  [
    'what a custom tool is called with',
    'tool_arguments',
    {
      input: [
        user('Hi'),
        { type: 'custom_tool_call', call_id: 't', name: 'look', input: `a ${CODE}` },
        { ...OUTPUT, type: 'custom_tool_call_output' },
      ],
    },
  ],
  ['an output', 'tool_result', { input: [user('Hi'), CALL, { ...OUTPUT, output: `a ${CODE}` }] }],
  [
    'a part of an output, named before its type',
    'tool_result',
    {
      input: [
        user('Hi'),
        CALL,
        { output: [{ type: 'input_text', text: `a ${CODE}` }], call_id: 't', type: 'function_call_output' },
      ],
    },
  ],
]

describe('a policy on a turn', () => {
  it.each(PLACES)('finds what it looks for in %s', async (_name, direction, members) => {
    expect(await sent([], members)).toContain(CODE)
    const redacted = await sent([policy('redact', [direction])], members)
    expect(redacted).not.toContain(CODE)
    expect(redacted).toContain('[REDACTED:')
    expect(await refusal([policy('block', [direction])], members)).toBe('dlp_blocked')
    // All of a turn is sent by the caller, whatever it calls its items.
    expect(await refusal([policy('block', ['request'])], members)).toBe('dlp_blocked')
    const others = DIRECTIONS.filter((other) => other !== direction && other !== 'request')
    expect(await sent([policy('block', others)], members)).toContain(CODE)
  })

  it('takes the last type of an item, as who reads it does', async () => {
    const body = `{"type":"function_call_output","type":"message","role":"user","content":"a ${CODE}"}`
    const world = new TurnWorld([], [policy('block', ['request'])])
    const error = await thrownBy(() =>
      world.begin(
        {},
        { body: new TextEncoder().encode(`{"model":"chat-model","stream":true,"input":[${body}]}`) },
      ),
    )
    expect(error).toMatchObject({ code: 'dlp_blocked' })
  })

  it('leaves proofs alone, which are no texts', async () => {
    const input = [
      user('Hi'),
      { ...thought('Hm.'), signature: CODE },
      { type: 'reasoning', content: [], redacted: CODE, origin: 'messages:claude' },
      CALL,
      OUTPUT,
    ]
    const body = await sent([policy('block')], { model: 'messages-model', input })
    expect(body.split(CODE)).toHaveLength(3)
  })

  it('changes no ids, which pair calls with their outputs, but blocks them', async () => {
    const input = [user('Hi'), { ...CALL, call_id: CODE }, { ...OUTPUT, call_id: CODE }]
    const turn = { model: 'messages-model', input }
    expect((await sent([policy('redact')], turn)).split(CODE)).toHaveLength(3)
    await expect(sent([policy('block')], turn)).rejects.toMatchObject({ code: 'dlp_blocked' })
  })

  it('takes the proof from thinking that it edits, and so the model never sees it again', async () => {
    const turns = (text: string) => ({
      model: 'messages-model',
      input: [user('Hi'), thought(text), CALL, OUTPUT],
    })
    expect(await sent([policy('redact')], turns('Hm.'))).toContain('"thinking":"Hm.","signature":"proof"')
    const edited = await sent([policy('redact')], turns(`Hm ${CODE}.`))
    expect(edited).not.toContain(CODE)
    expect(edited).not.toContain('proof')
    expect(edited).not.toContain('"thinking"')
  })

  const pictured = user([{ type: 'input_image', image_url: `data:image/png;base64,${'QUJD'.repeat(50)}` }])
  const filed = user([
    { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${'QUJD'.repeat(50)}` },
  ])
  const seen = [user('Hi'), CALL, { ...OUTPUT, output: (pictured.content as Json[]).slice() }]

  it.each([
    ['an image', [pictured], 'request'],
    ['a file', [filed], 'request'],
    ['an image in an output', seen, 'tool_result'],
  ])('refuses %s where what cannot be read must not pass', async (_name, input, direction) => {
    const others = DIRECTIONS.filter((other) => other !== direction)
    const blocking = (where: string[], treatment: string) =>
      policy('redact', where, { uninspectable: Object.fromEntries(where.map((each) => [each, treatment])) })
    expect(await refusal([blocking([direction], 'block')], { input })).toBe('dlp_blocked')
    expect(await sent([blocking([direction], 'allow')], { input })).toContain('QUJD')
    expect(await sent([blocking(others, 'block')], { input })).toContain('QUJD')
  })

  it('refuses it in outputs of tools alone, where a policy has no rule for it', async () => {
    const silent = policy('redact', DIRECTIONS, { uninspectable: {} })
    const output = { ...OUTPUT, output: filed.content as Json[] }
    expect(await refusal([silent], { input: seen })).toBe('dlp_blocked')
    expect(await refusal([silent], { input: [user('Hi'), CALL, output] })).toBe('dlp_blocked')
    expect(await sent([silent], { input: [pictured, filed] })).toContain('QUJD')
  })

  it('does not take what a picture or a file holds for text', async () => {
    const patterns = { patterns: [{ id: 'code', pattern: 'QUJD' }] }
    for (const input of [[pictured], [filed], seen]) {
      expect(await sent([policy('block', DIRECTIONS, patterns)], { input })).toContain('QUJD')
    }
  })

  it('is in the record of a turn that it stopped', async () => {
    const world = new TurnWorld([], [policy('block')])
    await thrownBy(() => world.begin({ model: 'chat-model', input: [user(CODE)] }))
    const [record] = world.ledger.recorded
    expect(record?.outcome).toMatchObject({ status: 400, errorCode: 'dlp_blocked', cost: 0 })
    expect(Object.values(record?.outcome.dlp?.findings ?? {})).toEqual([1])
    expect(record?.outcome.dlp?.policyVersion).not.toBe('none')
    expect(world.ledger.opened).toEqual([])
  })

  it('is in the record of a turn that its translation refuses', async () => {
    const world = new TurnWorld([], [policy('redact')])
    const input = [{ ...OUTPUT, output: CODE }]
    const error = await thrownBy(() => world.begin({ model: 'chat-model', input }))
    expect(error).toMatchObject({ status: 400, code: 'invalid_body' })
    const [record] = world.ledger.recorded
    expect(Object.values(record?.outcome.dlp?.findings ?? {})).toEqual([1])
  })
})

const chatText = (content: string) => chunks({ id: 'c', choices: [{ index: 0, delta: { content } }] })
const CHAT_END = chunks({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }, '[DONE]')
const delta = (index: number, part: Json) => ({ type: 'content_block_delta', index, delta: part })
const begun = (index: number, type: string) => ({
  type: 'content_block_start',
  index,
  content_block: { type },
})
const stop = (index: number) => ({ type: 'content_block_stop', index })

describe('a policy on an answer', () => {
  const INPUT = [user('Hi')]

  it('redacts a streamed text over its pieces', async () => {
    const world = new TurnWorld(
      [streamed(chatText('a CO'), chatText('DE-12'), chatText('34 b'), CHAT_END)],
      [policy('redact')],
    )
    const told = await world.events({ model: 'chat-model', input: INPUT })
    expect(said(told, 'text')).toMatch(/^a \[REDACTED:[A-Z]+] b$/)
    const { inspected, uninspected, released, withheld } = (await world.outcome())?.response ?? {
      inspected: -1,
      uninspected: 0,
      released: 0,
      withheld: 0,
    }
    expect(inspected + uninspected).toBe(released + withheld)
  })

  it('sends what it held back of a part before the next part begins', async () => {
    const reasoned = chunks({ id: 'c', choices: [{ index: 0, delta: { reasoning_content: 'so CODE-' } }] })
    const world = new TurnWorld([streamed(reasoned, chatText('yes'), CHAT_END)], [policy('redact')])
    const told = await world.events({ model: 'chat-model', input: INPUT })
    expect(said(told, 'reasoning')).toBe('so CODE-')
    const types = told.map(({ type }) => type)
    expect(types.lastIndexOf('reasoning')).toBeLessThan(types.indexOf('text'))
  })

  it('takes the signature of thinking that it changed, and of no other', async () => {
    const thinking = (text: string) =>
      messagesAnswer(
        begun(0, 'thinking'),
        delta(0, { type: 'thinking_delta', thinking: text }),
        delta(0, { type: 'signature_delta', signature: 'proof' }),
        stop(0),
      )
    const told = async (action: string, text: string) => {
      const world = new TurnWorld([streamed(thinking(text))], [policy(action)])
      return world.events({ model: 'messages-model', input: INPUT })
    }
    const kept = { type: 'reasoning_signature', choice: 0, signature: 'proof' }
    expect(await told('redact', 'Hm.')).toContainEqual(kept)
    const changed = await told('redact', `Hm ${CODE}`)
    expect(said(changed, 'reasoning')).toMatch(/^Hm \[REDACTED/)
    expect(changed.map(({ type }) => type)).not.toContain('reasoning_signature')
  })

  it('keeps tokens in signed thinking, and restores the values elsewhere', async () => {
    const inputs: string[] = []
    const answer = ({ body }: { body: Json }) => {
      const token = /\[\[[A-Z][^\]"]*]]/.exec(JSON.stringify(body.messages))?.[0] ?? 'none'
      inputs.push(token)
      const stream = messagesAnswer(
        begun(0, 'thinking'),
        delta(0, { type: 'thinking_delta', thinking: `about ${token}` }),
        delta(0, { type: 'signature_delta', signature: 'proof' }),
        stop(0),
        begun(1, 'text'),
        delta(1, { type: 'text_delta', text: `It is ${token}` }),
        stop(1),
      )
      return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
    }
    const world = new TurnWorld([answer], [policy('tokenise')])
    const told = await world.events({ model: 'messages-model', input: [user(`My code is ${CODE}`)] })
    expect(inputs[0]).not.toBe('none')
    expect(said(told, 'text')).toBe(`It is ${CODE}`)
    expect(said(told, 'reasoning')).toBe(`about ${inputs[0]}`)
    expect(told).toContainEqual({ type: 'reasoning_signature', choice: 0, signature: 'proof' })
  })

  it('blocks an answer that begins with it by an error of its own', async () => {
    const first = chunks({
      id: 'c',
      choices: [{ index: 0, delta: { content: CODE }, finish_reason: 'stop' }],
    })
    const world = new TurnWorld([streamed(first, 'data: [DONE]\n\n')], [policy('block', ['response'])])
    const error = await thrownBy(() => world.begin({ model: 'chat-model', input: INPUT }))
    expect(error).toMatchObject({ name: 'ApiError', code: 'dlp_blocked' })
  })

  it('ends a streamed answer at what it blocks, and shows nothing of it', async () => {
    const world = new TurnWorld(
      [streamed(chatText('Well. '), chatText('It is COD'), chatText('E-1234.'), CHAT_END)],
      [policy('block', ['response'])],
    )
    const turn = await world.begin({ model: 'chat-model', input: INPUT })
    const told: string[] = []
    const error = await thrownBy(async () => {
      for await (const batch of turn.batches) told.push(JSON.stringify(batch))
    })
    expect(error).toBeInstanceOf(TurnFailure)
    expect(told.join('')).toContain('Well.')
    expect(told.join('')).not.toContain('COD')
    expect(await world.outcome()).toMatchObject({ errorCode: 'dlp_blocked' })
  })

  it('applies to arguments of calls, and to whole answers', async () => {
    const message = {
      role: 'assistant',
      content: `a ${CODE}`,
      tool_calls: [
        { id: 'c', type: 'function', function: { name: 'look', arguments: JSON.stringify({ code: CODE }) } },
      ],
    }
    const world = new TurnWorld(
      [whole({ id: 'c', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })],
      [policy('redact')],
    )
    const told = (await batchesOf(await world.begin({ model: 'chat-model', input: INPUT }))).flat()
    expect(JSON.stringify(told)).not.toContain(CODE)
    const json = told.map((event) => (event.type === 'tool_arguments' ? event.json : '')).join('')
    expect(JSON.parse(json).code).toMatch(/^\[REDACTED/)
  })
})
