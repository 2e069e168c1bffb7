import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { addKey, addMember, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerAnswers, seenRequests } from '../harness/upstream.ts'
import { ask, expectJson, type Json, listItems, type ToldResponse } from './support/response-calls.ts'
import { bodyOf, respond } from './support/response-streams.ts'

const THINKING_MODEL = 'scripted-messages-thinking'
const CHAT_REASONING_MODEL = 'scripted-chat-reasoning'
const INCLUDE = { include: ['reasoning.encrypted_content'] }

let tenant: Tenant
let stranger: Tenant

beforeAll(async () => {
  ;[tenant, stranger] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
})

const THOUGHTS = 'I "think"\n of é and 🦉, \\u0041 and </script>.'
const MORE_THOUGHTS = 'And again.'
const SIGNATURE = `${'Ab+/'.repeat(80)}Cg==`
const OTHER_SIGNATURE = `${'Zz+/'.repeat(40)}Dg==`
const REDACTED = `${'Re+/'.repeat(60)}Eg==`

const event = (data: Json & { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

/** Blocks of the messages protocol as a stream of it. */
function blocksAsFrames(blocks: Json[], stop: string): string[] {
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null }
  const frames = [
    event({ type: 'message_start', message: { ...message, usage: { input_tokens: 3, output_tokens: 1 } } }),
  ]
  for (const [index, block] of blocks.entries()) {
    const delta = (told: Json) => frames.push(event({ type: 'content_block_delta', index, delta: told }))
    const { thinking, signature, text, input, ...start } = block
    const begun = { ...start, ...(thinking !== undefined && { thinking: '', signature: '' }) }
    const opened = {
      ...begun,
      ...(text !== undefined && { text: '' }),
      ...(input !== undefined && { input: {} }),
    }
    frames.push(event({ type: 'content_block_start', index, content_block: opened }))
    for (const piece of String(thinking ?? '').match(/[\s\S]{1,7}/gu) ?? [])
      delta({ type: 'thinking_delta', thinking: piece })
    if (signature !== undefined) delta({ type: 'signature_delta', signature })
    if (text !== undefined) delta({ type: 'text_delta', text })
    if (input !== undefined) delta({ type: 'input_json_delta', partial_json: JSON.stringify(input) })
    frames.push(event({ type: 'content_block_stop', index }))
  }
  const delta = { stop_reason: stop, stop_sequence: null }
  return [
    ...frames,
    event({ type: 'message_delta', delta, usage: { output_tokens: 9 } }),
    event({ type: 'message_stop' }),
  ]
}

const BLOCKS = [
  { type: 'thinking', thinking: THOUGHTS, signature: SIGNATURE },
  { type: 'redacted_thinking', data: REDACTED },
  { type: 'thinking', thinking: MORE_THOUGHTS, signature: OTHER_SIGNATURE },
  { type: 'text', text: 'Let me look.' },
  { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Paris' } },
]
const ANSWER = [{ type: 'text', text: 'Sunny.' }]

const TOOL = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}
const request = (stream: boolean, more: Json) => ({
  model: THINKING_MODEL,
  stream,
  tools: [TOOL],
  reasoning: { effort: 'low', summary: 'auto' },
  max_output_tokens: 8_000,
  ...more,
})

const thinkingScript = () =>
  registerAnswers(gateway(), [
    { steps: [{ sse: blocksAsFrames(BLOCKS, 'tool_use') }] },
    { steps: [{ sse: blocksAsFrames(ANSWER, 'end_turn') }] },
  ])

/** Earlier assistant messages in the newest request with this text. */
async function toldBack(text: string): Promise<Json[]> {
  const seen = await seenRequests(gateway(), text)
  const last = seen.at(-1)
  const assistant = last && bodyOf(last).messages.find(({ role }) => role === 'assistant')
  return (assistant?.content ?? []) as Json[]
}

const outputFor = ({ output }: ToldResponse) => ({
  type: 'function_call_output',
  call_id: output.find(({ type }) => type === 'function_call')?.call_id,
  output: 'sunny',
})

describe.each([true, false])('thinking that is signed (stream: %s)', (stream) => {
  it('goes back as it came, from a caller who keeps it', async () => {
    const text = marker()
    const question = { role: 'user', content: `${await thinkingScript()} ${text}` }
    const stateless = { store: false, ...INCLUDE }
    const first = await respond(tenant.key, request(stream, { input: [question], ...stateless }))
    const { output, conversation } = first.response
    expect(conversation).toBe(null)
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'message', 'function_call'])
    expect(output[0]).toMatchObject({
      summary: [
        { type: 'summary_text', text: THOUGHTS },
        { type: 'summary_text', text: MORE_THOUGHTS },
      ],
      encrypted_content: expect.any(String),
    })
    const sealed = String(output[0]?.encrypted_content)
    for (const secret of [SIGNATURE, REDACTED, THOUGHTS]) expect(sealed).not.toContain(secret)
    for (const secret of [SIGNATURE, REDACTED]) expect(first.answer.text).not.toContain(secret)
    const input = [question, ...output, outputFor(first.response)]
    const second = await respond(tenant.key, request(stream, { input, ...stateless }))
    expect(second.response).toMatchObject({ status: 'completed', output_text: 'Sunny.' })
    const said = await toldBack(text)
    expect(said.slice(0, 3)).toEqual(BLOCKS.slice(0, 3))
    expect(said.slice(3)).toMatchObject([{ text: 'Let me look.' }, { type: 'tool_use', name: 'get_weather' }])
  })

  it('is sent back unchanged, from storage', async () => {
    const text = marker()
    const input = `${await thinkingScript()} ${text}`
    const { response } = await respond(tenant.key, request(stream, { input }))
    expect(response.output[0]).not.toHaveProperty('encrypted_content')
    const more = { previous_response_id: response.id, input: [outputFor(response)] }
    expect((await respond(tenant.key, request(stream, more))).response.output_text).toBe('Sunny.')
    expect((await toldBack(text)).slice(0, 3)).toEqual(BLOCKS.slice(0, 3))
  })

  it('is nothing in the hands of others, nor when it was changed', async () => {
    const script = await thinkingScript()
    const { response } = await respond(tenant.key, request(stream, { input: script, ...INCLUDE }))
    const [reasoning, ...rest] = response.output
    const sealed = String(reasoning?.encrypted_content)
    const colleague = await addMember(gateway(), tenant.base)
    const { key: colleagueKey } = await addKey(gateway(), tenant.base, colleague)
    const { key: otherKey } = await addKey(gateway(), tenant.base, tenant.userId)
    const flipped = `${sealed.slice(0, 60)}${sealed[60] === 'A' ? 'B' : 'A'}${sealed.slice(61)}`
    const cases: Array<[key: string, text: string, opens: boolean]> = [
      [stranger.key, sealed, false],
      [colleagueKey, sealed, false],
      [tenant.key, flipped, false],
      [tenant.key, sealed.slice(0, -8), false],
      [tenant.key, 'no such thing', false],
      [tenant.key, '', false],
      [otherKey, sealed, true],
    ]
    for (const [key, encrypted_content, opens] of cases) {
      const text = marker()
      const input = [
        { role: 'user', content: text },
        { ...reasoning, encrypted_content },
        ...rest,
        outputFor(response),
      ]
      const told = await respond(key, request(stream, { input, store: false }))
      expect(told.response.status).toBe('completed')
      const types = (await toldBack(text)).map(({ type }) => type)
      expect(types.includes('thinking')).toBe(opens)
      expect(types.includes('redacted_thinking')).toBe(opens)
      expect(types).toContain('tool_use')
    }
  })

  it('does not go to another family', async () => {
    const text = marker()
    const script = await thinkingScript()
    const { response } = await respond(tenant.key, request(stream, { input: script, ...INCLUDE }))
    const input = [{ role: 'user', content: text }, ...response.output, outputFor(response)]
    const other = { model: CHAT_REASONING_MODEL, input, store: false }
    expect((await respond(tenant.key, request(stream, other))).response.status).toBe('completed')
    const [seen] = await seenRequests(gateway(), text)
    expect(seen?.body).toContain('get_weather')
    for (const part of [SIGNATURE, REDACTED, OTHER_SIGNATURE]) expect(seen?.body).not.toContain(part)
  })
})

