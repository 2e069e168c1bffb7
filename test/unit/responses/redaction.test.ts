import { describe, expect, it } from 'vitest'
import { callPolicy, noPolicy } from '../../../src/dlp/policy/call-policy.ts'
import type { Direction } from '../../../src/dlp/types.ts'
import { drained } from '../../../src/lib/slices.ts'
import { withIncluded } from '../../../src/responses/items/included-members.ts'
import {
  redactedItem,
  redactItem,
  redactItems,
  redactResponse,
} from '../../../src/responses/items/redaction.ts'
import type { ResponseObject } from '../../../src/wire/responses.ts'
import { StepCounter } from '../../harness/counted-steps.ts'
import { CODE, DIRECTIONS, policyOf, profileOf, vaultOf } from '../dlp/relayed-stream.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { bytesOf, message } from './items.ts'

const HIDDEN = '[REDACTED:CODE]'
const read = (policy: ReturnType<typeof policyOf> | null, item: object) =>
  drained(redactItems(policy, [item]))[0]
const say = (text: string) => `My code is ${text}.`

/** Blocks what cannot be inspected in some directions, and redacts codes in all. */
function blocking(...blocked: Direction[]) {
  const profile = (direction: Direction) => ({
    ...profileOf(direction, 'redact'),
    uninspectable: blocked.includes(direction) ? ('block' as const) : ('allow' as const),
  })
  const profiles = Object.fromEntries(DIRECTIONS.map((direction) => [direction, profile(direction)]))
  return callPolicy(profiles as Record<Direction, ReturnType<typeof profile>>, vaultOf())
}

describe('where a text belongs', () => {
  const items: ReadonlyArray<[direction: Direction, name: string, item: (code: string) => object]> = [
    [
      'request',
      'user',
      (code) => ({ content: [{ text: say(code), type: 'input_text' }], type: 'message', role: 'user' }),
    ],
    ['request', 'developer', (code) => ({ type: 'message', role: 'developer', content: say(code) })],
    [
      'response',
      'assistant',
      (code) => ({ type: 'message', content: [{ type: 'output_text', text: say(code) }], role: 'assistant' }),
    ],
    [
      'response',
      'refusal',
      (code) => ({ type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: code }] }),
    ],
    [
      'response',
      'summary',
      (code) => ({
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: code }],
        encrypted_content: `hgr1_v1.key.${'a'.repeat(16)}.QUJD`,
      }),
    ],
    [
      'tool_arguments',
      'arguments',
      (code) => ({
        type: 'function_call',
        call_id: CODE,
        name: 'n',
        arguments: JSON.stringify({ a: [code] }),
      }),
    ],
    [
      'tool_arguments',
      'custom input',
      (code) => ({ type: 'custom_tool_call', call_id: 'c', name: 'n', input: say(code) }),
    ],
    [
      'tool_arguments',
      'a search',
      (code) => ({ type: 'web_search_call', action: { type: 'search', query: code } }),
    ],
    [
      'tool_arguments',
      "a server's tool",
      (code) => ({ type: 'mcp_call', name: 'n', arguments: JSON.stringify({ code }), output: 'x' }),
    ],
    [
      'tool_result',
      "a server's answer",
      (code) => ({ type: 'mcp_call', name: 'n', arguments: '{}', output: say(code) }),
    ],
    ['tool_result', 'output', (code) => ({ type: 'function_call_output', call_id: 'c', output: say(code) })],
    [
      'tool_result',
      'output of parts',
      (code) => ({
        type: 'custom_tool_call_output',
        call_id: 'c',
        output: [{ type: 'input_text', text: code }],
      }),
    ],
    [
      'tool_result',
      'output of a shell',
      (code) => ({
        type: 'shell_call_output',
        call_id: 'c',
        output: [{ stdout: code, outcome: { type: 'exit' } }],
      }),
    ],
  ]

  it.each(items)('%s: %s', (direction, _name, item) => {
    expect(read(policyOf('redact', [direction]), item(CODE))).toEqual(item(HIDDEN))
    const others = DIRECTIONS.filter((other) => other !== direction)
    expect(read(policyOf('redact', others), item(CODE))).toEqual(item(CODE))
  })
})

