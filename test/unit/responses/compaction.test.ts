import { describe, expect, it } from 'vitest'
import {
  forcedPlan,
  isWorthwhile,
  planAutomaticCompaction,
} from '../../../src/responses/compaction/compaction-plan.ts'
import { shortenedItem } from '../../../src/responses/compaction/shortened-item.ts'
import { fromLatestCompaction, pendingCalls } from '../../../src/responses/context/kept-items.ts'
import { openCompaction, sealCompaction } from '../../../src/responses/items/compaction-seal.ts'
import { openReasoning } from '../../../src/responses/items/reasoning-seal.ts'
import { sealOpener } from '../../../src/responses/items/sealed-content.ts'
import { ITEM_TYPES } from '../../../src/responses/items/types/item-types.ts'
import type { ContextItem } from '../../../src/responses/model/types.ts'
import type { ResponseSettings } from '../../../src/wire/responses.ts'
import { call, itemOf, message, output, parsed } from './items.ts'

const ring = new Map([['k1', new Uint8Array(32).fill(7)]])
const owner = { organizationId: 'o', userId: 'u' }
const open = sealOpener({ configuration: { VAULT_KEYS: ring } }, owner)
const MODEL = { contextWindow: 10_000, maxOutputTokens: 1_000 }
const settings: ResponseSettings = { model: 'm' }
/** A token for each four bytes. */
const countTokens = (json: Uint8Array) => Math.ceil(json.length / 4)

const compactionOf = (summary: string | null, calls: string[] = [], userBytes = 1_000): ContextItem =>
  itemOf({
    type: 'compaction',
    encrypted_content: sealCompaction(ring, owner, { summary, calls, userBytes }),
  })
const textOf = (length: number) => 'x'.repeat(length)

describe('a context from its latest compaction on', () => {
  const system = message('system', 'Be brief.')
  const [one, two, three] = [message('user', 'One'), message('user', 'Two'), message('user', 'Three')]
  const answer = message('assistant', 'Answer')

  it('has the summary in place of what it stands for', () => {
    const latest = compactionOf('B')
    const items = [system, one, answer, compactionOf('A'), two, answer, latest, three]
    expect(fromLatestCompaction(items, open)).toEqual([system, latest, one, two, three])
  })

  it('keeps messages of the user up to a size, and the last ones of any size', () => {
    const long = message('user', textOf(5_000))
    const latest = compactionOf('A')
    expect(fromLatestCompaction([one, long, answer, two, latest], open)).toEqual([latest, two])
    expect(fromLatestCompaction([one, answer, long, long, latest], open)).toEqual([latest, long, long])
  })

  it('keeps the latest calls that it names, with their outputs and the reasoning before them', () => {
    const [early, late] = [call('c'), call('c')]
    const reasoning = itemOf({ type: 'reasoning', summary: [] })
    const result = output('c')
    const latest = compactionOf('A', ['c'])
    const items = [one, early, output('c'), reasoning, answer, reasoning, late, result, latest]
    expect(fromLatestCompaction(items, open)).toEqual([latest, one, reasoning, late, result])
  })

  it.each([
    ['stands for nothing', compactionOf(null)],
    ['cannot be opened', itemOf({ type: 'compaction', encrypted_content: 'gAAAAABo' })],
  ])('is the whole one when the compaction %s', (_, compaction) => {
    const items = [one, answer, compaction, two]
    expect(fromLatestCompaction(items, open)).toEqual(items)
  })
})

describe('calls that a model has not continued after', () => {
  it('are those without an output, those whose outputs end the context, and those of the last turn', () => {
    const cut = call('e', { status: 'incomplete' })
    const items = [
      call('a'),
      output('a'),
      call('b'),
      message('user', 'x'),
      cut,
      call('a'),
      call('d'),
      output('d'),
    ]
    expect(pendingCalls(items, [])).toEqual(['a', 'd'])
    expect(pendingCalls(items.slice(0, 2), [call('a')])).toEqual(['a'])
    expect(pendingCalls([...items.slice(0, 2), message('assistant', 'x')], [])).toEqual([])
  })
})

