import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../src/lib/api-error.ts'
import { OwnedBytes } from '../../../src/lib/bytes/owned-bytes.ts'
import { drained } from '../../../src/lib/slices.ts'
import { readResponseRequest } from '../../../src/responses/context/load-request.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { bytesOf, parsed, refusal, requestOf } from './items.ts'

const bodyWith = (item: unknown) => ({ model: 'm', input: [{ role: 'user', content: 'x' }, item] })
const call = { type: 'function_call', call_id: 'c', name: 'n', arguments: '{}' }
const userPart = (part: unknown) =>
  bodyWith({ role: 'user', content: [{ type: 'input_text', text: '' }, part] })

describe('a request that is not valid', () => {
  it.each<[name: string, body: unknown, told: string]>([
    ['no JSON', '{', 'The body is not valid JSON'],
    ['nothing', '', 'The body is not valid JSON'],
    ['more than JSON', '{} {}', 'The body is not valid JSON'],
    ['an array', '[]', 'The body must be a JSON object.'],
    ['no object', '"x"', 'The body must be a JSON object.'],
    ['a member twice', '{"model":"m","input":"a","input":"b"}', 'The member input is given twice.'],
    [
      'a member twice, escaped',
      '{"model":"m","mod\\u0065l":"n","input":"a"}',
      'The member model is given twice.',
    ],
    ['no model', { input: 'x' }, 'model: is required.'],
    ['null as a model', { model: null, input: 'x' }, 'model: Invalid input: expected string'],
    ['an empty model', { model: '', input: 'x' }, 'model: '],
    ['no input', { model: 'm' }, 'input: '],
    ['null as input', { model: 'm', input: null }, 'input: '],
    ['an object as input', { model: 'm', input: {} }, 'input: '],
    ['an empty input of a new conversation', { model: 'm', input: [] }, 'input: '],
    [
      'a tool without a type',
      { model: 'm', input: 'x', tools: [{ type: 'function' }, {}] },
      'tools[1].type: ',
    ],
    ['a format without a type', { model: 'm', input: 'x', text: { format: {} } }, 'text.format.type: '],
    [
      'a conversation without an id',
      { model: 'm', input: 'x', conversation: {} },
      'conversation: must be an',
    ],
    [
      'a conversation of no name',
      { model: 'm', input: 'x', conversation: '' },
      'conversation: must not be empty',
    ],
    [
      'a previous response of no name',
      { model: 'm', input: 'x', previous_response_id: '' },
      'previous_response_id: must not be empty',
    ],
    ['a choice that is none', { model: 'm', input: 'x', tool_choice: 'always' }, 'tool_choice: must be auto'],
    [
      'metadata of too many bytes',
      { model: 'm', input: 'x', metadata: { a: 'é'.repeat(40_000) } },
      'metadata: may have at most 65536 bytes',
    ],
    [
      'half of a surrogate pair in an id',
      bodyWith({ ...call, call_id: '\ud800' }),
      'input[1].call_id: must be well',
    ],
    [
      'half of a pair in a name',
      bodyWith({ ...call, name: 'a\udc00' }),
      'input[1].name: must be well-formed',
    ],
    ['half of a pair in a namespace', bodyWith({ ...call, namespace: '\ud800' }), 'input[1].namespace: '],
    ['half of a pair in a reference', bodyWith({ type: 'item_reference', id: 'a\ud800' }), 'input[1].id: '],
    [
      'half of a pair in an output',
      bodyWith({ ...call, type: 'function_call_output', output: '', call_id: '\ud800' }),
      'input[1].call_id: ',
    ],
    ['half of a pair in a role', bodyWith({ role: 'user\ud800', content: '' }), 'input[1].role: '],
    ['a template', { model: 'm', input: 'x', prompt: { id: 'pmpt_1' } }, 'prompt: templates are not served'],
    ['a moderation', { model: 'm', input: 'x', moderation: { model: 'm' } }, 'moderation: moderation within'],
    ['no boolean', { model: 'm', input: 'x', store: 'yes' }, 'store: '],
    ['too hot', { model: 'm', input: 'x', temperature: 3 }, 'temperature: '],
    ['a number as an item', bodyWith(1), 'input[1]: must be an object.'],
    ['an array as an item', bodyWith([1]), 'input[1]: must be an object.'],
    ['null as an item', bodyWith(null), 'input[1]: must be an object.'],
    ['a number as a type', bodyWith({ type: 1 }), 'input[1].type: '],
    ['a type nobody knows', bodyWith({ type: 'poem' }), 'input[1].type: "poem" is no type of item.'],
    ['a type of all objects', bodyWith({ type: 'constructor' }), 'input[1].type: "constructor"'],
    ['no role', bodyWith({ content: 'x' }), 'input[1].role: '],
    ['an empty item', bodyWith({}), 'input[1].role: '],
    ['a role nobody has', bodyWith({ role: 'tool', content: 'x' }), 'input[1].role: '],
    ['no content', bodyWith({ role: 'user' }), 'input[1].content: '],
    ['null as content', bodyWith({ role: 'user', content: null }), 'input[1].content: '],
    [
      'a member of an item twice',
      '{"model":"m","input":[{"role":"user","role":"system","content":"x"}]}',
      'input[0].role: is given twice.',
    ],
    [
      'a member of a part twice',
      '{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a","text":"b"}]}]}',
      'input[0].content[0].text: is given twice.',
    ],
    ['a status nobody knows', bodyWith({ role: 'user', content: 'x', status: 'fine' }), 'input[1].status: '],
    ['a string as a part', userPart('x'), 'input[1].content[1]: '],
    ['a part without a type', userPart({ text: 'x' }), 'input[1].content[1].type: '],
    ['a part of an unknown type', userPart({ type: 'smell' }), 'input[1].content[1].type: "smell"'],
    ['a text part without text', userPart({ type: 'input_text' }), 'input[1].content[1].text: '],
    ['a text that is none', userPart({ type: 'text', text: null }), 'input[1].content[1].text: '],
    [
      'an image without a source',
      userPart({ type: 'input_image', image_url: null }),
      'input[1].content[1]: needs image_url',
    ],
    [
      'an image from an object',
      userPart({ type: 'input_image', image_url: {} }),
      'input[1].content[1].image_url: ',
    ],
    [
      'a file without a source',
      userPart({ type: 'input_file', filename: 'a' }),
      'input[1].content[1]: needs file_data',
    ],
    [
      'a sound without data',
      userPart({ type: 'input_audio', input_audio: 'x' }),
      'input[1].content[1].input_audio: ',
    ],
    ['a refusal of the user', userPart({ type: 'refusal', refusal: 'no' }), 'input[1].content[1].type: '],
    [
      'an image of the assistant',
      bodyWith({ role: 'assistant', content: [{ type: 'input_image', image_url: 'u' }] }),
      'input[1].content[0].type: ',
    ],
    [
      'a refusal without text',
      bodyWith({ role: 'assistant', content: [{ type: 'refusal' }] }),
      'input[1].content[0].refusal: ',
    ],
    ['a call without an id', bodyWith({ ...call, call_id: undefined }), 'input[1].call_id: '],
    ['an empty id of a call', bodyWith({ ...call, call_id: '' }), 'input[1].call_id: '],
    ['a NUL in an id', bodyWith({ ...call, call_id: 'a\0' }), 'input[1].call_id: '],
    ['an endless id', bodyWith({ ...call, call_id: 'a'.repeat(5000) }), 'input[1].call_id: '],
    ['a call without a name', bodyWith({ ...call, name: null }), 'input[1].name: '],
    ['an object as arguments', bodyWith({ ...call, arguments: {} }), 'input[1].arguments: '],
    ['a namespace that is none', bodyWith({ ...call, namespace: 1 }), 'input[1].namespace: '],
    [
      'a custom call without input',
      bodyWith({ type: 'custom_tool_call', call_id: 'c', name: 'n' }),
      'input[1].input: ',
    ],
    [
      'an output without an id',
      bodyWith({ type: 'function_call_output', output: 'x' }),
      'input[1].call_id: ',
    ],
    [
      'an output that is none',
      bodyWith({ type: 'function_call_output', call_id: 'c', output: { a: 1 } }),
      'input[1].output: ',
    ],
    [
      'a custom output without one',
      bodyWith({ type: 'custom_tool_call_output', call_id: 'c' }),
      'input[1].output: ',
    ],
    [
      'a part that is no output',
      bodyWith({ type: 'function_call_output', call_id: 'c', output: [{ type: 'refusal', refusal: '' }] }),
      'input[1].output[0].type: ',
    ],
    ['a summary that is none', bodyWith({ type: 'reasoning', summary: 'x' }), 'input[1].summary: '],
    [
      'a part that is no summary',
      bodyWith({ type: 'reasoning', summary: [{ type: 'text', text: '' }] }),
      'input[1].summary[0].type: ',
    ],
    [
      'thoughts without text',
      bodyWith({ type: 'reasoning', content: [{ type: 'reasoning_text' }] }),
      'input[1].content[0].text: ',
    ],
    [
      'sealed content that is none',
      bodyWith({ type: 'reasoning', encrypted_content: 1 }),
      'input[1].encrypted_content: ',
    ],
    ['a reference to nothing', bodyWith({ type: 'item_reference' }), 'input[1].id: '],
    ['a bare reference to nothing', bodyWith({ id: null }), 'input[1].id: '],
    ['a hosted call whose id is none', bodyWith({ type: 'shell_call', call_id: 7 }), 'input[1].call_id: '],
    [
      'too deep',
      `{"model":"m","input":${'['.repeat(300)}${']'.repeat(300)}}`,
      'The body is nested too deeply (at most 256 levels)',
    ],
  ])('%s', (_name, body, told) => {
    const text = refusal(() => requestOf(body))
    expect(text).toContain('400 invalid_body')
    expect(text).toContain(told)
  })

  it('broken UTF-8', () => {
    const body = bytesOf({ model: 'm', input: 'a?b' })
    body[body.indexOf(0x3f)] = 0xff
    expect(refusal(() => drained(readResponseRequest(body)))).toContain(
      '400 invalid_body The body is not valid UTF-8.',
    )
  })

  it('settings and items without end', () => {
    const padding = 'x'.repeat(8 * 1024 * 1024)
    expect(refusal(() => requestOf({ model: 'm', input: 'x', instructions: padding }))).toContain(
      'at most 8388608 bytes',
    )
    const lists = `[${'[],'.repeat(300_000)}[]]`
    expect(refusal(() => requestOf(`{"model":"m","input":"x","other":${lists}}`))).toContain('200000 values')
    const items = `[${'{},'.repeat(20_000)}{}]`
    expect(refusal(() => requestOf(`{"model":"m","input":${items}}`))).toContain(
      '400 invalid_body input: may have',
    )
    const parts = `[{"role":"user","content":[${'{"type":"text","text":""},'.repeat(10_000)}{}]}]`
    expect(refusal(() => requestOf(`{"model":"m","input":${parts}}`))).toContain('input[0].content: may have')
  })

  it('garbled bodies never end in anything but a refusal or a request', () => {
    const random = new SeededRandom(11)
    const source = bytesOf({
      model: 'm',
      tools: [{ type: 'function', name: 'n' }],
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'ä€😀' }] }, call, { id: 'msg_1' }],
    })
    let refused = 0
    for (let round = 0; round < 3000; round++) {
      const body = source.slice(0, random.below(10) === 0 ? random.below(source.length) : source.length)
      for (let change = random.below(4); change >= 0; change--) {
        body[random.below(body.length)] =
          random.below(3) === 0 ? random.below(256) : (source[random.below(source.length)] ?? 0)
      }
      try {
        const { items } = drained(readResponseRequest(body))
        for (const item of items) if ('bytes' in item) parsed(item.bytes)
      } catch (error) {
        refused++
        expect(error).toBeInstanceOf(ApiError)
        expect((error as ApiError).code).toBe('invalid_body')
      }
    }
    expect(refused).toBeGreaterThan(1000)
    expect(refused).toBeLessThan(3000)
  })
})