describe('names that are technical in one place only', () => {
  it.each([
    ['detail', { detail: CODE }],
    ['format', { format: CODE }],
    ['model', { model: CODE }],
    ['id', { nested: { id: CODE } }],
    ['object', { object: CODE }],
    ['ttl', { ttl: CODE }],
    ['a status that is no word', { status: CODE }],
    ['a label of a server that is no word', { server_label: CODE }],
    ['encrypted content of another gateway', { encrypted_content: `gAAAA ${CODE}` }],
    ['content that pretends to be sealed', { encrypted_content: `hgr1_${CODE}` }],
    ['a name', { [CODE]: 1 }],
  ])('%s', (_, members) => {
    const item = { type: 'mcp_call', name: 'n', arguments: '{}', ...members }
    expect(JSON.stringify(read(policyOf('redact'), item))).not.toContain(CODE)
  })

  it('names of metadata', () => {
    const response = { output: [], output_text: '', metadata: { [CODE]: 'x' } } as unknown as ResponseObject
    expect(drained(redactResponse(policyOf('redact'), response)).metadata).toEqual({ [HIDDEN]: 'x' })
  })
})

describe('what becomes of findings', () => {
  const item = { type: 'message', role: 'user', content: `${CODE} and ${CODE}` }

  it.each([
    ['allow', CODE],
    ['warn', CODE],
    ['tokenise', CODE],
    ['redact', HIDDEN],
    ['block', HIDDEN],
    ['mask', '**-****-**7890'],
  ] as const)('%s', (action, told) => {
    const policy = policyOf(action)
    expect(read(policy, item)).toEqual({ ...item, content: `${told} and ${told}` })
    expect(policy.record().findings).toEqual({})
  })

  it('the same when it is read once more', () => {
    for (const action of ['redact', 'block', 'mask'] as const) {
      const once = read(policyOf(action), item) ?? {}
      expect(read(policyOf(action), once)).toEqual(once)
    }
  })

  it('nothing without a policy, and nothing is copied where nothing is found', async () => {
    const bytes = message('user', say('x')).bytes
    expect(await redactedItem(null, bytes)).toBe(bytes)
    expect(await redactedItem(noPolicy, bytes)).toBe(bytes)
    expect(await redactedItem(policyOf('block'), bytes)).toBe(bytes)
    const items = [{ type: 'message', role: 'user', content: 'x' }, item]
    expect(drained(redactItems(policyOf('redact'), items))[0]).toBe(items[0])
  })

  it('stays JSON whatever stands around it', async () => {
    const source = `{ "role" : "user",\n"content":"\\u0022${CODE}\\\\ä😀\\ud800","type":"message"}`
    const told = new TextDecoder().decode(await redactedItem(policyOf('redact'), bytesOf(source)))
    expect(told).toBe(source.replace(CODE, HIDDEN))
  })
})

describe('content that no engine reads', () => {
  const url = `data:image/png;base64,${'A'.repeat(100_000)}`
  const image = { type: 'input_image', image_url: url, detail: 'auto' }
  const note = { type: 'input_text', text: '[Content withheld by a data-loss prevention policy.]' }
  const text = { type: 'input_text', text: say(CODE) }
  const hidden = { type: 'input_text', text: say(HIDDEN) }

  it('gives way to a note where it may not pass', () => {
    const sound = { input_audio: { data: 'A'.repeat(100), format: 'wav' }, type: 'input_audio' }
    const file = { type: 'input_file', file_id: CODE }
    const user = { type: 'message', content: [text, image, sound, file, text], role: 'user' }
    expect(read(blocking('request'), user)).toEqual({ ...user, content: [hidden, note, note, note, hidden] })
    expect(read(blocking('tool_result'), user)).toEqual({
      ...user,
      content: [hidden, image, sound, { ...file, file_id: '[REDACTED:CODE]' }, hidden],
    })
  })

  it('in outputs of tools as well', () => {
    const output = { type: 'function_call_output', call_id: 'c', output: [image, text] }
    expect(read(blocking('tool_result'), output)).toEqual({ ...output, output: [note, hidden] })
    const screen = { type: 'computer_call_output', output: { type: 'computer_screenshot', image_url: url } }
    expect(read(blocking('tool_result'), screen)).toEqual({ ...screen, output: note })
    const drawn = { type: 'image_generation_call', result: 'A'.repeat(5000), status: 'completed' }
    expect(read(blocking('tool_result'), drawn)).toEqual({ ...drawn, result: null })
  })
})

