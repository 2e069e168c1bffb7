import { describe, expect, it } from 'vitest'
import { noPolicy } from '../../../src/governance/dlp/policy/call-policy.ts'
import type { ContentStore } from '../../../src/responses/content/content-store.ts'
import {
  type ListedItem,
  listedItems,
  pageOfItems,
  renderList,
} from '../../../src/responses/items/item-list.ts'
import type { ItemPageRequest, StoredItem } from '../../../src/responses/items/items.store.ts'

const TELLING = { policyOf: async () => noPolicy, encryptedContent: false }
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
/** What lies in the content store. */
const contentStore = {
  get: async (key: string) => new TextEncoder().encode(JSON.stringify({ id: key.at(-1) })),
} as unknown as ContentStore

/** A page of items that are all here. */
const pageOf = (list: StoredItem[], request: ItemPageRequest) =>
  pageOfItems(
    list.map((item) => ({ ...item, length: item.body?.length ?? null })),
    request,
  )

/** A page as a caller gets it. */
async function told(...[list, request]: Parameters<typeof pageOf>) {
  const page = pageOf(list, request)
  if (page === 'unknown_item') return page
  const items = listedItems({ contentStore }, page)
  return JSON.parse(await new Response((await renderList(items, TELLING)) as BodyInit).text())
}

const ids = (list: { data: Array<{ id: string }> }) => list.data.map(({ id }) => id).join('')

describe('pages of items that are all here', () => {
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
    const list = await told(FIVE, request)
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
    expect(await told([], { limit: 20, order: 'desc' })).toEqual(none)
  })

  it('has none after an item that is not there', async () => {
    expect(await told(FIVE, { limit: 20, order: 'desc', after: 'x' })).toBe('unknown_item')
    expect(await told([], { limit: 20, order: 'desc', after: 'a' })).toBe('unknown_item')
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

  it('name what lies elsewhere, and read it when they are told', async () => {
    const list = [message('a', null), ...FIVE.slice(1)]
    const page = pageOf(list, { limit: 20, order: 'asc' })
    expect(page).toMatchObject({ items: list, hasMore: false })
    expect(ids(await told(list, { limit: 20, order: 'asc' }))).toBe('abcde')
  })
})

describe('sealed reasoning', () => {
  const reasoning = { id: 'rs', type: 'reasoning', summary: [], encrypted_content: 'sealed' }
  const page = () => {
    return listedItems({ contentStore }, { items: [stored(reasoning)], hasMore: false })
  }

  it('is told to whoever asks for it, and to nobody else', async () => {
    const text = async (encryptedContent: boolean) =>
      new Response((await renderList(page(), { ...TELLING, encryptedContent })) as BodyInit).text()
    expect(await text(false)).not.toContain('encrypted_content')
    expect(JSON.parse(await text(true)).data).toEqual([reasoning])
  })
})

describe('lists of large items', () => {
  const MEGABYTE = 1024 * 1024
  let held = 0
  const large = (index: number, fails = false): ListedItem => ({
    id: `item_${index}`,
    type: 'message',
    async read() {
      if (fails) throw new Error('the content is gone')
      held = Math.max(held, index)
      return new TextEncoder().encode(JSON.stringify({ id: `item_${index}`, text: 'x'.repeat(MEGABYTE) }))
    },
  })

  it('leave while they are read', async () => {
    held = 0
    const items = Array.from({ length: 30 }, (_, index) => large(index))
    const body = await renderList({ items, hasMore: true }, TELLING)
    expect(body).toBeInstanceOf(ReadableStream)
    expect(held).toBeLessThan(10)
    const list = JSON.parse(await new Response(body as BodyInit).text())
    expect(list.data.map(({ id }: { id: string }) => id)).toEqual(items.map(({ id }) => id))
    expect(list).toMatchObject({ first_id: 'item_0', last_id: 'item_29', has_more: true })
  })

  it('fail as a whole when the first cannot be read, and break off later', async () => {
    const first = [large(0, true), large(1)]
    await expect(renderList({ items: first, hasMore: false }, TELLING)).rejects.toThrow(/gone/)
    const later = [...Array.from({ length: 10 }, (_, index) => large(index)), large(10, true)]
    const body = await renderList({ items: later, hasMore: false }, TELLING)
    await expect(new Response(body as BodyInit).text()).rejects.toThrow()
  })
})
