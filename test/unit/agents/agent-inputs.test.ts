import { describe, expect, it } from 'vitest'
import { checkMembers, inputsOf } from '../../../src/agents/live/agent-inputs.ts'

const input = (name: string, more: { required?: boolean; default?: string } = {}) => ({
  name,
  required: true,
  ...more,
})
const [a, b] = [input('a'), input('b')]
const optional = input('c', { required: false })

/** The values that inputs get, by name. */
const values = (inputs: Array<ReturnType<typeof input>>, text: string, given: unknown = undefined) =>
  Object.fromEntries(
    inputsOf({ inputs }, { settings: { inputs: given }, text }).map(({ name, value }) => [name, value]),
  )

describe('the text of a request is', () => {
  it.each([
    ['for the only input', values([a], '{"b":"x"}'), { a: '{"b":"x"}' }],
    ['for the only required one', values([a, optional, input('d', { default: 'x' })], 'y'), { a: 'y' }],
    ['for the one named input', values([a, input('input', { required: false })], 'x'), { input: 'x' }],
    ['for the one that is left', values([a, b], 'x', { b: '2' }), { a: 'x', b: '2' }],
    ['an object for several', values([a, b], '{"a":"1","b":"2","z":"3"}'), { a: '1', b: '2', z: '3' }],
    ['left out', values([a, b], '', { a: '1', b: '2' }), { a: '1', b: '2' }],
    ['without a place in an agent without inputs', values([], 'x'), {}],
  ])('%s', (_, found, expected) => {
    expect(found).toEqual(expected)
  })

  it.each([
    ['no object', [a, b], 'x', undefined, /^input: .*"a", "b"/],
    ['a list', [a, b], '["x"]', undefined, /^input: /],
    ['null', [a, b], 'null', undefined, /^input: /],
    ['an object of numbers', [a, b], '{"a":1}', undefined, /^input: /],
    ['one too many', [a], 'x', { a: '1' }, /^input: /],
    ['beside values that are no texts', [a], '', { a: 1 }, /^inputs: /],
  ])('refused: %s', (_, inputs, text, given, message) => {
    expect(() => values(inputs, text, given)).toThrow(message)
  })
})

describe('members', () => {
  it('that do not apply are refused by name, unless they are empty', () => {
    const check = (settings: object) => () =>
      checkMembers({ settings: { model: 'agent/x', ...settings }, text: '' })
    expect(check({ temperature: 0 })).toThrow(/^temperature: /)
    expect(check({ parallel_tool_calls: false })).toThrow(/^parallel_tool_calls: /)
    expect(check({ instructions: '' })).toThrow(/^instructions: /)
    expect(check({ store: false })).toThrow(/^store: /)
    expect(
      check({ tools: [], metadata: {}, user: null, store: true, stream: true, background: false }),
    ).not.toThrow()
  })
})
