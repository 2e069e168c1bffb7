import { describe, expect, it } from 'vitest'
import { modelRequest } from '../../../src/responses/context/model-request.ts'
import type { ReasoningSecret } from '../../../src/responses/items/reasoning-seal.ts'
import { openReasoning, sealReasoning } from '../../../src/responses/items/reasoning-seal.ts'
import { sealOpener } from '../../../src/responses/items/sealed-content.ts'
import { newItemId } from '../../../src/responses/items/types/item-types.ts'
import { newTurn } from '../../../src/responses/model/response-ids.ts'
import type { ContextItem } from '../../../src/responses/model/types.ts'
import type { ResponseSettings } from '../../../src/wire/responses.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { call, itemOf, message, NOTHING_OPENS, output, parsed, refusal } from './items.ts'

const settings: ResponseSettings = { model: 'm' }
const closed = { open: NOTHING_OPENS }
const ids = (items: readonly ContextItem[], stored = 0) =>
  (parsed(bodyOf(settings, items, { ...closed, stored })).input as Array<{ id: string }>).map(({ id }) => id)
const bodyOf = (...parameters: Parameters<typeof modelRequest>) => modelRequest(...parameters).bytes
const idsOf = (...items: ContextItem[]) => items.map(({ id }) => id)

describe('settings', () => {
  it('are those for a model, and none that are null', () => {
    const tool = { type: 'function', name: 'n', parameters: { type: 'object' } }
    const choice = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'n' }] }
    const body = bodyOf(
      {
        ...settings,
        stream: false,
        store: true,
        metadata: { a: 1 },
        conversation: 'conv_1',
        include: ['x'],
        instructions: 'Be brief.',
        tools: [tool],
        tool_choice: choice,
        top_p: null,
        temperature: 0,
        parallel_tool_calls: false,
        reasoning: { effort: 'low' },
        client_metadata: {},
        member_of_tomorrow: [1],
      },
      [],
      closed,
    )
    expect(parsed(body)).toEqual({
      model: 'm',
      member_of_tomorrow: [1],
      stream: true,
      instructions: 'Be brief.',
      tools: [tool],
      tool_choice: choice,
      parallel_tool_calls: false,
      temperature: 0,
      reasoning: { effort: 'low' },
      input: [],
    })
  })
})

