import { describe, expect, it } from 'vitest'
import { noPolicy } from '../../../src/dlp/policy/call-policy.ts'
import { type ItemRendering, pageOfItems, renderList } from '../../../src/responses/items/item-list.ts'
import type { ItemPageRequest, StoredItem } from '../../../src/responses/model/stored-items.ts'

const stored = (
  item: { id: string; type: string },
  body: string | null = JSON.stringify(item),
): StoredItem => ({
  id: item.id,
  type: item.type,
  role: null,
  callId: null,
  body,
  contentKey: body === null ? `items/o/${item.id}` : null,
})
const message = (id: string, body?: string | null) => stored({ id, type: 'message' }, body)
const FIVE = ['a', 'b', 'c', 'd', 'e'].map((id) => message(id))
/** A content store that has every key. */
const contentStore = {
  get: async (key: string) => new TextEncoder().encode(JSON.stringify({ id: key.at(-1) })),
}
const RENDERING: ItemRendering = {
  contentStore,
  policyOf: async () => noPolicy,
  compatibilityOf: () => 'headgate',
  includes: new Set<string>(),
}

/** A page of a list in memory. */
const pageOf = (list: StoredItem[], request: ItemPageRequest) =>
  pageOfItems(
    list.map((item) => ({ ...item, length: item.body?.length ?? null })),
    request,
  )

/** A page as the caller gets it. */
async function rendered(...[list, request]: Parameters<typeof pageOf>) {
  const page = pageOf(list, request)
  if (page === 'unknown_item') return page
  return JSON.parse(await new Response((await renderList(page, RENDERING)) as BodyInit).text())
}

const ids = (list: { data: Array<{ id: string }> }) => list.data.map(({ id }) => id).join('')

describe('pages of a list in memory', () => {
  it.each([
    [{ limit: 20, order: 'desc' }, 'edcba', false],
    [{ limit: 20, order: 'asc' }, 'abcde', false],
    [{ limit: 5, order: 'asc' }, 'abcde', false],
    [{ limit: 2, order: 'desc' }, 'ed', true],
    [{ limit: 2, order: 'desc', after: 'd' }, 'cb', true],
    [{ limit: 2, order: 'desc', after: 'c' }, 'ba', false],
    [{ limit: 2, order: 'asc', after: 'b' }, 'cd', true],
    [{ limit: 1, order: 'asc', after: 'e' }, '', false],
  ] as const)('%j', async (request, expected, hasMore) => {
    const list = await rendered(FIVE, request)
    expect(list).toEqual({
      object: 'list',
      data: expect.any(Array),
      first_id: expected[0] ?? null,
      last_id: expected.at(-1) ?? null,
      has_more: hasMore,
    })
    expect(ids(list)).toBe(expected)
  })

  it('is empty, with every member, for no items', async () => {
    const none = { object: 'list', data: [], first_id: null, last_id: null, has_more: false }
    expect(await rendered([], { limit: 20, order: 'desc' })).toEqual(none)
  })

  it('has none after an item that is not there', async () => {
    expect(await rendered(FIVE, { limit: 20, order: 'desc', after: 'x' })).toBe('unknown_item')
    expect(await rendered([], { limit: 20, order: 'desc', after: 'a' })).toBe('unknown_item')
  })
})

describe('pages of large items', () => {
  const MEGABYTE = 1024 * 1024
  const fat = (id: string, megabytes = 1) => message(id, 'x'.repeat(megabytes * MEGABYTE))
  const cut = (list: StoredItem[], request: Parameters<typeof pageOf>[1]) => {
    const page = pageOf(list, request)
    if (page === 'unknown_item') throw new Error('no page')
    return { ids: ids({ data: page.items }), hasMore: page.hasMore }
  }

  it('are shorter, and all are read when each is read on', () => {
    const list = 'abcdefghijklmnopqrstuvwxyz'.split('').map((id) => fat(id))
    expect(cut(list, { limit: 20, order: 'asc' })).toEqual({ ids: 'abcdefghijkl', hasMore: true })
    expect(cut(list, { limit: 20, order: 'asc', after: 'l' })).toEqual({ ids: 'mnopqrstuvwx', hasMore: true })
    expect(cut(list, { limit: 20, order: 'asc', after: 'x' })).toEqual({ ids: 'yz', hasMore: false })
    expect(cut(list, { limit: 20, order: 'desc' })).toEqual({ ids: 'zyxwvutsrqpo', hasMore: true })
  })

  it('hold at least one', () => {
    const list = [fat('a', 13), fat('b', 13)]
    expect(cut(list, { limit: 20, order: 'asc' })).toEqual({ ids: 'a', hasMore: true })
    expect(cut(list, { limit: 20, order: 'asc', after: 'a' })).toEqual({ ids: 'b', hasMore: false })
  })

  it('contain items of the content store, whose content is read when they are rendered', async () => {
    const list = [message('a', null), ...FIVE.slice(1)]
    const page = pageOf(list, { limit: 20, order: 'asc' })
    expect(page).toMatchObject({ items: list, hasMore: false })
    expect(ids(await rendered(list, { limit: 20, order: 'asc' }))).toBe('abcde')
  })
})

