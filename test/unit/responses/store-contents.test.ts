import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { newConversationId } from '../../../src/responses/model/response-ids.ts'
import type { StoredItem } from '../../../src/responses/model/stored-items.ts'
import { beginResponse } from '../../../src/responses/store/begin-response.store.ts'
import { finishResponse } from '../../../src/responses/store/finish-response.store.ts'
import {
  listConversationItems,
  selectConversationContext,
  selectItems,
  selectResponse,
} from '../../../src/responses/store/read-responses.store.ts'
import { databaseAt } from '../calls/fixtures.ts'
import { emptyPostgres, type Forwarder, startForwarder } from '../calls/stand-ins.ts'
import { beginOf, endedResponse, finalOf, message, rowCounts, someOwner } from './store-harness.ts'

const MEGABYTE = 1_000_000

let forwarder: Forwarder
/** Through a forwarder that counts requests. */
let database: Database

beforeAll(async () => {
  forwarder = await startForwarder((await emptyPostgres()).url)
  database = databaseAt(forwarder)
})
afterAll(() => forwarder?.close())

const bytesOf = (items: readonly StoredItem[] | undefined) =>
  (items ?? []).map(({ body }) => Buffer.from(body ?? '').toString('hex'))

describe('bodies', () => {
  it('come back byte for byte', async () => {
    const owner = someOwner()
    const planes = Array.from({ length: 17 }, (_, plane) =>
      Array.from({ length: 0x10000 / 16 }, (_, index) => plane * 0x10000 + index * 16 + (index % 16))
        .filter((point) => point > 0 && (point < 0xd800 || point > 0xdfff))
        .map((point) => String.fromCodePoint(point))
        .join(''),
    )
    const bodies = [
      ...planes.map((text) => JSON.stringify({ text })),
      // Spellings that a parser and a serializer would change.
      '{"text":"\\u0000 \\ud800 \\uDFFF \\/ \\u00e9 \\\\u0000", "n":1.0e+2, "n":9007199254740993}',
      ' {\t"a" : [ ] ,\r\n "b":{} } ',
      JSON.stringify(Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).join('')),
      "\"\\\\\\\"''$1 %s E'\\\\x'\"",
      '{}',
      '',
    ]
    const items = bodies.map((body) => message('', { body }))
    const responseBody = bodies.join('\n')
    const made = await endedResponse(
      database,
      owner,
      {},
      { inputItems: items, outputItems: items.slice(0, 0), body: responseBody },
    )
    const context = await selectConversationContext(database, owner, made.conversationId)
    expect(bytesOf(context?.items)).toEqual(bytesOf(items))
    expect((await selectResponse(database, owner, made.id))?.body).toBe(responseBody)
    const all = await listConversationItems(database, owner, made.conversationId, { limit: 99, order: 'asc' })
    expect(all).toEqual({ items, hasMore: false })
  })
})

describe('many items', () => {
  /** More than one statement carries, and more than two answers (2,000 rows each). */
  const COUNT = 4_100

  it('of thousands are written and read whole and in order', { timeout: 120_000 }, async () => {
    const owner = someOwner()
    const items = Array.from({ length: COUNT }, (_, index) => message(`item ${index}`))
    const begin = beginOf({ conversation: { id: newConversationId(), creates: true } })
    await beginResponse(database, owner, begin)
    const final = finalOf(begin, { inputItems: items.slice(0, 3_000), outputItems: items.slice(3_000) })
    expect(await finishResponse(database, owner, final)).toBe('completed')
    expect(await finishResponse(database, owner, final)).toBe('completed')
    const context = await selectConversationContext(database, owner, begin.conversation?.id ?? '')
    expect(context?.nextPosition).toBe(COUNT)
    expect(context?.items).toEqual(items)
    expect((await selectResponse(database, owner, begin.id))?.output).toEqual(items.slice(3_000))
    const ids = items.map(({ id }) => id).toReversed()
    expect(await selectItems(database, owner, ids)).toEqual(items.toReversed())
    expect(await rowCounts(database, owner)).toMatchObject({ items: COUNT, uses: COUNT, places: COUNT })
    const fork = await endedResponse(database, owner, { forkOf: begin.id })
    const forked = await selectConversationContext(database, owner, fork.conversationId)
    expect(forked?.items).toHaveLength(COUNT + 2)
  })

  it('of a megabyte each go ahead in parts, unseen until the rest is written', {
    timeout: 120_000,
  }, async () => {
    const owner = someOwner()
    // Quotes and backslashes are what escaping makes longest.
    const texts = ['x', '"', '\\', 'é', '\u0001']
    const items = Array.from({ length: 8 }, (_, index) => {
      const text = (texts[index % texts.length] ?? '').repeat(MEGABYTE / 8)
      return message(`${index} ${text}`)
    })
    const begin = beginOf({ conversation: { id: newConversationId(), creates: true } })
    await beginResponse(database, owner, begin)
    const final = finalOf(begin, { inputItems: items })
    await expect(finishResponse(failingAfter(2), owner, final)).rejects.toThrow('connection refused')
    const counts = await rowCounts(database, owner)
    expect(counts.items).toBeGreaterThan(0)
    expect(counts.items).toBeLessThan(items.length)
    expect(counts).toMatchObject({ uses: 0, places: 0 })
    expect(await selectResponse(database, owner, begin.id)).toMatchObject({ status: 'in_progress' })
    expect(await selectConversationContext(database, owner, begin.conversation?.id ?? '')).toMatchObject({
      writer: begin.id,
      items: [],
    })
    expect(await finishResponse(database, owner, final)).toBe('completed')
    const context = await selectConversationContext(database, owner, begin.conversation?.id ?? '')
    expect(context?.items).toEqual(items)
  })

  it('read more than one answer can carry', { timeout: 120_000 }, async () => {
    const owner = someOwner()
    const text = 'x'.repeat(MEGABYTE)
    const items = Array.from({ length: 20 }, (_, index) => message(`${index} ${text}`))
    const made = await endedResponse(database, owner, {}, { inputItems: items, outputItems: [] })
    forwarder.requests = 0
    const context = await selectConversationContext(database, owner, made.conversationId)
    expect(context?.items.map(({ id }) => id)).toEqual(items.map(({ id }) => id))
    expect(forwarder.requests).toBeGreaterThan(1)
    const seen: string[] = []
    for (let after: string | undefined, more = true; more; ) {
      const page = await listConversationItems(database, owner, made.conversationId, {
        limit: 20,
        order: 'desc',
        after,
      })
      if (page === null || page === 'unknown_item') throw new Error(String(page))
      expect(page.items.length).toBeLessThan(20)
      seen.push(...page.items.map(({ id }) => id))
      after = seen.at(-1)
      more = page.hasMore
    }
    expect(seen).toEqual(items.map(({ id }) => id).toReversed())
  })
})

/** A database whose connection breaks after some single statements. */
function failingAfter(statements: number): Database {
  let left = statements
  const counting = <Method extends 'execute' | 'batch'>(method: Method) =>
    ((argument: never) => {
      if (method === 'batch' || left-- <= 0) throw new TypeError('connection refused')
      return (database[method] as (given: never) => unknown)(argument)
    }) as unknown as Database[Method]
  return Object.assign(Object.create(database), { execute: counting('execute'), batch: counting('batch') })
}
