import { sql } from 'drizzle-orm'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { newConversationId } from '../../../src/responses/model/response-ids.ts'
import { beginResponse, releaseConversation } from '../../../src/responses/store/begin-response.store.ts'
import { deleteResponse } from '../../../src/responses/store/delete-response.store.ts'
import { finishResponse } from '../../../src/responses/store/finish-response.store.ts'
import {
  selectConversationContext,
  selectResponse,
  selectResponseContext,
} from '../../../src/responses/store/read-responses.store.ts'
import { emptyPostgres } from '../calls/stand-ins.ts'
import {
  beginOf,
  bodiesOf,
  endedResponse,
  finalOf,
  message,
  NOW,
  rowCounts,
  someOwner,
} from './store-harness.ts'

let database: Database

beforeAll(async () => {
  ;({ database } = await emptyPostgres())
})

const writerOf = async (owner: ReturnType<typeof someOwner>, conversationId: string) =>
  (await selectConversationContext(database, owner, conversationId))?.writer

describe('beginning', () => {
  it('writes the row and makes a conversation that is locked', async () => {
    const owner = someOwner()
    const conversation = { id: newConversationId(), creates: true }
    const begin = beginOf({ conversation, keyId: 'key-7', compatibility: 'open_responses' })
    expect(await beginResponse(database, owner, begin)).toBe('begun')
    expect(await selectResponse(database, owner, begin.id)).toEqual({
      id: begin.id,
      keyId: 'key-7',
      conversationId: begin.conversation?.id,
      previousResponseId: null,
      model: 'scripted-chat',
      compatibility: 'open_responses',
      status: 'in_progress',
      body: null,
      contextPosition: 0,
      lastSequence: 0,
      policyVersion: 'policy-1',
      createdAt: new Date(NOW),
      completedAt: null,
      output: [],
    })
    expect(await selectConversationContext(database, owner, begin.conversation?.id ?? '')).toEqual({
      writer: begin.id,
      headResponseId: null,
      nextPosition: 0,
      items: [],
    })
  })

  it('needs no conversation', async () => {
    const owner = someOwner()
    const { id, status } = await endedResponse(database, owner, { conversation: null })
    expect(status).toBe('completed')
    expect(await selectResponse(database, owner, id)).toMatchObject({ conversationId: null })
    expect((await rowCounts(database, owner)).places).toBe(0)
  })

  it('is refused while another response writes, and not found in a conversation of nobody', async () => {
    const owner = someOwner()
    const { conversationId } = await endedResponse(database, owner)
    const conversation = { id: conversationId, creates: false }
    const first = beginOf({ conversation })
    expect(await beginResponse(database, owner, first)).toBe('begun')
    const second = beginOf({ conversation })
    expect(await beginResponse(database, owner, second)).toEqual({ lockedBy: first.id })
    expect(await selectResponse(database, owner, second.id)).toBeNull()
    const unknown = beginOf({ conversation: { id: newConversationId(), creates: false } })
    expect(await beginResponse(database, owner, unknown)).toBe('not_found')
    expect(await selectResponse(database, owner, unknown.id)).toBeNull()
  })

  it('lets one of 20 through, and the next when that has ended', async () => {
    const owner = someOwner()
    const { conversationId } = await endedResponse(database, owner)
    const conversation = { id: conversationId, creates: false }
    const begins = Array.from({ length: 20 }, () => beginOf({ conversation }))
    const outcomes = await Promise.all(begins.map((begin) => beginResponse(database, owner, begin)))
    const winner = begins[outcomes.indexOf('begun')]
    if (!winner) throw new Error('nobody began')
    expect(outcomes.filter((outcome) => outcome !== 'begun')).toEqual(
      Array.from({ length: 19 }, () => ({ lockedBy: winner.id })),
    )
    expect((await rowCounts(database, owner)).responses).toBe(2)
    await finishResponse(database, owner, finalOf(winner))
    expect(await beginResponse(database, owner, beginOf({ conversation }))).toBe('begun')
  })

  it('changes nothing when it is repeated, also after the end', async () => {
    const owner = someOwner()
    const conversation = { id: newConversationId(), creates: true }
    const begin = beginOf({ conversation })
    const outcomes = await Promise.all([1, 2, 3].map(() => beginResponse(database, owner, begin)))
    expect(outcomes).toEqual(['begun', 'begun', 'begun'])
    const again = beginOf({ conversation: { ...conversation, creates: false } })
    await finishResponse(database, owner, finalOf(begin))
    expect(await beginResponse(database, owner, begin)).toBe('begun')
    expect(await beginResponse(database, owner, again)).toBe('begun')
    expect(await beginResponse(database, owner, again)).toBe('begun')
    await finishResponse(database, owner, finalOf(again))
    expect(await beginResponse(database, owner, again)).toBe('begun')
    expect(await writerOf(owner, conversation.id)).toBeNull()
    expect(await selectResponse(database, owner, begin.id)).toMatchObject({ status: 'completed' })
    expect(await rowCounts(database, owner)).toMatchObject({ conversations: 1, responses: 2 })
  })

  it('does not take the row of an earlier start for its own', async () => {
    const owner = someOwner()
    const { conversationId } = await endedResponse(database, owner)
    const left = beginOf({ conversation: { id: conversationId, creates: false } })
    await beginResponse(database, owner, left)
    const later = { ...left, createdAt: left.createdAt + 1 }
    const elsewhere = { ...left, conversation: { id: newConversationId(), creates: true } }
    const nowhere = { ...left, conversation: null }
    for (const begin of [later, elsewhere, nowhere]) {
      expect(await beginResponse(database, owner, begin)).toEqual({ lockedBy: left.id })
    }
    expect(await writerOf(owner, conversationId)).toBe(left.id)
    // The rollback finds the conversation of the row.
    await releaseConversation(database, owner, {
      id: left.id,
      conversationId: null,
      begunUntil: later.createdAt,
    })
    expect(await writerOf(owner, conversationId)).toBeNull()
    expect(await beginResponse(database, owner, later)).toBe('begun')
    expect(await writerOf(owner, conversationId)).toBe(left.id)
  })

  it('is refused when the conversation has grown since its context was read', async () => {
    const owner = someOwner()
    const { conversationId } = await endedResponse(database, owner)
    const read = await selectConversationContext(database, owner, conversationId)
    const position = read?.nextPosition ?? 0
    await endedResponse(database, owner, { conversation: { id: conversationId, creates: false } })
    const late = beginOf({ conversation: { id: conversationId, creates: false, position } })
    expect(await beginResponse(database, owner, late)).toBe('moved')
    expect(await writerOf(owner, conversationId)).toBeNull()
    const fresh = { id: conversationId, creates: false, position: position + 2 }
    expect(await beginResponse(database, owner, { ...late, conversation: fresh })).toBe('begun')
  })

  it('is taken back with its row and its lock, but not once it has ended', async () => {
    const owner = someOwner()
    const { id, conversationId } = await endedResponse(database, owner)
    const begin = beginOf({ conversation: { id: conversationId, creates: false } })
    const begunUntil = begin.createdAt
    await beginResponse(database, owner, begin)
    await releaseConversation(database, owner, { id, conversationId, begunUntil })
    expect(await writerOf(owner, conversationId)).toBe(begin.id)
    expect(await selectResponse(database, owner, id)).not.toBeNull()
    await releaseConversation(database, owner, { id: begin.id, conversationId, begunUntil: begunUntil - 1 })
    expect(await writerOf(owner, conversationId)).toBe(begin.id)
    await releaseConversation(database, owner, { id: begin.id, conversationId, begunUntil })
    expect(await writerOf(owner, conversationId)).toBeNull()
    expect(await selectResponse(database, owner, begin.id)).toBeNull()
    await releaseConversation(database, owner, { id: begin.id, conversationId: null, begunUntil })
  })
})