describe('a plan', () => {
  const many = Array.from({ length: 30 }, (_, index) => [
    message('user', `Question ${index}`),
    call(`c${index}`),
    output(`c${index}`, textOf(3_000)),
    message('assistant', 'Answer'),
  ]).flat()

  it('splits a context into parts that the model can read, and no call from its output', () => {
    const { parts, outputTokens } = forcedPlan({ items: many }, settings, MODEL, countTokens)
    expect(parts.length).toBeGreaterThan(2)
    expect(parts.flat()).toEqual(many)
    for (const part of parts) {
      const tokens = part.reduce((sum, { bytes }) => sum + countTokens(bytes), 0)
      expect(tokens + 2 * outputTokens).toBeLessThan(MODEL.contextWindow)
      const ids = (type: string) => part.filter((item) => item.type === type).map(({ callId }) => callId)
      expect(ids('function_call')).toEqual(ids('function_call_output'))
    }
  })

  it('shortens texts above the limit of a part', () => {
    const long = message('assistant', `Begin ${textOf(100_000)} end`)
    const { parts } = forcedPlan({ items: [long] }, settings, MODEL, countTokens)
    expect(parts).toHaveLength(1)
    const [shortened] = parts[0] ?? []
    expect(countTokens(shortened?.bytes ?? long.bytes)).toBeLessThan(MODEL.contextWindow)
    expect(JSON.stringify(parsed(shortened?.bytes ?? long.bytes))).toMatch(/Begin x.*left out here.*x end/)
  })

  it('has instructions and pending calls in no part', () => {
    const items = [message('developer', 'Be brief.'), ...many, call('open')]
    const { parts, kept } = forcedPlan({ items }, settings, MODEL, countTokens)
    expect(parts.flat()).toEqual(many)
    expect(kept.calls).toEqual(['open'])
  })

  it('is made above the threshold, and where a summary is shorter', () => {
    const planned = (items: ContextItem[], compact_threshold: number | null) =>
      planAutomaticCompaction(
        { items },
        { ...settings, context_management: [{ type: 'compaction', compact_threshold }] },
        MODEL,
        countTokens,
      ) !== null
    expect(planned(many, 5_000)).toBe(true)
    expect(planned(many, 1_000_000)).toBe(true)
    expect(planned(many, null)).toBe(true)
    expect(planned(many.slice(0, 12), 5_000)).toBe(false)
    expect(planned(many.slice(0, 12), 1_000)).toBe(true)
    expect(planned([message('user', textOf(30_000))], 1_000)).toBe(false)
    expect(planAutomaticCompaction({ items: many }, settings, MODEL, countTokens)).toBe(null)
    const short = forcedPlan({ items: many.slice(0, 4) }, settings, MODEL, countTokens)
    expect(isWorthwhile({ items: many.slice(0, 4) }, short, countTokens)).toBe(false)
  })
})

describe('a shortened item', () => {
  it('keeps arguments valid JSON, and loses media', () => {
    const long = {
      ...itemOf({
        type: 'function_call',
        call_id: 'c',
        name: 'f',
        arguments: JSON.stringify({ a: textOf(5_000) }),
      }),
    }
    const json = parsed(shortenedItem(long, 400).bytes).arguments as string
    expect(json.length).toBeLessThan(1_000)
    expect(JSON.parse(json)).toEqual({ shortened: expect.stringContaining('left out here') })
    const image = { type: 'input_image', image_url: `data:image/png;base64,${textOf(5_000)}` }
    const media = itemOf({ role: 'user', content: [{ type: 'input_text', text: 'Look.' }, image] })
    expect(parsed(shortenedItem(media, 400).bytes).content).toEqual([
      { type: 'input_text', text: 'Look.' },
      { type: 'input_text', text: '[An image, file or sound is left out here.]' },
    ])
  })
})

