import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { type Answer, jsonOf } from '../harness/send.ts'
import { addKey, addMember, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { ask, createResponse, listItems, type ToldList, type ToldResponse } from './support/response-calls.ts'

let tenant: Tenant
let response: ToldResponse

const INPUT = Array.from({ length: 25 }, (_, index) => ({
  role: index % 2 === 0 ? 'user' : 'assistant',
  content: `said ${index}`,
}))

beforeAll(async () => {
  tenant = await createTenant(gateway())
  response = await createResponse(tenant.key, { input: INPUT })
})

const inputPath = () => `/v1/responses/${response.id}/input_items`
const conversationPath = () => `/v1/conversations/${response.conversation?.id}/items`
const list = (path: string) => listItems(tenant.key, path)
const textOf = (item: unknown) => (item as { content: Array<{ text: string }> }).content[0]?.text
const said = (found: ToldList) => found.data.map(textOf)

function expectRefusal(answer: Answer, status: 400 | 404, message: RegExp) {
  const code = status === 404 ? 'not_found' : 'invalid_query'
  expect(jsonOf(answer)).toEqual(refusalBody('responses', { status, code, message }))
  expect(answer.status).toBe(status)
}

/** Every list, with what it holds from its beginning to its end. */
const LISTS: Array<[name: string, path: () => string, length: number]> = [
  ['input items', inputPath, 25],
  // The answer came after them.
  ['conversation items', conversationPath, 26],
]

describe.each(LISTS)('%s', (_, path, length) => {
  it('are the newest 20 at first, newest first', async () => {
    const newest = await list(path())
    expect(newest).toEqual({
      object: 'list',
      data: expect.any(Array),
      first_id: newest.data[0]?.id,
      last_id: newest.data[19]?.id,
      has_more: true,
    })
    expect(newest.data).toHaveLength(20)
    const oldest = await list(`${path()}?order=asc&limit=100`)
    expect(oldest.data).toHaveLength(length)
    expect(oldest.has_more).toBe(false)
    expect(newest.data).toEqual(oldest.data.toReversed().slice(0, 20))
    expect(said(oldest).slice(0, 25)).toEqual(INPUT.map(({ content }) => content))
  })

  it.each([
    ['asc', 7],
    ['desc', 24],
  ])('are whole when they are read on from last_id (%s, %d at a time)', async (order, limit) => {
    const whole = await list(`${path()}?order=${order}&limit=100`)
    const read: unknown[] = []
    let page = await list(`${path()}?order=${order}&limit=${limit}`)
    for (read.push(...page.data); page.has_more; read.push(...page.data)) {
      expect(page.data).toHaveLength(limit)
      page = await list(`${path()}?order=${order}&limit=${limit}&after=${page.last_id}`)
    }
    expect(read).toEqual(whole.data)
  })

  it('are none after the last one', async () => {
    const [last] = (await list(`${path()}?limit=1`)).data
    const none = { object: 'list', data: [], first_id: null, last_id: null, has_more: false }
    expect(await list(`${path()}?order=asc&after=${last?.id}`)).toEqual(none)
  })

  // One schema reads the query of both lists.
  const limits = ['limit=0', 'limit=101', 'limit=-1', 'limit=ten', 'limit=', 'limit=1.5', 'limit=1&limit=2']
  const isFirst = path === inputPath
  it.each(isFirst ? limits : limits.slice(0, 1))('refuse %s', async (query) => {
    expectRefusal(await ask(tenant.key, 'GET', `${path()}?${query}`), 400, /^limit: /)
  })

  it.each(isFirst ? ['order=up', 'order=', 'order=DESC'] : ['order=up'])('refuse %s', async (query) => {
    expectRefusal(await ask(tenant.key, 'GET', `${path()}?${query}`), 400, /^order: /)
  })

  const ids = ['msg_0000000000000000000000', '%00', '', 'x'.repeat(300), 'resp_1']
  it.each(isFirst ? ids : ids.slice(0, 1))('refuse to begin after %j', async (id) => {
    expectRefusal(await ask(tenant.key, 'GET', `${path()}?after=${id}`), 400, /^after: /)
  })

  it('refuse to begin after an item of another list', async () => {
    const other = await createResponse(tenant.key, { input: 'elsewhere' })
    const [item] = (await list(`/v1/responses/${other.id}/input_items`)).data
    expectRefusal(await ask(tenant.key, 'GET', `${path()}?after=${item?.id}`), 400, /^after: /)
  })

  it('are not there for anybody else, of the same organization either', async () => {
    const colleague = await addMember(gateway(), tenant.base)
    const { key } = await addKey(gateway(), tenant.base, colleague)
    const stranger = await createTenant(gateway())
    for (const other of [key, stranger.key]) {
      expectRefusal(await ask(other, 'GET', path()), 404, /not found/)
    }
  })

  it('are there for another key of their owner', async () => {
    const { key } = await addKey(gateway(), tenant.base, tenant.userId)
    expect(await listItems(key, path())).toEqual(await list(path()))
  })
})

describe('an item of a conversation', () => {
  it('is the same as in the list', async () => {
    const { data } = await list(`${conversationPath()}?limit=100`)
    for (const item of [data[0], data.at(-1)]) {
      const answer = await ask(tenant.key, 'GET', `${conversationPath()}/${item?.id}`)
      expect(jsonOf(answer)).toEqual(item)
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
    }
    expect(data[0]).toEqual(response.output[0])
  })

  it('is not there for anybody else, or in another conversation', async () => {
    const other = await createResponse(tenant.key, { input: 'elsewhere' })
    const stranger = await createTenant(gateway())
    const [item] = (await list(conversationPath())).data
    const own = `${conversationPath()}/${item?.id}`
    expectRefusal(await ask(stranger.key, 'GET', own), 404, /not found/)
    const elsewhere = `/v1/conversations/${other.conversation?.id}/items/${item?.id}`
    expectRefusal(await ask(tenant.key, 'GET', elsewhere), 404, /not found/)
    for (const id of ['msg_0000000000000000000000', '%00', 'x']) {
      expectRefusal(await ask(tenant.key, 'GET', `${conversationPath()}/${id}`), 404, /not found/)
    }
  })
})

describe('input items of a response that Postgres does not have', () => {
  it('come from its object when it is not stored', async () => {
    const unstored = await createResponse(tenant.key, { input: INPUT.slice(0, 3), store: false })
    expect(unstored.conversation).toBeNull()
    const path = `/v1/responses/${unstored.id}/input_items`
    expect(said(await list(`${path}?order=asc`))).toEqual(['said 0', 'said 1', 'said 2'])
    const [newest] = (await list(`${path}?limit=1`)).data
    expect(said(await list(`${path}?limit=1&after=${newest?.id}`))).toEqual(['said 1'])
    expectRefusal(await ask(tenant.key, 'GET', `${path}?after=x`), 400, /^after: /)
    const stranger = await createTenant(gateway())
    expectRefusal(await ask(stranger.key, 'GET', path), 404, /not found/)
  })

  it('come from its object on several pages when they are large', async () => {
    const input = Array.from({ length: 36 }, (_, index) => ({
      role: 'user',
      content: `${index} ${'x'.repeat(950_000)}`,
    }))
    const large = await createResponse(tenant.key, { input, store: false })
    const read: ToldList['data'] = []
    let pages = 0
    for (let after = '', more = true; more; pages++) {
      const path = `/v1/responses/${large.id}/input_items?order=asc&limit=100${after}`
      const page = await list(path)
      read.push(...page.data)
      after = `&after=${page.last_id}`
      more = page.has_more
    }
    expect(pages).toBeGreaterThan(1)
    expect(read.map((item) => Number(textOf(item)?.split(' ')[0]))).toEqual(input.map((_, index) => index))
  }, 60_000)

  it('come from its object while it runs, with the ids that they keep', async () => {
    const signal = uniqueName('signal')
    const script = await registerScript(gateway(), [
      { sse: ['data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}\n\n'] },
      { waitForSignal: signal },
      { sse: ['data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n', 'data: [DONE]\n\n'] },
    ])
    const running = await createResponse(tenant.key, { input: script, background: true })
    expect(running.status).toBe('in_progress')
    const path = `/v1/responses/${running.id}/input_items`
    const before = await list(path)
    expect(said(before)).toEqual([script])
    await upstreamControl(gateway()).release(signal)
    // A stream ends when Postgres has what became of it.
    const stream = await ask(tenant.key, 'GET', `/v1/responses/${running.id}?stream=true`)
    expect(stream.text).toContain('event: response.completed')
    expect(await list(path)).toEqual(before)
  })
})
