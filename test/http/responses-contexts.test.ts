import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { ask, createResponse, type Json, listItems, type ToldResponse } from './support/response-calls.ts'
import { bodyOf, CORNER_WAYS, postResponse, respond } from './support/response-streams.ts'

let tenant: Tenant
let stranger: Tenant
let colleagueKey: string

beforeAll(async () => {
  ;[tenant, stranger] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
  const colleague = await addMember(gateway(), tenant.base)
  colleagueKey = (await addKey(gateway(), tenant.base, colleague)).key
})

/** Messages to the model with their roles, without the local model's long answers. */
async function saidTo(text: string): Promise<string[]> {
  // Later requests repeat it.
  const [first] = await seenRequests(gateway(), text)
  const { messages, system } = bodyOf(first ?? { body: '{"messages":[]}' })
  const before = system === undefined ? [] : [{ role: 'system', content: system }]
  return [...before, ...messages].map(({ role, content }) => {
    const said =
      typeof content === 'string' ? content : (content as Array<{ text: string }>).map((part) => part.text)
    return `${role}: ${role === 'assistant' ? '…' : said}`
  })
}

const itemsOf = async ({ conversation }: ToldResponse) =>
  (await listItems(tenant.key, `/v1/conversations/${conversation?.id}/items?order=asc&limit=100`)).data

/** How a response is continued. */
const CONTINUATIONS: Array<[name: string, of: (response: ToldResponse) => Json]> = [
  ['conversation', ({ conversation }) => ({ conversation: conversation?.id })],
  ['conversation as an object', ({ conversation }) => ({ conversation })],
  ['previous_response_id', ({ id }) => ({ previous_response_id: id })],
]

describe.each(CORNER_WAYS)('a context (%s)', (_, { model, stream }) => {
  const call = async (body: Json) => (await respond(tenant.key, { model, stream, ...body })).response

  it.each(CONTINUATIONS)('is continued by %s', async (_name, by) => {
    const [one, two, three] = [marker(), marker(), marker()]
    const first = await call({ input: one })
    const second = await call({ input: two, ...by(first) })
    const third = await call({ input: three, ...by(second) })
    expect(await saidTo(three)).toEqual([
      `user: ${one}`,
      'assistant: …',
      `user: ${two}`,
      'assistant: …',
      `user: ${three}`,
    ])
    expect(new Set([first, second, third].map(({ conversation }) => conversation?.id)).size).toBe(1)
    expect(third.previous_response_id).toBe(by(second).previous_response_id ?? null)
    const items = await itemsOf(third)
    expect(items.map(({ role }) => role)).toEqual(Array(3).fill(['user', 'assistant']).flat())
    expect(items.at(-1)).toEqual(third.output[0])
  })

  it('is forked by the id of an earlier response', async () => {
    const [one, two, fork] = [marker(), marker(), marker()]
    const first = await call({ input: one })
    const second = await call({ input: two, previous_response_id: first.id })
    const forked = await call({ input: fork, previous_response_id: first.id })
    expect(await saidTo(fork)).toEqual([`user: ${one}`, 'assistant: …', `user: ${fork}`])
    expect(second.conversation).toEqual(first.conversation)
    expect(forked.conversation?.id).not.toBe(first.conversation?.id)
    // Items that both have in common have the same ids.
    const [original, copy] = [await itemsOf(first), await itemsOf(forked)]
    expect(copy.slice(0, 2)).toEqual(original.slice(0, 2))
    expect(copy).toHaveLength(4)
    expect(original).toHaveLength(4)
  })

  it('does not carry instructions over', async () => {
    const [one, two, three] = [marker(), marker(), marker()]
    const first = await call({ input: one, instructions: 'Speak French.' })
    expect(first.instructions).toBe('Speak French.')
    const second = await call({ input: two, previous_response_id: first.id })
    expect(second.instructions).toBe(null)
    const third = await call({
      input: three,
      conversation: second.conversation?.id,
      instructions: 'Speak Dutch.',
    })
    expect(third.instructions).toBe('Speak Dutch.')
    expect((await saidTo(one))[0]).toMatch(/^(system|developer): Speak French\.$/)
    expect((await saidTo(two))[0]).toBe(`user: ${one}`)
    expect((await saidTo(three))[0]).toMatch(/^(system|developer): Speak Dutch\.$/)
    expect((await itemsOf(third)).some((item) => JSON.stringify(item).includes('Speak'))).toBe(false)
  })

  it('takes items of another conversation by their ids', async () => {
    const [one, two] = [marker(), marker()]
    const first = await call({ input: [{ role: 'user', content: `Remember ${one}.` }] })
    const [question, answer] = await itemsOf(first)
    const second = await call({
      input: [
        { type: 'item_reference', id: question?.id },
        { id: answer?.id },
        { role: 'user', content: two },
      ],
    })
    expect(await saidTo(two)).toEqual([`user: Remember ${one}.`, 'assistant: …', `user: ${two}`])
    expect(second.conversation?.id).not.toBe(first.conversation?.id)
    const items = await itemsOf(second)
    expect(items.slice(0, 2)).toEqual([question, answer])
    const input = await listItems(tenant.key, `/v1/responses/${second.id}/input_items?order=asc`)
    expect(input.data.map(({ id }) => id)).toEqual(items.slice(0, 3).map(({ id }) => id))
  })
})

