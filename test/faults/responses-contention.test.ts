import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../schema/database.ts'
import { databaseCause } from '../../src/lib/database-error.ts'
import { newConversationId } from '../../src/responses/model/response-ids.ts'
import { beginResponse, releaseConversation } from '../../src/responses/store/begin-response.store.ts'
import { deleteResponse } from '../../src/responses/store/delete-response.store.ts'
import { finishResponse } from '../../src/responses/store/finish-response.store.ts'
import { selectConversationContext, selectResponse } from '../../src/responses/store/read-responses.store.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from '../local/real-servers.ts'
import { databaseAt, migrateDatabase } from '../unit/calls/fixtures.ts'
import { type Service, startStandIn } from '../unit/calls/stand-ins.ts'
import {
  beginOf,
  bodiesOf,
  endedResponse,
  finalOf,
  message,
  rowCounts,
  someOwner,
} from '../unit/responses/store-harness.ts'

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres)
  tellSkipped('contention over conversations (embedded Postgres has one session)', 'PostgreSQL')

/** Retries as callers do, after errors for which the database documents a retry. */
async function persistently<Result>(change: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await change()
    } catch (error) {
      const code = databaseCause(error)?.code
      if (attempt === 3 || !['40001', '40P01'].includes(code ?? '')) throw error
    }
  }
}

const NAME = 'contention over conversations, which only a real PostgreSQL has'