describe('every type of item that can be long', () => {
  const [long, size] = [textOf(200_000), 4_000]
  const address = `https://a.example/${textOf(300)}`
  const arguments_ = JSON.stringify({ a: long })
  const withCall = { call_id: 'c', name: 'f' }
  const MEMBERS: Record<string, object> = {
    message: { role: 'assistant', content: [{ type: 'output_text', text: long, annotations: [] }] },
    reasoning: { summary: [{ type: 'summary_text', text: long }] },
    function_call: { ...withCall, arguments: arguments_ },
    function_call_output: { call_id: 'c', output: [{ type: 'input_text', text: long }] },
    custom_tool_call: { ...withCall, input: long },
    custom_tool_call_output: { call_id: 'c', output: long },
    mcp_call: { ...withCall, arguments: arguments_, output: long, error: long },
    service_call: { ...withCall, arguments: arguments_, output: long },
    shell_call: {
      call_id: 'c',
      action: { commands: [long, long] },
      output: [{ stdout: long, stderr: long, outcome: { type: 'exit', exit_code: 0 } }],
    },
    web_search_call: {
      call_id: 'c',
      action: { type: 'search', query: long, queries: [long], sources: [{ type: 'url', url: address }] },
      results: [{ title: long, url: address, snippet: long, text: long }],
    },
    additional_tools: { role: 'developer', tools: [{ type: 'custom', name: 'f', description: long }] },
    apply_patch_call: { call_id: 'c', operation: { type: 'update_file', path: 'a', diff: long } },
    apply_patch_call_output: { call_id: 'c', output: long },
    code_interpreter_call: { code: long, outputs: [{ type: 'logs', logs: long }] },
    computer_call: { call_id: 'c', action: { type: 'type', text: long } },
    computer_call_output: { call_id: 'c', output: { type: 'computer_screenshot', image_url: long } },
    configuration_update: { instructions: long },
    file_search_call: { queries: [long], results: [{ file_id: 'f', text: long }] },
    image_generation_call: { result: long },
    local_shell_call: { call_id: 'c', action: { type: 'exec', command: [long], env: { A: long } } },
    local_shell_call_output: { call_id: 'c', output: long },
    mcp_approval_request: { ...withCall, arguments: arguments_ },
    mcp_approval_response: { approval_request_id: 'a', approve: false, reason: long },
    mcp_list_tools: { server_label: 's', tools: [{ name: 'f', description: long }], error: long },
    program: { code: long },
    program_output: { output: long },
    shell_call_output: { call_id: 'c', output: [{ stdout: long, stderr: long }] },
    tool_search_call: { call_id: 'c', arguments: { query: long } },
    tool_search_output: { call_id: 'c', tools: [{ name: 'f', description: long }] },
  }
  /** Without texts, or sealed: a part of a sealed text cannot be opened. */
  const others = ['compaction', 'compaction_trigger']

  it('is tested', () => {
    expect([...Object.keys(MEMBERS), ...others].sort()).toEqual([...ITEM_TYPES.keys()].sort())
  })

  it.each(Object.entries(MEMBERS))('is shortened: %s', (type, members) => {
    const item = itemOf({ type, id: 'id', ...members })
    const { bytes } = shortenedItem(item, size)
    expect(bytes.length).toBeLessThan(2 * size)
    const [before, after] = [parsed(item.bytes), parsed(bytes)]
    expect(after).toMatchObject({ type, id: before.id })
    expect(placesOf(after, 'type')).toEqual(placesOf(before, 'type'))
    expect(placesOf(after, 'url')).toEqual(placesOf(before, 'url'))
  })

  /** The values of all members with a name. */
  function placesOf(value: unknown, name: string): unknown[] {
    if (typeof value !== 'object' || value === null) return []
    return Object.entries(value).flatMap(([member, inner]) =>
      member === name ? [inner] : placesOf(inner, name),
    )
  }
})

describe('a sealed compaction', () => {
  const secret = { summary: 'Secret.', calls: ['c'], userBytes: 10 }
  const sealed = sealCompaction(ring, owner, secret) ?? ''

  it('is opened for its owner only, for its purpose only, and unchanged', () => {
    expect(openCompaction(ring, owner, sealed)).toEqual(secret)
    expect(sealed).not.toContain('Secret')
    const changed = sealed.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A'))
    expect(openCompaction(ring, owner, changed)).toBe(null)
    expect(openCompaction(ring, { ...owner, userId: 'v' }, sealed)).toBe(null)
    expect(openCompaction(ring, { ...owner, organizationId: 'p' }, sealed)).toBe(null)
    expect(openReasoning(ring, owner, sealed.replace('hgc1_', 'hgr1_'))).toBe(null)
  })
})