describe('steps grow with an item and no faster', () => {
  const list = (of: string, count: number) => Array(count).fill(of).join(',')
  const name = (index: number) => `n${index}`.padEnd(900, 'x')
  const deep = (inner: string) =>
    Array.from({ length: 200 }, (_, index) => name(index)).reduceRight(
      (held, each) => `{"${each}":${held}}`,
      inner,
    )

  it.each<[name: string, size: number, extra: (size: number) => string]>([
    ['much that no engine reads', 500, (size) => list('{"type":"image"}', size)],
    [
      'much of it within each other',
      100,
      (size) => list(`{"type":"file","a":[${list('{"type":"image"}', 10)}]}`, size),
    ],
    ['much within one', 500, (size) => `{"type":"file","a":[${list('{"type":"image"}', size)}]}`],
    [
      'little values far down in one',
      2_000,
      (size) => `{"type":"image","a":${deep(`[${list('1', size)}]`)}}`,
    ],
  ])('%s', (_, size, extra) => {
    const policies = [policyOf('redact'), blocking('request')]
    const item = (factor: number) =>
      bytesOf(`{"type":"message","role":"user","content":"x","extra":[${extra(size * factor)}]}`)
    const items = { 1: item(1), 4: item(4) }
    using counter = new StepCounter()
    for (const policy of policies) {
      const [small, large] = ([1, 4] as const).map((factor) =>
        counter.stepsOf(() => drained(redactItem(policy, items[factor]))),
      ) as [number, number]
      // Linear work takes 4 times as many, squared work 16.
      expect(small).toBeGreaterThan(1_000)
      expect(large / small).toBeLessThan(5)
    }
  })
})

describe('a response', () => {
  const part = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })
  const response = {
    id: 'resp_1',
    instructions: say(CODE),
    output_text: `a${CODE}`,
    output: [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [part('a'), part(CODE)],
      },
      { type: 'reasoning', id: 'rs_1', status: 'completed', summary: [], encrypted_content: 'sealed' },
    ],
  } as unknown as ResponseObject

  it('is read as its items are', () => {
    const told = drained(redactResponse(policyOf('block'), response))
    expect(told.output_text).toBe(`a${HIDDEN}`)
    expect(told.instructions).toBe(say(HIDDEN))
    expect(JSON.stringify(told)).not.toContain(CODE)
    expect(told.id).toBe('resp_1')
    expect(drained(redactResponse(null, response))).toEqual(response)
    expect(
      drained(redactResponse(policyOf('block', ['response']), { ...response, instructions: null }))
        .instructions,
    ).toBeNull()
  })

  it('repeats what was asked for as it may be read, whatever its members are called', () => {
    const tools = [{ type: 'function', name: 'f', parameters: { properties: { id: { description: CODE } } } }]
    const asked = { tools, metadata: { id: CODE, type: { format: [CODE, 7, null] } }, user: CODE }
    const told = drained(redactResponse(policyOf('redact'), { ...response, ...asked }))
    expect(JSON.stringify(told)).not.toContain(CODE)
    expect(told.metadata).toEqual({ id: HIDDEN, type: { format: [HIDDEN, 7, null] } })
    expect(told.tools).toMatchObject([{ type: 'function', name: 'f' }])
    expect(
      drained(redactResponse(policyOf('redact', ['response']), { ...response, ...asked })),
    ).toMatchObject(asked)
  })

  it('shows sealed reasoning to those who asked for it', () => {
    const [said, thought] = response.output
    expect(said && withIncluded(said, new Set())).toBe(said)
    expect(thought && withIncluded(thought, new Set())).not.toHaveProperty('encrypted_content')
    expect(thought).toHaveProperty('encrypted_content')
  })
})

describe('an item of any shape', () => {
  it('stays what it is but for what was found in its texts', () => {
    const random = new SeededRandom(9)
    const technical = new Set(['id', 'type', 'status', 'call_id'])
    const value = (depth: number): unknown => {
      const kind = random.below(depth > 3 ? 4 : 6)
      if (kind === 0) return random.pick([null, true, -1.5e3, 0])
      if (kind < 4) return random.pick(['', 'ä\n"\\', CODE, `x ${CODE}\u0000${CODE} y`, '😀'.repeat(50)])
      const all = Array.from({ length: random.below(4) }, () => value(depth + 1))
      if (kind === 4) return all
      const names = random.pick([
        ['text', 'call_id', 'a', 'z'],
        ['status', 'title', 'query', 'encrypted_content'],
      ])
      return Object.fromEntries(all.map((each, index) => [names[index], each]))
    }
    // Technical names are exempt in their own place only.
    const expected = (given: unknown): unknown => {
      if (typeof given === 'string') return given.replaceAll(CODE, HIDDEN)
      if (Array.isArray(given)) return given.map(expected)
      if (given === null || typeof given !== 'object') return given
      return Object.fromEntries(Object.entries(given).map(([key, each]) => [key, expected(each)]))
    }
    const expectedItem = (item: object) =>
      Object.fromEntries(
        Object.entries(item).map(([name, each]) => [name, technical.has(name) ? each : expected(each)]),
      )
    for (let round = 0; round < 500; round++) {
      const type = random.pick(['web_search_call', 'shell_call', 'mcp_list_tools', 'compaction'])
      const item = { call_id: CODE, action: value(0), type, output: value(0), status: 'completed' }
      expect(read(policyOf('redact'), item)).toEqual(expectedItem(item))
    }
  })
})