describe.skipIf(!hasRealPostgres)(NAME, { timeout: 60_000 }, () => {
  let real: RealServer
  let service: Service
  let database: Database

  beforeAll(async () => {
    real = await startRealPostgres()
    service = await startStandIn('postgres', ['--database-url', real.url])
    database = databaseAt(service.url)
    await migrateDatabase(database)
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await real?.stop()
  })

  it('lets one of 20 begin, over and over, and loses no item', async () => {
    const owner = someOwner()
    const { conversationId } = await endedResponse(database, owner)
    const conversation = { id: conversationId, creates: false }
    for (let round = 0; round < 10; round++) {
      const begins = Array.from({ length: 20 }, () => beginOf({ conversation }))
      const outcomes = await Promise.all(begins.map((begin) => beginResponse(database, owner, begin)))
      const winner = begins[outcomes.indexOf('begun')]
      if (!winner) throw new Error('nobody began')
      const refusals = outcomes.filter((outcome) => outcome !== 'begun')
      expect(refusals).toEqual(Array.from({ length: 19 }, () => ({ lockedBy: winner.id })))
      const final = finalOf(winner, { outputItems: [message(`round ${round}`)] })
      const ends = await Promise.all([1, 2, 3].map(() => finishResponse(database, owner, final)))
      expect(ends).toEqual(['completed', 'completed', 'completed'])
    }
    const context = await selectConversationContext(database, owner, conversationId)
    const rounds = Array.from({ length: 10 }, (_, round) => `round ${round}`)
    expect(bodiesOf(context?.items)).toEqual(['question', 'answer', ...rounds])
    expect(context).toMatchObject({ writer: null, nextPosition: 12 })
    expect(await rowCounts(database, owner)).toMatchObject({ responses: 11, items: 12, places: 12 })
  })

  it('runs whole responses side by side, one after the other in each conversation', async () => {
    const owner = someOwner()
    const { conversationId } = await endedResponse(database, owner)
    let refused = 0
    const runOne = async (name: number): Promise<void> => {
      for (;;) {
        const read = await selectConversationContext(database, owner, conversationId)
        const position = read?.nextPosition
        const begin = beginOf({ conversation: { id: conversationId, creates: false, position } })
        const outcome = await beginResponse(database, owner, begin)
        if (outcome !== 'begun') {
          refused++
          continue
        }
        const seen = read?.items.length ?? 0
        const final = finalOf(begin, { outputItems: [message(`${name} after ${seen}`)] })
        expect(await finishResponse(database, owner, final)).toBe('completed')
        return
      }
    }
    await Promise.all(Array.from({ length: 8 }, (_, name) => runOne(name)))
    const context = await selectConversationContext(database, owner, conversationId)
    const texts = bodiesOf(context?.items).slice(2)
    // Each answered exactly what stood before it.
    expect(texts.map((text) => String(text).replace(/^\d+ /, ''))).toEqual(
      Array.from({ length: 8 }, (_, index) => `after ${index + 2}`),
    )
    expect(refused).toBeGreaterThan(0)
  })

  it('leaves nothing of a response that is deleted while it ends, and tells where its content lies', async () => {
    const owner = someOwner()
    const source = await endedResponse(database, owner)
    for (let round = 0; round < 40; round++) {
      const conversation = round % 2 === 0 ? null : { id: newConversationId(), creates: true }
      const begin = beginOf({ conversation })
      await beginResponse(database, owner, begin)
      const items = Array.from({ length: 20 }, (_, index) => message(`${index}`))
      items.push(message('large', { body: null, contentKey: `items/${round}` }))
      const used = [...items.map(({ id }) => id), source.input[0]?.id ?? '']
      const final = finalOf(begin, { inputItems: items, usedItemIds: used, outputItems: [message('out')] })
      // Neither statement is retried: they lock rows in one order, so that there is no deadlock.
      const [status, deleted] = await Promise.all([
        finishResponse(database, owner, final),
        deleteResponse(database, owner, begin.id),
      ])
      expect(deleted).toMatchObject({ contentKeys: status === null ? [] : [`items/${round}`] })
      expect(await selectResponse(database, owner, begin.id)).toBeNull()
      const context = await selectConversationContext(database, owner, begin.conversation?.id ?? '')
      const left = { writer: null, headResponseId: null, items: [] }
      expect(context).toEqual(conversation && expect.objectContaining(left))
    }
    expect(await rowCounts(database, owner)).toMatchObject({ responses: 1, items: 2, uses: 2, places: 2 })
  })

  it('survives that items are erased while others refer to them and fork from them', async () => {
    const owner = someOwner()
    for (let round = 0; round < 25; round++) {
      const source = await endedResponse(database, owner)
      const conversation = { id: source.conversationId, creates: false }
      const next = beginOf({ conversation })
      await beginResponse(database, owner, next)
      const used = [...source.input, ...source.output].map(({ id }) => id)
      const final = finalOf(next, { usedItemIds: used, outputItems: [message('next')] })
      const fork = beginOf({ conversation: { id: newConversationId(), creates: true }, forkOf: source.id })
      const [status, outcome, deleted] = await Promise.all([
        persistently(() => finishResponse(database, owner, final)),
        persistently(() => beginResponse(database, owner, fork)),
        persistently(() => deleteResponse(database, owner, source.id)),
      ])
      expect(status).toBe('completed')
      expect(['begun', 'not_found']).toContain(outcome)
      expect(deleted).not.toBeNull()
      const context = await selectConversationContext(database, owner, source.conversationId)
      expect(bodiesOf(context?.items)).toEqual(['next'])
      const forked = await selectConversationContext(database, owner, fork.conversation?.id ?? '')
      expect(forked?.items ?? []).toEqual([])
    }
  })

  it('ends a beginning or takes it back, never half of it', async () => {
    const owner = someOwner()
    for (let round = 0; round < 25; round++) {
      const { conversationId, id } = await endedResponse(database, owner)
      const begin = beginOf({ conversation: { id: conversationId, creates: false } })
      await Promise.all([
        beginResponse(database, owner, begin),
        releaseConversation(database, owner, {
          id: begin.id,
          conversationId,
          begunUntil: begin.createdAt,
        }),
      ])
      const row = await selectResponse(database, owner, begin.id)
      const context = await selectConversationContext(database, owner, conversationId)
      expect(context?.writer).toBe(row === null ? null : begin.id)
      expect(context?.headResponseId).toBe(id)
    }
  })
})
