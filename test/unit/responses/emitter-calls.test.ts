import { describe, expect, it } from 'vitest'
import { COMPLETED, Emitting, emitOne, say } from './emitting.ts'

describe('tool calls', () => {
  it('keep their arguments apart when they arrive mixed', () => {
    const emitting = emitOne([
      say.text('Let me look.'),
      say.call(0, 'a'),
      say.call(1, 'b'),
      say.args(1, '{"y":'),
      say.args(0, '{"x":'),
      say.args(1, '2}'),
      say.args(0, '1}'),
      say.args(7, 'of nobody'),
    ])
    expect(emitting.emitter.response.output).toMatchObject([
      { type: 'message' },
      { type: 'function_call', call_id: 'call_0', name: 'a', arguments: '{"x":1}', status: 'completed' },
      { type: 'function_call', call_id: 'call_1', name: 'b', arguments: '{"y":2}', status: 'completed' },
    ])
    expect(emitting.of('function_call_arguments.done')).toMatchObject([
      { output_index: 1, name: 'a', arguments: '{"x":1}' },
      { output_index: 2, name: 'b', arguments: '{"y":2}' },
    ])
    expect(emitting.violations).toEqual([])
  })

  it('are done as soon as something follows them and they are complete', () => {
    const emitting = new Emitting()
    emitting.feed(say.call(0), say.args(0, '{"x":1}'))
    expect(emitting.of('output_item.done')).toEqual([])
    emitting.feed(say.call(1))
    expect(emitting.of('output_item.done')).toMatchObject([{ output_index: 0 }])
    emitting.feed(say.args(0, ' '), say.text('Also.'))
    expect(emitting.of('output_item.done')).toHaveLength(1)
    expect(emitting.emitter.endTurn().calls.map((call) => call.arguments)).toEqual(['{"x":1}', '{}'])
  })

  it('end the message before them, so that text after them begins another', () => {
    const emitting = emitOne([say.text('a'), say.call(0), say.text('b'), say.args(0, '{}'), say.text('c')])
    expect(emitting.emitter.response.output.map(({ type }) => type)).toEqual([
      'message',
      'function_call',
      'message',
    ])
    expect(emitting.emitter.response.output_text).toBe('abc')
    expect(emitting.violations).toEqual([])
  })

  it('without arguments have an empty object', () => {
    const emitting = emitOne([say.call(0)])
    expect(emitting.of('function_call_arguments.delta')).toMatchObject([{ delta: '{}' }])
    expect(emitting.of('function_call_arguments.done')).toMatchObject([{ arguments: '{}' }])
    expect(emitting.violations).toEqual([])
  })

  it('have ids that are there once, and are no ids of items', () => {
    const emitting = new Emitting()
    emitting.emitter.begin()
    for (let turn = 0; turn < 2; turn++) {
      emitting.feed(say.call(0, 'a', 'same'), say.call(1, 'b', ''), say.call(1, 'b', 'again'))
      emitting.emitter.endTurn()
    }
    emitting.emitter.end(COMPLETED)
    emitting.emitter.terminate()
    expect(emitting.emitter.response.output).toHaveLength(4)
    expect(emitting.emitter.response.output[0]).toMatchObject({ call_id: 'same' })
    expect(emitting.violations).toEqual([])
  })

  it.each([
    ['half of a surrogate pair', 'a\ud800'],
    ['a control character', 'a\u0000'],
    ['a line break', 'a\nb'],
    ['a control character of Latin-1', 'a\u0085'],
    ['more than can be sent back', 'a'.repeat(5_000)],
  ])('have another id where that of the upstream has %s', (_, id) => {
    const emitting = emitOne([say.call(0, 'look', id), say.args(0, '{}')])
    expect(emitting.emitter.response.output).toMatchObject([{ call_id: expect.stringMatching(/^call_\w+$/) }])
    expect(emitting.violations).toEqual([])
  })

  it.each(['look\u0000', 'look\ud800', 'l'.repeat(257)])('have no name that is none: %j', (name) => {
    const emitting = new Emitting().feed(say.call(0, name), say.args(0, '{}'))
    const [call] = emitting.emitter.endTurn().calls
    expect(call?.upstreamName).toMatch(/^l[\w-]{1,63}$/)
  })

  it('have the name and the namespace that the caller gave', () => {
    const nameOf = (name: string) => ({
      itemType: 'function_call',
      members: { name: name.slice(3), namespace: 'crm' },
    })
    const emitting = emitOne([say.call(0, 'crmlook')], COMPLETED, { nameOf })
    expect(emitting.emitter.response.output).toMatchObject([{ name: 'look', namespace: 'crm' }])
    expect(emitting.violations).toEqual([])
  })

  it('that are refused have no item, but belong to the turn', () => {
    const emitting = new Emitting({ purposeOf: (name) => (name === 'shell' ? 'refused' : 'client') })
    emitting.emitter.begin()
    emitting.feed(
      say.text('a'),
      say.call(0, 'shell'),
      say.args(0, '{"c":1}'),
      say.call(1, 'look'),
      say.text('b'),
    )
    expect(emitting.emitter.endTurn().calls).toMatchObject([
      { callId: 'call_0', upstreamName: 'shell', arguments: '{"c":1}', purpose: 'refused', cut: false },
      { callId: 'call_1', upstreamName: 'look', arguments: '{}', purpose: 'client', cut: false },
    ])
    emitting.emitter.end(COMPLETED)
    emitting.emitter.terminate()
    expect(emitting.text).not.toContain('shell')
    expect(emitting.violations).toEqual([])
  })

  it('in the middle of which the model refuses are cut off, and its refusal is whole', () => {
    const emitting = new Emitting().feed(
      say.call(0),
      say.args(0, '{"city":"Par'),
      say.call(1),
      say.args(1, '{}'),
      say.stop('refusal', 'Not that.'),
    )
    expect(emitting.emitter.endTurn().calls.map(({ cut }) => cut)).toEqual([true, false])
    const statuses = emitting.emitter.response.output.map((item) => 'status' in item && item.status)
    expect(statuses).toEqual(['incomplete', 'completed', 'completed'])
  })

  it.each([
    ['{"input":"a\\n\\"b\\""}', 'a\n"b"'],
    ['{"input":""}', ''],
    ['{}', ''],
    ['', ''],
    ['{"patch":"a"}', '{"patch":"a"}'],
    ['{"input":"cut', '{"input":"cut'],
  ])('of custom tools give their input: %s', (json, input) => {
    const emitting = emitOne([
      say.call(0, 'custom'),
      say.args(0, json.slice(0, 5)),
      say.args(0, json.slice(5)),
    ])
    expect(emitting.emitter.response.output).toMatchObject([{ type: 'custom_tool_call', input }])
    expect(emitting.of('custom_tool_call_input.done')).toMatchObject([{ input }])
    const deltas = emitting.of('custom_tool_call_input.delta').map(({ delta }) => delta)
    expect(deltas).toEqual(input === '' ? [] : [input])
    expect(emitting.violations).toEqual([])
  })
})