describe('sealed reasoning', () => {
  const reasoning = { id: 'rs', type: 'reasoning', summary: [], encrypted_content: 'sealed' }
  const page = { items: [stored(reasoning)], hasMore: false }

  it('is returned only if it is included', async () => {
    const text = async (...includes: string[]) =>
      new Response((await renderList(page, { ...RENDERING, includes: new Set(includes) })) as BodyInit).text()
    expect(await text('web_search_call.results')).not.toContain('encrypted_content')
    expect(JSON.parse(await text('reasoning.encrypted_content')).data).toEqual([reasoning])
  })
})

describe('the results of a web search', () => {
  const action = { type: 'search', query: 'a', queries: ['a'] }
  const sources = [{ type: 'url', url: 'https://a.example/' }]
  const results = [{ title: 'A', url: 'https://a.example/', snippet: 'text' }]
  const search = { id: 'ws', type: 'web_search_call', action: { ...action, sources }, results }
  const page = { items: [stored(search)], hasMore: false }

  it.each([
    [[], { action }],
    [['web_search_call.results'], { action, results }],
    [['web_search_call.action.sources'], { action: { ...action, sources } }],
    [
      ['web_search_call.action.sources', 'web_search_call.results'],
      { action: { ...action, sources }, results },
    ],
  ])('are returned with %j as far as they are included', async (includes, members) => {
    const body = await renderList(page, { ...RENDERING, includes: new Set<string>(includes) })
    const [item] = JSON.parse(await new Response(body as BodyInit).text()).data
    expect(item).toEqual({ id: 'ws', type: 'web_search_call', ...members })
  })
})

describe('lists of large items', () => {
  const MEGABYTE = 1024 * 1024
  let read = 0
  const large = (index: number): StoredItem => message(`item_${index}`, null)
  /** A content store whose items have a megabyte each. @param missing index of one that it does not have. */
  const rendering = (missing?: number) => ({
    ...RENDERING,
    contentStore: {
      async get(key: string) {
        const id = key.slice('items/o/'.length)
        const index = Number(id.slice('item_'.length))
        if (index === missing) throw new Error('the content is gone')
        read = Math.max(read, index)
        return new TextEncoder().encode(JSON.stringify({ id, text: 'x'.repeat(MEGABYTE) }))
      },
    },
  })
  const list = (length: number) => Array.from({ length }, (_, index) => large(index))

  it('are streamed while they are read', async () => {
    read = 0
    const items = list(30)
    const body = await renderList({ items, hasMore: true }, rendering())
    expect(body).toBeInstanceOf(ReadableStream)
    expect(read).toBeLessThan(10)
    const envelope = JSON.parse(await new Response(body as BodyInit).text())
    expect(envelope.data.map(({ id }: { id: string }) => id)).toEqual(items.map(({ id }) => id))
    expect(envelope).toMatchObject({ first_id: 'item_0', last_id: 'item_29', has_more: true })
  })

  it('fail as a whole when the first item cannot be read, and in the middle later', async () => {
    const first = { items: list(2), hasMore: false }
    await expect(renderList(first, rendering(0))).rejects.toThrow(/gone/)
    const body = await renderList({ items: list(11), hasMore: false }, rendering(10))
    await expect(new Response(body as BodyInit).text()).rejects.toThrow()
  })
})