describe('ending', () => {
  it.each(['completed', 'incomplete'] as const)('as %s adds to the conversation', async (status) => {
    const owner = someOwner()
    const made = await endedResponse(database, owner, {}, { status })
    expect(made.status).toBe(status)
    expect(await selectResponse(database, owner, made.id)).toMatchObject({
      status,
      body: made.ended.body,
      completedAt: new Date(NOW + 1_000),
      lastSequence: 9,
      contextPosition: 2,
      output: made.output,
    })
    expect(await selectConversationContext(database, owner, made.conversationId)).toEqual({
      writer: null,
      headResponseId: made.id,
      nextPosition: 2,
      items: [...made.input, ...made.output],
    })
  })

  it('as failed leaves the conversation as it was, and keeps its own items', async () => {
    const owner = someOwner()
    const first = await endedResponse(database, owner)
    const conversation = { id: first.conversationId, creates: false }
    const second = await endedResponse(database, owner, { conversation }, { status: 'failed' })
    expect(await selectConversationContext(database, owner, first.conversationId)).toEqual({
      writer: null,
      headResponseId: first.id,
      nextPosition: 2,
      items: [...first.input, ...first.output],
    })
    expect(await selectResponse(database, owner, second.id)).toMatchObject({
      status: 'failed',
      output: second.output,
    })
    expect(await selectResponseContext(database, owner, second.id)).toMatchObject({
      isHead: false,
      contextPosition: 2,
      items: [...first.input, ...first.output],
    })
  })

  it('twice, also at once, is ending once; another end afterwards counts for nothing', async () => {
    const owner = someOwner()
    const begin = beginOf({ conversation: { id: newConversationId(), creates: true } })
    await beginResponse(database, owner, begin)
    const final = finalOf(begin, { inputItems: [message('a')], outputItems: [message('b')] })
    const finishes = [1, 2, 3].map(() => finishResponse(database, owner, final))
    expect(await Promise.all(finishes)).toEqual(['completed', 'completed', 'completed'])
    const counts = await rowCounts(database, owner)
    expect(counts).toEqual({ conversations: 1, responses: 1, items: 2, uses: 2, places: 2 })
    const other = finalOf(begin, { status: 'failed', inputItems: [message('c')], lastSequence: 99 })
    expect(await finishResponse(database, owner, other)).toBe('completed')
    expect(await rowCounts(database, owner)).toEqual(counts)
    expect(await selectResponse(database, owner, begin.id)).toMatchObject({ lastSequence: 9 })
  })

  it('a second time does not take the lock from the next one', async () => {
    const owner = someOwner()
    const first = await endedResponse(database, owner)
    const next = beginOf({ conversation: { id: first.conversationId, creates: false } })
    await beginResponse(database, owner, next)
    await finishResponse(database, owner, first.ended)
    expect(await writerOf(owner, first.conversationId)).toBe(next.id)
  })

  it.each(['completed', 'failed'] as const)(
    'as %s does not free what has another writer by now',
    async (status) => {
      const owner = someOwner()
      const first = await endedResponse(database, owner)
      const begin = beginOf({ conversation: { id: first.conversationId, creates: false } })
      await beginResponse(database, owner, begin)
      await database.execute(
        sql`UPDATE conversations SET writer = 'resp_other' WHERE id = ${first.conversationId}`,
      )
      expect(await finishResponse(database, owner, finalOf(begin, { status }))).toBe(status)
      expect(await writerOf(owner, first.conversationId)).toBe('resp_other')
    },
  )

  it('without a response, or with one that was deleted, writes nothing', async () => {
    const owner = someOwner()
    const begin = beginOf({ conversation: { id: newConversationId(), creates: true } })
    const final = finalOf(begin, { inputItems: [message('a')], outputItems: [message('b')] })
    expect(await finishResponse(database, owner, final)).toBeNull()
    await beginResponse(database, owner, begin)
    await deleteResponse(database, owner, begin.id)
    expect(await finishResponse(database, owner, final)).toBeNull()
    expect(await rowCounts(database, owner)).toEqual({
      conversations: 1,
      responses: 0,
      items: 0,
      uses: 0,
      places: 0,
    })
  })

  it('keeps the order of references among the input, and adds to a conversation what is new to it', async () => {
    const owner = someOwner()
    const elsewhere = await endedResponse(database, owner)
    const first = await endedResponse(database, owner)
    const fresh = message('fresh')
    const [foreign, known] = [elsewhere.output[0]?.id ?? '', first.input[0]?.id ?? '']
    const used = [foreign, fresh.id, known, foreign, 'msg_of_nobody']
    const second = await endedResponse(
      database,
      owner,
      { conversation: { id: first.conversationId, creates: false } },
      { inputItems: [fresh], usedItemIds: used },
    )
    const context = await selectConversationContext(database, owner, first.conversationId)
    expect(bodiesOf(context?.items)).toEqual(['question', 'answer', 'answer', 'fresh', 'answer'])
    expect(context?.nextPosition).toBe(5)
    expect(await selectResponse(database, owner, second.id)).toMatchObject({ contextPosition: 5 })
  })
})