describe('what is not the caller’s', () => {
  let mine: ToldResponse
  let itemId: string

  beforeAll(async () => {
    mine = await createResponse(tenant.key, { input: 'Mine.' })
    itemId = (await itemsOf(mine))[0]?.id ?? ''
  })

  const REQUESTS: Array<[name: string, body: () => Json]> = [
    ['a conversation', () => ({ conversation: mine.conversation?.id })],
    ['a previous response', () => ({ previous_response_id: mine.id })],
    ['an item', () => ({ input: [{ type: 'item_reference', id: itemId }] })],
  ]

  it.each(REQUESTS)('cannot be continued: %s', async (_, body) => {
    for (const stream of [true, false]) {
      for (const key of [colleagueKey, stranger.key]) {
        const answer = await postResponse(key, { ...body(), stream })
        expect(jsonOf(answer)).toEqual(
          refusalBody('responses', { status: 404, code: 'not_found', message: /not found/ }),
        )
        expect(answer.status).toBe(404)
      }
      const { response } = await respond(tenant.key, { ...body(), stream })
      expect(response.status).toBe('completed')
    }
  })

  it.each([
    ['conversation', 'conv_0000000000000000000000'],
    ['previous_response_id', 'resp_0000000000000000000000aaaaaaaaaa'],
    ['previous_response_id', 'x'],
  ])('nor is what does not exist: %s %j', async (member, id) => {
    const answer = await postResponse(tenant.key, { [member]: id })
    expect(jsonOf(answer)).toMatchObject({ error: { code: 'not_found' } })
    expect(answer.status).toBe(404)
  })

  it.each(['conversation', 'previous_response_id'])('an empty %s is no id', async (member) => {
    const answer = await postResponse(tenant.key, { [member]: '' })
    expect(jsonOf(answer)).toMatchObject({ error: { code: 'invalid_body' } })
    expect(answer.status).toBe(400)
  })

  it('a conversation together with a previous response is refused', async () => {
    const body = { conversation: mine.conversation?.id, previous_response_id: mine.id, stream: true }
    const answer = await postResponse(tenant.key, body)
    expect(jsonOf(answer)).toEqual(
      refusalBody('responses', { status: 400, code: 'invalid_body', message: /^conversation: / }),
    )
    expect(answer.status).toBe(400)
  })

  it('what was deleted cannot be continued', async () => {
    const gone = await createResponse(tenant.key, { input: 'Forget this.' })
    await ask(tenant.key, 'DELETE', `/v1/responses/${gone.id}`)
    const answer = await postResponse(tenant.key, { previous_response_id: gone.id })
    expect(answer.status).toBe(404)
  })
})
