import { describe, expect, it } from 'vitest'
import type { ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import { ITEM_TYPES } from '../../../src/responses/items/types/item-types.ts'
import { eventFrame } from '../../../src/responses/model/events.ts'
import { withOwnTools } from '../../../src/responses/open-responses/own-tools.ts'
import { openResponsesFrames } from '../../../src/responses/open-responses/rendered-events.ts'
import { openResponsesItem } from '../../../src/responses/open-responses/rendered-item.ts'
import { renderedResponse } from '../../../src/responses/open-responses/rendered-response.ts'
import { eventTypeOnWire, itemTypeOnWire } from '../../../src/responses/open-responses/type-names.ts'
import {
  openResponsesEvents,
  openResponsesItemSchema,
  openResponsesSchema,
} from '../../harness/open-responses.ts'
import { Emitting } from './emitting.ts'
import { itemOf, parsed } from './items.ts'

const STANDARD = ['message', 'function_call', 'function_call_output', 'reasoning', 'compaction']
/** Clients act on items of these types, and know them by no other name. */
const OFFICIAL = ['mcp_approval_request', 'mcp_approval_response', 'mcp_call']

/** A response whose model calls a function, a custom tool, and a tool of each kind that the service runs. */
function emittedCalls(): Emitting {
  const types: Record<string, string> = {
    look: 'service_call',
    remote: 'mcp_call',
    run: 'shell_call',
    find: 'web_search_call',
    code: 'custom_tool_call',
  }
  const emitting = new Emitting({
    nameOf: (name) => ({ itemType: types[name] ?? 'function_call', members: { name } }),
    purposeOf: (name) => (name in types && name !== 'code' ? 'hosted' : 'client'),
  })
  const names = ['ask', ...Object.keys(types)]
  const calls = names.flatMap((name, call): ModelEvent[] => [
    { type: 'tool_call', choice: 0, call, id: `call_${name}`, name },
    { type: 'tool_arguments', choice: 0, call, json: '{"input":"é🦉"}' },
  ])
  emitting.emitter.begin()
  for (const event of calls) emitting.emitter.model(event)
  emitting.emitter.endTurn()
  for (const name of names) {
    emitting.emitter.addResult(`call_${name}`, { status: 'failed', members: { output: 'none' } })
  }
  return emitting
}

const encoder = new TextEncoder()

/** Emitted events as bytes, of a response in the form of Open Responses. */
function bytesOf({ emitted }: Emitting): Uint8Array {
  const frames = emitted.map((event) => {
    const data = JSON.parse(event.payload)
    if (data.response) data.response.compatibility = 'open_responses'
    return new TextDecoder().decode(eventFrame({ ...event, payload: JSON.stringify(data) }))
  })
  return encoder.encode(`: keep-alive\n\n${frames.join('')}`)
}

function inChunks(bytes: Uint8Array, size: number, failure?: Error): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return failure ? controller.error(failure) : controller.close()
      controller.enqueue(bytes.slice(at, at + size))
      at += size
    },
  })
}

const textOf = (stream: ReadableStream<Uint8Array>) => new Response(stream as BodyInit).text()

describe('types on the wire', () => {
  it.each([...ITEM_TYPES.keys()])('%s', (type) => {
    const onWire = itemTypeOnWire(type)
    expect(onWire).toBe([...STANDARD, ...OFFICIAL].includes(type) ? type : `headgate:${type}`)
    if (STANDARD.includes(type)) return
    // A caller may send it back under either name, and it is stored under the own one.
    for (const given of [type, `headgate:${type}`]) {
      const decision = { approval_request_id: 'a', approve: true }
      const known = { call_id: 'c', name: 'n', input: 'i', output: 'o', ...decision }
      expect(parsed(itemOf({ type: given, ...known }).bytes)).toMatchObject({ type })
    }
  })

  it('have no prefix where the specification has them', () => {
    expect(() => itemOf({ type: 'headgate:message', role: 'user', content: 'x' })).toThrow(/no type of item/)
    expect(() => itemOf({ type: 'acme:shell_call' })).toThrow(/no type of item/)
    expect(eventTypeOnWire('response.output_text.delta')).toBe('response.output_text.delta')
    expect(eventTypeOnWire('response.service_call_arguments.delta')).toBe(
      'headgate:service_call_arguments.delta',
    )
  })
})

describe('tools of a request', () => {
  it('have their own types, also where they are named with the prefix', () => {
    const settings = withOwnTools({
      model: 'm',
      tools: [{ type: 'headgate:shell' }, { type: 'shell' }, { type: 'function', name: 'headgate:f' }],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'headgate:shell' }, 'x', null] },
    })
    expect(settings).toMatchObject({
      tools: [{ type: 'shell' }, { type: 'shell' }, { type: 'function', name: 'headgate:f' }],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'shell' }, 'x', null] },
    })
    expect(withOwnTools({ model: 'm', tool_choice: { type: 'headgate:web_search' } })).toMatchObject({
      tool_choice: { type: 'web_search' },
    })
    const plain = { model: 'm', tool_choice: 'auto' as const, tools: [{ type: 'headgate:function' }] }
    expect(withOwnTools(plain)).toEqual(plain)
  })
})