describe('a request', () => {
  it('keeps settings it does not know, and is not deceived by names of all objects', () => {
    const { settings } = requestOf(
      '{"__proto__":{"store":false},"model":"m","input":"x","verbosity":{"a":[1]},"tools":null}',
    )
    expect(settings).toMatchObject({ model: 'm', verbosity: { a: [1] }, tools: null })
    expect(settings.store).toBeUndefined()
    expect(({} as { store?: unknown }).store).toBeUndefined()
    expect('input' in settings).toBe(false)
  })

  it('takes a conversation by its id or as an object, and may be empty then', () => {
    expect(requestOf({ model: 'm', input: [], conversation: { id: 'conv_1' } }).settings.conversation).toBe(
      'conv_1',
    )
    expect(requestOf({ model: 'm', input: [], previous_response_id: 'resp_1' }).items).toEqual([])
    expect(requestOf({ model: 'm', input: '' }).items).toHaveLength(1)
  })

  it('takes a string as a message of the user, its escapes as they are', () => {
    const text = '{"input":"a\\u00e4\\ud800 \\"b\\" \\/","model":"m"}'
    const [item] = requestOf(text).items
    expect(item).toMatchObject({ type: 'message', role: 'user', callId: null })
    const bytes = item && 'bytes' in item ? item.bytes : new Uint8Array()
    expect(new TextDecoder().decode(bytes)).toContain('"text":"a\\u00e4\\ud800 \\"b\\" \\/"')
    expect(parsed(bytes)).toMatchObject({
      role: 'user',
      content: [{ type: 'input_text', text: 'aä\ud800 "b" /' }],
    })
  })

  it('holds a body of 50 MB once more and not as a tree', () => {
    const total = 50 * 1024 * 1024
    const before =
      '{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,'
    const after = '"}]},{"role":"user","content":"what is it?"}]}'
    const buffer = new OwnedBytes(total)
    buffer.append(bytesOf(before))
    const chunk = new Uint8Array(1024 * 1024).fill(0x41)
    for (let left = total - before.length - after.length; left > 0; left -= chunk.length) {
      buffer.append(chunk.subarray(0, Math.min(left, chunk.length)))
    }
    buffer.append(bytesOf(after))
    const memory = () => process.memoryUsage()
    const held = memory()
    const { items } = drained(readResponseRequest(buffer.bytes))
    const now = memory()
    expect(items).toHaveLength(2)
    const [image] = items
    const length = image && 'bytes' in image ? image.bytes.length : 0
    expect(length).toBeGreaterThan(total - 200)
    expect(length).toBeLessThan(total + 200)
    expect(now.arrayBuffers - held.arrayBuffers).toBeLessThan(total + 4 * 1024 * 1024)
    expect(now.heapUsed - held.heapUsed).toBeLessThan(16 * 1024 * 1024)
    // The body may go when it has been read.
    const body = buffer.bytes
    buffer.free()
    expect(body.length).toBe(0)
    const end = image && 'bytes' in image ? image.bytes.subarray(-30) : new Uint8Array()
    expect(new TextDecoder().decode(end)).toMatch(/A"\}\],"status":"completed"\}$/)
  })
})
