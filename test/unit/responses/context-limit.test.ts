import { beforeAll, describe, expect, it } from 'vitest'
import { fitContext } from '../../../src/responses/context/context-limit.ts'
import { type TokenEstimate, tokenEstimate } from '../../../src/responses/context/context-tokens.ts'
import type { ContextItem } from '../../../src/responses/model/types.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { bytesOf, call, itemOf, message, output } from './items.ts'

const settings = { model: 'm', truncation: 'auto' as const, max_output_tokens: 10 }
/** Every item is ten tokens, settings none. */
const tens = (json: Uint8Array) => (json[0] === 0x5b ? 0 : 10)
/** @param items how many of them fit. */
const fitted = (items: readonly ContextItem[], room: number) =>
  fitContext(items, settings, { contextWindow: room * 10 + 10 + 4, maxOutputTokens: 1000 }, tens)

const system = message('system', 's')
const user = (text: string) => message('user', text)
const said = (text: string) => message('assistant', text)
const thought = () => itemOf({ type: 'reasoning', summary: [] })

describe('a context that is too long', () => {
  const items = [system, user('1'), said('1'), user('2'), said('2'), user('3')]

  it('stays as it is unless it may be cut', () => {
    for (const truncation of ['disabled', null, undefined] as const) {
      const cut = fitContext(
        items,
        { ...settings, truncation },
        { contextWindow: 20, maxOutputTokens: 5 },
        tens,
      )
      expect(cut).toEqual(items)
    }
    expect(fitted(items, 6)).toEqual(items)
  })

  it('loses its oldest items, but no instructions and not what was said last', () => {
    expect(fitted(items, 5)).toEqual([system, items[3], items[4], items[5]])
    expect(fitted(items, 4)).toEqual([system, items[3], items[4], items[5]])
    expect(fitted(items, 3)).toEqual([system, items[5]])
    expect(fitted(items, 0)).toEqual([system, items[5]])
  })

  it('keeps several messages that the user ended with', () => {
    expect(fitted([user('1'), said('1'), user('2'), user('3')], 1)).toHaveLength(2)
  })

  it('keeps calls and outputs together, with the thoughts that led to them', () => {
    const [thoughts, more] = [thought(), thought()]
    const [one, two] = [call('1'), call('2')]
    const turn = [user('x'), thoughts, one, two, output('1'), output('2'), more, call('3'), output('3')]
    expect(fitted(turn, 9)).toEqual(turn)
    expect(fitted(turn, 8)).toEqual(turn.filter((item) => ![thoughts, one, turn[4]].includes(item)))
    expect(fitted(turn, 5)).toEqual([turn[0], more, turn[7], turn[8]])
    expect(fitted(turn, 0)).toEqual([turn[0], more, turn[7], turn[8]])
  })

  it('is always in order, whole pairs, and no longer than it has to be', () => {
    const random = new SeededRandom(3)
    for (let round = 0; round < 300; round++) {
      const context: ContextItem[] = []
      for (let index = random.below(20); index >= 0; index--) {
        const kind = random.below(5)
        if (kind === 0) context.push(call(`${index}`), output(`${index}`))
        else if (kind === 1) context.push(thought(), call(`${index}`), said('x'), output(`${index}`))
        else context.push(kind === 2 ? said('x') : kind === 3 ? system : user('x'))
      }
      const kept = fitted(context, random.below(20))
      expect(context.filter((item) => kept.includes(item))).toEqual(kept)
      const calls = kept.filter(({ type }) => type === 'function_call').map(({ callId }) => callId)
      const outputs = kept.filter(({ type }) => type === 'function_call_output').map(({ callId }) => callId)
      expect(outputs.toSorted()).toEqual(calls.toSorted())
      for (const item of context) if (item.role === 'system') expect(kept).toContain(item)
      const last = context.findLast(({ role }) => role === 'user')
      if (last) expect(kept).toContain(last)
    }
  })
})

describe('the estimate', () => {
  let estimate: TokenEstimate
  beforeAll(async () => {
    estimate = await tokenEstimate('gpt-4o', [])
  })

  it('counts texts by their bytes, escapes undone', () => {
    const words = estimate(user('hello '.repeat(1000)).bytes)
    expect(words).toBeGreaterThanOrEqual(1000)
    expect(words).toBeLessThan(1400)
    expect(estimate(bytesOf(`{"role":"user","content":"${'\\u0068i '.repeat(1000)}"}`))).toBeLessThan(2600)
  })

  it('counts an image by its size and not by its bytes', () => {
    const png = new Uint8Array(300_000)
    png.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52])
    new DataView(png.buffer).setUint32(16, 512)
    new DataView(png.buffer).setUint32(20, 512)
    const url = `data:image/png;base64,${Buffer.from(png).toString('base64')}`
    const tokens = estimate(message('user', [{ type: 'input_image', image_url: url }]).bytes)
    expect(tokens).toBeGreaterThanOrEqual(255)
    expect(tokens).toBeLessThan(400)
    const unseen = [{ type: 'input_image', image_url: 'https://a.example/b.png' }]
    expect(estimate(message('user', unseen).bytes)).toBeGreaterThan(1000)
  })

  it('of items is made in slices, and once', async () => {
    const item = user('x'.repeat(5_000_000))
    let turnsOfOthers = 0
    const other = setInterval(() => turnsOfOthers++, 0)
    const counted = await tokenEstimate('gpt-4o', [item])
    clearInterval(other)
    expect(turnsOfOthers).toBeGreaterThan(3)
    expect(counted(item.bytes)).toBe(estimate(item.bytes))
  })

  it('counts a file by its pages', () => {
    const pdf = Buffer.from('%PDF-1.4 /Type /Pages /Count 3 ').toString('base64')
    const file = [{ type: 'input_file', file_data: `data:application/pdf;base64,${pdf}` }]
    const tokens = estimate(message('user', file).bytes)
    expect(tokens).toBeGreaterThan(6000)
    expect(tokens).toBeLessThan(20_000)
  })
})