it('thinking without a signature is returned, and sealed on request', async () => {
  for (const stream of [true, false]) {
    const body = { model: 'scripted-chat', input: 'script:thinking', stream, ...INCLUDE }
    const { response } = await respond(tenant.key, body)
    expect(response.output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
    expect(response.output[0]).toMatchObject({ encrypted_content: expect.any(String) })
    expect(JSON.stringify(response.output[0]?.summary)).toContain('I think of one, with an é and a 🦉.')
    const next = await respond(tenant.key, { ...body, input: 'Go on.', previous_response_id: response.id })
    expect(next.response.status).toBe('completed')
  }
})

it('items have sealed thinking only on request', async () => {
  const { response } = await respond(
    tenant.key,
    request(false, { input: await thinkingScript(), ...INCLUDE }),
  )
  const sealed = String(response.output[0]?.encrypted_content)
  const places = [`/v1/responses/${response.id}`, `/v1/conversations/${response.conversation?.id}/items`]
  for (const place of places) {
    expect((await ask(tenant.key, 'GET', place)).text).not.toContain(sealed.slice(0, 40))
    const asked = await ask(tenant.key, 'GET', `${place}?include=reasoning.encrypted_content`)
    expect(asked.text).toContain('"encrypted_content":"')
    expect(asked.text).not.toContain(SIGNATURE)
  }
  const items = await listItems(tenant.key, `${places[1]}?order=asc`)
  expect(items.data.map(({ type }) => type)).toEqual(['message', 'reasoning', 'message', 'function_call'])
})

it('sealed thinking can be requested after its response', async () => {
  const { response } = await respond(tenant.key, request(false, { input: await thinkingScript() }))
  expect(response.output[0]).not.toHaveProperty('encrypted_content')
  const place = `/v1/responses/${response.id}`
  const later = await ask(tenant.key, 'GET', `${place}?include=reasoning.encrypted_content`)
  const [thought, ...rest] = expectJson<ToldResponse>(later).output
  expect(thought).toMatchObject({ ...response.output[0], encrypted_content: expect.any(String) })
  expect(rest).toEqual(response.output.slice(1))
  expect(expectJson(await ask(tenant.key, 'GET', place))).toEqual(response)
})