describe('items', () => {
  it.each([
    [{ type: 'reasoning', id: 'rs_1', status: 'completed', summary: [], encrypted_content: null }],
    [{ type: 'mcp_list_tools', id: 'item_1', tools: [] }],
    [
      {
        type: 'message',
        id: 'm',
        status: 'completed',
        role: 'user',
        content: [{ type: 'input_image', file_id: 'f' }],
      },
    ],
    [
      {
        type: 'message',
        id: 'm',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'x' }],
      },
    ],
    [
      {
        type: 'function_call_output',
        id: 'f',
        call_id: 'c',
        status: 'completed',
        output: [{ type: 'input_image', image_url: 'x' }],
      },
    ],
  ])('%j has what the specification requires', (item) => {
    expect(openResponsesItemSchema.safeParse(item).success).toBe(false)
    expect(openResponsesItemSchema.parse(openResponsesItem(item))).toMatchObject({ id: item.id })
  })
})

describe('a response', () => {
  const { emitter } = new Emitting()
  emitter.begin()
  const ended = (more: object) => ({ ...emitter.response, compatibility: 'open_responses' as const, ...more })

  it('is the same object in the form of this service', () => {
    const { response } = emitter
    expect(renderedResponse(response)).toBe(response)
  })

  it.each([
    [
      'tools of the specification only, whole',
      {
        tools: [
          { type: 'shell' },
          { type: 'function', name: 'bare' },
          { type: 'function', name: 'null', description: null, parameters: null, strict: null },
          {
            type: 'function',
            name: 'strict',
            description: 'd',
            parameters: { type: 'object' },
            strict: true,
          },
          { type: 'custom', name: 'code' },
          { type: 'namespace', name: 'crm', tools: [] },
        ],
      },
      {
        tools: [
          { type: 'function', name: 'bare', description: null, parameters: null, strict: false },
          { type: 'function', name: 'null', description: null, parameters: null, strict: false },
          {
            type: 'function',
            name: 'strict',
            description: 'd',
            parameters: { type: 'object' },
            strict: true,
          },
        ],
      },
    ],
    [
      'the choice of a hosted tool by its effect',
      { tool_choice: { type: 'shell' } },
      { tool_choice: 'required' },
    ],
    [
      'allowed functions',
      {
        tool_choice: {
          type: 'allowed_tools',
          mode: 'required',
          tools: [{ type: 'shell' }, { type: 'function', name: 'a' }],
        },
      },
      { tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'a' }] } },
    ],
    [
      'a schema by its name',
      { text: { format: { type: 'json_schema', name: 'w', schema: { type: 'object' } }, verbosity: 'epic' } },
      {
        text: { format: { type: 'json_schema', name: 'w', description: null, schema: null, strict: false } },
      },
    ],
    [
      'a known effort',
      { reasoning: { effort: 'minimal', summary: 'auto' } },
      { reasoning: { effort: null, summary: 'auto' } },
    ],
    [
      'the status of a cancelled response',
      { status: 'incomplete', incomplete_details: { reason: 'cancelled' } },
      { status: 'cancelled', incomplete_details: null },
    ],
    [
      'the reason of an incomplete one',
      { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
      { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
    ],
  ])('has %s', (_, more, expected) => {
    const rendered = renderedResponse(ended(more) as never)
    expect(openResponsesSchema.parse(rendered)).toMatchObject(expected)
    expect(rendered).not.toHaveProperty('compatibility')
    expect(rendered).toMatchObject(expected)
  })
})

describe('a stream', () => {
  const emitting = emittedCalls()
  const usage = null
  emitting.emitter.end({ status: 'incomplete', reason: 'max_turns', usage, completedSeconds: 1 })
  emitting.emitter.terminate()
  const bytes = bytesOf(emitting)

  it('has the names of the specification, and its own with a prefix', async () => {
    const events = openResponsesEvents(await textOf(openResponsesFrames(inChunks(bytes, bytes.length))))
    expect(events.map(({ id }) => id)).toEqual(emitting.emitted.map(({ sequence }) => String(sequence)))
    const added = events.filter(({ event }) => event === 'response.output_item.added')
    const types = ['service_call', 'mcp_call', 'shell_call', 'web_search_call', 'custom_tool_call']
    expect(added.map(({ data }) => (data.item as { type: string }).type)).toEqual([
      'function_call',
      ...types.map((type) => (type === 'mcp_call' ? type : `headgate:${type}`)),
    ])
    const extended = new Set(
      events.map(({ event }) => event).filter((event) => event.startsWith('headgate:')),
    )
    expect([...extended].sort()).toEqual([
      'headgate:custom_tool_call_input.delta',
      'headgate:custom_tool_call_input.done',
      'headgate:service_call_arguments.delta',
      'headgate:service_call_arguments.done',
    ])
    expect(events.at(-1)).toMatchObject({
      event: 'response.incomplete',
      data: { response: { status: 'incomplete', incomplete_details: { reason: 'max_turns' } } },
    })
  })

  it('is the same however it is cut', async () => {
    const whole = await textOf(openResponsesFrames(inChunks(bytes, bytes.length)))
    for (const size of [1, 2, 3, 7, 64, 1_000]) {
      expect(await textOf(openResponsesFrames(inChunks(bytes, size)))).toBe(whole)
    }
  })

  it('has no [DONE] where it breaks off', async () => {
    const end = bytes.lastIndexOf(0x0a, bytes.length - 4)
    const cut = await textOf(openResponsesFrames(inChunks(bytes.slice(0, end), 100)))
    expect(cut).not.toContain('[DONE]')
    const failed = openResponsesFrames(inChunks(bytes, 100, new Error('the object restarted')))
    await expect(textOf(failed)).rejects.toThrow()
  })

  it('stops its source when its reader leaves', async () => {
    let reason: unknown
    const source = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(encoder.encode(': keep-alive\n\n')),
      cancel: (why) => {
        reason = why
      },
    })
    const reader = openResponsesFrames(source).getReader()
    await reader.read()
    await reader.cancel('left')
    expect(reason).toBe('left')
  })
})