describe('items', () => {
  it('stand in their order, as the bytes that they are', () => {
    const random = new SeededRandom(5)
    const texts = ['', 'a', 'ä€😀', '\\"\u0000\ud800', 'x'.repeat(70_000), ']}', '"input":[']
    for (let round = 0; round < 100; round++) {
      const items: ContextItem[] = []
      for (let count = random.below(12); count > 0; count--) {
        const text = random.pick(texts)
        if (random.chance(0.3)) items.push(call(`c${round}.${count}`), output(`c${round}.${count}`, text))
        else items.push(message(random.pick(['user', 'assistant', 'system', 'developer']), text))
      }
      const body = bodyOf(settings, items, closed)
      expect(parsed(body).input).toEqual(items.map(({ bytes }) => parsed(bytes)))
      const text = new TextDecoder().decode(body)
      for (const { bytes } of items) expect(text.includes(new TextDecoder().decode(bytes))).toBe(true)
    }
  })

  it('of kinds that no model takes are left out', () => {
    const told = message('user', 'x')
    const kept = itemOf({ type: 'web_search_call', id: 'ws', status: 'completed' })
    expect(ids([kept, told, kept])).toEqual([told.id])
  })

  it('are copied once', () => {
    const large = message('user', 'x'.repeat(8_000_000))
    const before = process.memoryUsage().arrayBuffers
    const body = bodyOf(settings, [large, large, large], closed)
    expect(body.length).toBeGreaterThan(24_000_000)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(body.length + 1_000_000)
  })

  it('are moved into it when they are large and that is asked for', () => {
    const items = ['a', 'b', 'c'].map((letter) =>
      message('user', letter.repeat(letter === 'b' ? 10 : 900_000)),
    )
    const before = items.map(({ bytes }) => bytes)
    const whole = bodyOf(settings, items, closed)
    const texts = items.map(({ bytes }) => Buffer.from(bytes).toString())
    const body = bodyOf(settings, items, { ...closed, transfersItems: true })
    expect(Buffer.from(body).equals(whole)).toBe(true)
    expect(items.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(texts)
    expect(items.map(({ bytes }) => bytes.buffer === body.buffer)).toEqual([true, false, true])
    expect(before.map(({ length }) => length === 0)).toEqual([true, false, true])
  })
})

describe('calls and outputs', () => {
  const user = message('user', 'x')

  it('of a request need each other', () => {
    const told = 'No tool output found for function call c1.'
    expect(refusal(() => ids([user, call('c1')]))).toBe(`400 invalid_body ${told}`)
    expect(refusal(() => ids([user, output('c1')]))).toContain(
      'No tool call found for function call output with call_id c1.',
    )
    expect(refusal(() => ids([output('c1'), call('c1')]))).toContain('400 invalid_body')
    expect(refusal(() => ids([call('c1'), output('c1'), output('c1')]))).toContain('No tool call found')
    const custom = itemOf({ type: 'custom_tool_call', call_id: 'c1', name: 'n', input: '' })
    expect(refusal(() => ids([custom, output('c1')]))).toContain('No tool')
    expect(refusal(() => ids([custom]))).toBe(
      '400 invalid_body No tool output found for custom tool call c1.',
    )
  })

  it('may use an id again in a later turn', () => {
    const items = [call('c'), output('c'), user, call('c'), output('c')]
    expect(ids(items)).toEqual(idsOf(...items))
  })

  it('that are stored must be answered in the turn that follows', () => {
    const history = [user, call('c1'), call('c2')]
    const answers = [output('c2'), output('c1')]
    expect(ids([...history, ...answers], 3)).toEqual(idsOf(...history, ...answers))
    expect(refusal(() => ids([...history, output('c1')], 3))).toContain('function call c2.')
    expect(refusal(() => ids([...history, user], 3))).toContain('function call c1.')
  })

  it('that are stored and lost their partner are left out', () => {
    const said = message('assistant', 'done')
    const history = [user, call('c1'), output('c2'), user, said]
    expect(ids([...history, user], history.length)).toEqual(idsOf(user, user, said, user))
    expect(refusal(() => ids([...history, output('c1')], history.length))).toBe('nothing was thrown')
  })

  it('that were cut off need no answer', () => {
    const history = [user, call('c1', { status: 'incomplete' })]
    expect(ids([...history, user], 2)).toEqual(idsOf(user, user))
  })
})

describe('turns', () => {
  const hosted = (turn: string, callId: string) =>
    itemOf({
      id: newItemId('service_call', turn),
      type: 'service_call',
      call_id: callId,
      name: 'look',
      arguments: '{}',
      output: `saw ${callId}`,
    })
  const inTurn = (turn: string, item: object) => itemOf({ id: newItemId('message', turn), ...item })
  const inputOf = (items: readonly ContextItem[]) =>
    parsed(bodyOf(settings, items, { ...closed, stored: items.length })).input as Array<
      Record<string, unknown>
    >
  const shapeOf = (items: readonly ContextItem[]) =>
    inputOf(items).map(({ type, call_id: id }) =>
      `${String(type).replace('function_', '')} ${id ?? ''}`.trim(),
    )

  it('end with the results of their calls, whatever stands between these', () => {
    const said = inTurn('aaaaaaaa', { role: 'assistant', content: 'And then.' })
    const items = [
      hosted('aaaaaaaa', 'a1'),
      said,
      call('a2', { id: newItemId('function_call', 'aaaaaaaa') }),
      hosted('aaaaaaaa', 'a3'),
      output('a2'),
      hosted('bbbbbbbb', 'b1'),
      hosted('cccccccc', 'c1'),
    ]
    expect(shapeOf(items)).toEqual([
      'call a1',
      'message',
      'call a2',
      'call a3',
      'call_output a1',
      'call_output a3',
      'call_output a2',
      'call b1',
      'call_output b1',
      'call c1',
      'call_output c1',
    ])
  })

  it('that are not known have one call each: nothing says that calls were made at once', () => {
    const unnamed = ['x', 'y'].map((id) => itemOf({ ...parsed(hosted('aaaaaaaa', id).bytes), id: undefined }))
    expect(shapeOf(unnamed)).toEqual(['call x', 'call_output x', 'call y', 'call_output y'])
  })

  it('leave what stands before them as it was', () => {
    const random = new SeededRandom(7)
    for (let round = 0; round < 50; round++) {
      const items: ContextItem[] = [message('user', 'Begin.')]
      let before: unknown[] = []
      for (let turns = 1 + random.below(6), count = 0; turns > 0; turns--) {
        const turn = newTurn()
        for (let calls = 1 + random.below(3); calls > 0; calls--) {
          if (random.chance(0.3)) items.push(inTurn(turn, { role: 'assistant', content: 'So.' }))
          items.push(hosted(turn, `c${round}.${count++}`))
        }
        const input = inputOf(items)
        expect(input.slice(0, before.length)).toEqual(before)
        before = input
      }
    }
  })
})

describe('reasoning', () => {
  const ring = new Map([['k1', new Uint8Array(32).fill(1)]])
  const owner = { organizationId: 'o', userId: 'u' }
  const secret: ReasoningSecret = [
    { text: 'one "1"', signature: 's1', origin: 'anthropic' },
    { text: '', redacted: 'r', origin: 'anthropic' },
    { text: 'three' },
  ]
  const reasoning = (text: string | null) =>
    itemOf({ type: 'reasoning', summary: [], encrypted_content: text })
  const inputOf = (items: ContextItem[], reader = owner) =>
    parsed(bodyOf(settings, items, { open: sealOpener({ configuration: { VAULT_KEYS: ring } }, reader) }))
      .input

  it('is opened for its owner, a block at a time', () => {
    const user = message('user', 'x')
    expect(inputOf([user, reasoning(sealReasoning(ring, owner, secret)), user])).toEqual([
      parsed(user.bytes),
      {
        type: 'reasoning',
        content: [{ type: 'reasoning_text', text: 'one "1"' }],
        signature: 's1',
        origin: 'anthropic',
      },
      {
        type: 'reasoning',
        content: [{ type: 'reasoning_text', text: '' }],
        redacted: 'r',
        origin: 'anthropic',
      },
      { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'three' }] },
      parsed(user.bytes),
    ])
  })

  it.each<[name: string, text: string | null]>([
    ['none', null],
    ["another gateway's", 'gAAAAABo'],
    ['an empty one', ''],
    ['one with our prefix', 'hgr1_v1.k1.AAAA.AAAA'],
    [
      'an altered one',
      sealReasoning(ring, owner, secret)?.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A')) ?? null,
    ],
    ['one of a key that is gone', sealReasoning(new Map([['k0', new Uint8Array(32)]]), owner, secret)],
    ['one of another user', sealReasoning(ring, { ...owner, userId: 'v' }, secret)],
    ['one of another organization', sealReasoning(ring, { organizationId: 'ou', userId: '' }, secret)],
  ])('is left out when it does not open: %s', (_name, text) => {
    expect(inputOf([reasoning(text)])).toEqual([])
  })

  it('opens under older keys, and has a bound', () => {
    const sealed = sealReasoning(ring, owner, secret) ?? ''
    const newer = new Map([['k2', new Uint8Array(32).fill(2)], ...ring])
    expect(openReasoning(newer, owner, sealed)).toEqual(secret)
    expect(sealed).not.toContain('three')
    expect(sealReasoning(ring, owner, [{ text: 'x'.repeat(9_000_000) }])).toBeNull()
  })
})
