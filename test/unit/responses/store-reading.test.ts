import { beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { newConversationId } from '../../../src/responses/model/response-ids.ts'
import type { StoredItem } from '../../../src/responses/model/stored-items.ts'
import type { Owner } from '../../../src/responses/model/types.ts'
import { beginResponse, releaseConversation } from '../../../src/responses/store/begin-response.store.ts'
import { deleteResponse } from '../../../src/responses/store/delete-response.store.ts'
import { finishResponse } from '../../../src/responses/store/finish-response.store.ts'
import {
  listConversationItems,
  listInputItems,
  selectConversationContext,
  selectConversationItem,
  selectItems,
  selectResponse,
  selectResponseContext,
} from '../../../src/responses/store/read-responses.store.ts'
import { emptyPostgres } from '../calls/stand-ins.ts'
import { beginOf, bodiesOf, endedResponse, finalOf, message, rowCounts, someOwner } from './store-harness.ts'

let database: Database

beforeAll(async () => {
  ;({ database } = await emptyPostgres())
})

describe('ownership', () => {
  const owner = someOwner()
  const strangers: Array<[string, Owner]> = [
    ['another user of the organization', someOwner({ organizationId: owner.organizationId })],
    ['the user in another organization', someOwner({ userId: owner.userId })],
    ['somebody else', someOwner()],
  ]
  let made: Awaited<ReturnType<typeof endedResponse>>
  let running: ReturnType<typeof beginOf>
  beforeAll(async () => {
    made = await endedResponse(database, owner)
    running = beginOf({ conversation: { id: made.conversationId, creates: false } })
    await beginResponse(database, owner, running)
  })

  it.each(strangers)('hides everything from %s', async (_name, stranger) => {
    const { id, conversationId, input, output } = made
    const ids = [...input, ...output].map((item) => item.id)
    const page = { limit: 10, order: 'asc' as const }
    expect(await selectResponse(database, stranger, id)).toBeNull()
    expect(await selectResponseContext(database, stranger, id)).toBeNull()
    expect(await selectConversationContext(database, stranger, conversationId)).toBeNull()
    expect(await selectItems(database, stranger, ids)).toEqual([])
    expect(await listConversationItems(database, stranger, conversationId, page)).toBeNull()
    expect(
      await listConversationItems(database, stranger, conversationId, { ...page, after: ids[0] }),
    ).toBeNull()
    expect(await selectConversationItem(database, stranger, conversationId, ids[0] ?? '')).toBeNull()
    expect(await listInputItems(database, stranger, id, page)).toBeNull()
  })

  it.each(strangers)('lets %s change nothing', async (_name, stranger) => {
    const { id, conversationId, input, output } = made
    const before = await rowCounts(database, owner)
    const context = await selectConversationContext(database, owner, conversationId)
    const inside = beginOf({ conversation: { id: conversationId, creates: false } })
    expect(await beginResponse(database, stranger, inside)).toBe('not_found')
    const taken = beginOf({ conversation: { id: conversationId, creates: true } })
    expect(await beginResponse(database, stranger, taken)).toBe('not_found')
    const fork = beginOf({ conversation: { id: newConversationId(), creates: true }, forkOf: id })
    expect(await beginResponse(database, stranger, fork)).toBe('not_found')
    expect(await beginResponse(database, stranger, { ...running, conversation: null })).toBe('not_found')
    expect(await finishResponse(database, stranger, finalOf(running, { outputItems: [message('x')] }))).toBe(
      null,
    )
    expect(await deleteResponse(database, stranger, id)).toBeNull()
    await releaseConversation(database, stranger, {
      id: running.id,
      conversationId,
      begunUntil: running.createdAt,
    })
    expect(await rowCounts(database, owner)).toEqual(before)
    expect(await rowCounts(database, stranger)).toEqual({
      conversations: 0,
      responses: 0,
      items: 0,
      uses: 0,
      places: 0,
    })
    expect(await selectConversationContext(database, owner, conversationId)).toEqual(context)
    expect(context).toMatchObject({ writer: running.id, items: [...input, ...output] })
  })

  it.each(strangers)('takes no item of the owner into a response of %s', async (_name, stranger) => {
    const ids = [...made.input, ...made.output].map((item) => item.id)
    const stolen = { ...message('mine'), id: ids[0] ?? '' }
    const own = await endedResponse(
      database,
      stranger,
      {},
      { inputItems: [stolen], usedItemIds: ids, outputItems: [] },
    )
    expect((await selectConversationContext(database, stranger, own.conversationId))?.items).toEqual([])
    expect(await listInputItems(database, stranger, own.id, { limit: 9, order: 'asc' })).toEqual({
      items: [],
      hasMore: false,
    })
    expect(await selectItems(database, owner, ids)).toEqual([...made.input, ...made.output])
    await deleteResponse(database, stranger, own.id)
    expect(await selectItems(database, owner, ids)).toHaveLength(2)
  })

  it('finds nothing under ids that Postgres cannot hold', async () => {
    const page = { limit: 1, order: 'asc' as const }
    for (const id of ['', 'conv_\u0000', 'resp_\ud800', "'; DROP TABLE responses; --", 'é'.repeat(3_000)]) {
      expect(await selectResponse(database, owner, id)).toBeNull()
      expect(await selectResponseContext(database, owner, id)).toBeNull()
      expect(await selectConversationContext(database, owner, id)).toBeNull()
      expect(await selectItems(database, owner, [id])).toEqual([])
      expect(await listConversationItems(database, owner, id, page)).toBeNull()
      expect(await listConversationItems(database, owner, made.conversationId, { ...page, after: id })).toBe(
        'unknown_item',
      )
      expect(await selectConversationItem(database, owner, made.conversationId, id)).toBeNull()
      expect(await deleteResponse(database, owner, id)).toBeNull()
      const begin = beginOf({ conversation: { id, creates: false } })
      expect(await beginResponse(database, owner, begin)).toBe('not_found')
    }
  })
})

describe('items', () => {
  it('come by id in the order asked for, in a conversation only where they are', async () => {
    const owner = someOwner()
    const first = await endedResponse(database, owner)
    const second = await endedResponse(database, owner)
    const [question] = first.input as [StoredItem]
    const [answer] = second.output as [StoredItem]
    expect(await selectItems(database, owner, [answer.id, 'msg_none', question.id])).toEqual([
      answer,
      question,
    ])
    expect(await selectItems(database, owner, [])).toEqual([])
    expect(await selectConversationItem(database, owner, first.conversationId, question.id)).toEqual(question)
    expect(await selectConversationItem(database, owner, second.conversationId, question.id)).toBeNull()
    expect(await selectConversationItem(database, owner, first.conversationId, 'msg_none')).toBeNull()
    expect(await selectConversationItem(database, owner, 'conv_none', question.id)).toBeNull()
  })

  it('keep everything that is known of them', async () => {
    const owner = someOwner()
    const items: StoredItem[] = [
      message('call', { type: 'function_call', role: null, callId: 'call_1' }),
      message('large', { body: null, contentKey: 'items/large' }),
    ]
    const made = await endedResponse(database, owner, {}, { inputItems: items })
    expect(await listInputItems(database, owner, made.id, { limit: 2, order: 'asc' })).toEqual({
      items,
      hasMore: false,
    })
  })
})

describe('pages', () => {
  const owner = someOwner()
  const texts = ['0', '1', '2', '3', '4', '5', '6']
  let conversationId: string
  let id: string
  let ids: string[]
  beforeAll(async () => {
    const items = texts.map((text) => message(text))
    ids = items.map((item) => item.id)
    const made = await endedResponse(database, owner, {}, { inputItems: items, outputItems: [] })
    conversationId = made.conversationId
    id = made.id
  })

  const lists = [
    [
      'a conversation',
      (page: Parameters<typeof listInputItems>[3]) =>
        listConversationItems(database, owner, conversationId, page),
    ],
    ['an input', (page: Parameters<typeof listInputItems>[3]) => listInputItems(database, owner, id, page)],
  ] as const

  for (const [name, list] of lists) {
    for (const order of ['asc', 'desc'] as const) {
      const wanted = order === 'asc' ? texts : texts.toReversed()
      it.each([1, 2, 3, 6, 7, 8, 100])(`of ${name} cover it, ${order}, by %i`, async (limit) => {
        const seen: unknown[] = []
        for (let after: string | undefined, more = true; more; ) {
          const page = await list({ limit, order, after })
          if (page === null || page === 'unknown_item') throw new Error(String(page))
          expect(page.items.length).toBe(Math.min(limit, texts.length - seen.length))
          seen.push(...bodiesOf(page.items))
          expect(page.hasMore).toBe(seen.length < texts.length)
          after = page.items.at(-1)?.id
          more = page.hasMore
        }
        expect(seen).toEqual(wanted)
      })

      it(`of ${name} are empty after the last item, ${order}`, async () => {
        const after = order === 'asc' ? ids.at(-1) : ids[0]
        expect(await list({ limit: 5, order, after })).toEqual({ items: [], hasMore: false })
      })
    }

    it(`of ${name} know only items of it`, async () => {
      const other = await endedResponse(database, owner)
      for (const after of ['msg_none', other.input[0]?.id]) {
        expect(await list({ limit: 5, order: 'asc', after })).toBe('unknown_item')
      }
    })
  }

  it('of an empty conversation are empty', async () => {
    const begin = beginOf({ conversation: { id: newConversationId(), creates: true } })
    await beginResponse(database, owner, begin)
    const page = { limit: 5, order: 'desc' as const }
    const empty = { items: [], hasMore: false }
    expect(await listConversationItems(database, owner, begin.conversation?.id ?? '', page)).toEqual(empty)
    expect(await listInputItems(database, owner, begin.id, page)).toEqual(empty)
  })

  it('of an input name an item once that was referred to twice', async () => {
    const [first = '', second = ''] = ids
    const used = [first, second, first]
    const made = await endedResponse(database, owner, {}, { inputItems: [], usedItemIds: used })
    const page = await listInputItems(database, owner, made.id, { limit: 9, order: 'asc' })
    expect(page).toMatchObject({ items: [{ id: first }, { id: second }], hasMore: false })
  })

  it('go on after an item whose neighbours were deleted', async () => {
    const first = await endedResponse(database, owner)
    const conversation = { id: first.conversationId, creates: false }
    const second = await endedResponse(database, owner, { conversation })
    const third = await endedResponse(database, owner, { conversation })
    await deleteResponse(database, owner, second.id)
    const after = first.output[0]?.id
    const page = { limit: 1, order: 'asc' as const, after }
    expect(await listConversationItems(database, owner, first.conversationId, page)).toEqual({
      items: third.input,
      hasMore: true,
    })
  })
})
