import { beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { newConversationId } from '../../../src/responses/model/response-ids.ts'
import { beginResponse } from '../../../src/responses/store/begin-response.store.ts'
import { deleteResponse } from '../../../src/responses/store/delete-response.store.ts'
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
  message,
  responseId,
  rowCounts,
  someOwner,
} from './store-harness.ts'

let database: Database

beforeAll(async () => {
  ;({ database } = await emptyPostgres())
})

const writerOf = async (owner: ReturnType<typeof someOwner>, conversationId: string) =>
  (await selectConversationContext(database, owner, conversationId))?.writer

describe('forks', () => {
  it('start with the context of the response, whatever came after it', async () => {
    const owner = someOwner()
    const first = await endedResponse(database, owner)
    const conversation = { id: first.conversationId, creates: false }
    const second = await endedResponse(database, owner, { conversation })
    const fork = await endedResponse(
      database,
      owner,
      { forkOf: first.id, previousResponseId: first.id },
      { inputItems: [message('other question')], outputItems: [message('other answer')] },
    )
    expect(fork.conversationId).not.toBe(first.conversationId)
    const context = await selectConversationContext(database, owner, fork.conversationId)
    expect(bodiesOf(context?.items)).toEqual(['question', 'answer', 'other question', 'other answer'])
    expect(context).toMatchObject({ writer: null, headResponseId: fork.id, nextPosition: 4 })
    expect(await selectResponse(database, owner, fork.id)).toMatchObject({ previousResponseId: first.id })
    const original = await selectConversationContext(database, owner, first.conversationId)
    expect(original).toMatchObject({ headResponseId: second.id, nextPosition: 4, writer: null })
    expect(original?.items).toHaveLength(4)
  })

  it('of a response without a conversation start with its own items', async () => {
    const owner = someOwner()
    const source = await endedResponse(database, owner, { conversation: null })
    const fork = beginOf({ conversation: { id: newConversationId(), creates: true }, forkOf: source.id })
    expect(await beginResponse(database, owner, fork)).toBe('begun')
    const context = await selectConversationContext(database, owner, fork.conversation?.id ?? '')
    expect(context?.items).toEqual([...source.input, ...source.output])
    expect(context).toMatchObject({ nextPosition: 2, writer: fork.id })
  })

  it('are made of what is free: the conversation forked from may have a writer', async () => {
    const owner = someOwner()
    const first = await endedResponse(database, owner)
    await beginResponse(
      database,
      owner,
      beginOf({ conversation: { id: first.conversationId, creates: false } }),
    )
    const fork = beginOf({ conversation: { id: newConversationId(), creates: true }, forkOf: first.id })
    const outcomes = await Promise.all([1, 2].map(() => beginResponse(database, owner, fork)))
    expect(outcomes).toEqual(['begun', 'begun'])
    expect((await rowCounts(database, owner)).places).toBe(4)
  })

  it('of an unknown response make nothing', async () => {
    const owner = someOwner()
    const conversation = { id: newConversationId(), creates: true }
    const fork = beginOf({ conversation, forkOf: responseId() })
    expect(await beginResponse(database, owner, fork)).toBe('not_found')
    expect(await rowCounts(database, owner)).toMatchObject({ conversations: 0, responses: 0 })
  })

  it('tell which response is the last of its conversation', async () => {
    const owner = someOwner()
    const first = await endedResponse(database, owner)
    const conversation = { id: first.conversationId, creates: false }
    const second = await endedResponse(database, owner, { conversation })
    expect(await selectResponseContext(database, owner, first.id)).toEqual({
      conversationId: first.conversationId,
      isHead: false,
      status: 'completed',
      contextPosition: 2,
      items: [...first.input, ...first.output],
    })
    expect(await selectResponseContext(database, owner, second.id)).toMatchObject({
      isHead: true,
      contextPosition: 4,
      items: [...first.input, ...first.output, ...second.input, ...second.output],
    })
    const alone = await endedResponse(database, owner, { conversation: null })
    expect(await selectResponseContext(database, owner, alone.id)).toEqual({
      conversationId: null,
      isHead: false,
      status: 'completed',
      contextPosition: null,
      items: [...alone.input, ...alone.output],
    })
  })
})

describe('deleting', () => {
  it('erases the items of a response wherever they are, and tells where content lies', async () => {
    const owner = someOwner()
    const first = await endedResponse(
      database,
      owner,
      {},
      {
        inputItems: [message('a'), message('large', { body: null, contentKey: 'items/1' })],
        outputItems: [message('b', { body: null, contentKey: 'items/2' })],
      },
    )
    const conversation = { id: first.conversationId, creates: false }
    const referred = first.ended.outputItems[0]?.id ?? ''
    const second = await endedResponse(database, owner, { conversation })
    const fork = await endedResponse(database, owner, { forkOf: first.id })
    const other = await endedResponse(database, owner, {}, { usedItemIds: [referred], inputItems: [] })
    const deleted = await deleteResponse(database, owner, first.id)
    expect(deleted?.contentKeys.toSorted()).toEqual(['items/1', 'items/2'])
    expect(await selectResponse(database, owner, first.id)).toBeNull()
    for (const left of [second, fork]) {
      const context = await selectConversationContext(database, owner, left.conversationId)
      expect(context?.items).toEqual([...left.input, ...left.output])
      expect(context?.headResponseId).toBe(left.id)
    }
    const context = await selectConversationContext(database, owner, other.conversationId)
    expect(context?.items).toEqual(other.output)
    expect(await deleteResponse(database, owner, first.id)).toBeNull()
  })

  it('leaves items that the response only referred to, but not where it had put them', async () => {
    const owner = someOwner()
    const source = await endedResponse(database, owner)
    const [question] = source.input
    const used = { inputItems: [], usedItemIds: [question?.id ?? ''] }
    const referring = await endedResponse(database, owner, {}, used)
    const fork = await endedResponse(database, owner, { forkOf: referring.id })
    expect(await deleteResponse(database, owner, referring.id)).toMatchObject({ contentKeys: [] })
    expect((await selectConversationContext(database, owner, referring.conversationId))?.items).toEqual([])
    expect((await selectConversationContext(database, owner, fork.conversationId))?.items).toEqual([
      ...fork.input,
      ...fork.output,
    ])
    expect((await selectConversationContext(database, owner, source.conversationId))?.items).toEqual([
      ...source.input,
      ...source.output,
    ])
  })

  it('frees the conversation of a running response, and goes on after its last one', async () => {
    const owner = someOwner()
    const first = await endedResponse(database, owner)
    const conversation = { id: first.conversationId, creates: false }
    const running = beginOf({ conversation })
    await beginResponse(database, owner, running)
    await deleteResponse(database, owner, running.id)
    expect(await writerOf(owner, first.conversationId)).toBeNull()
    await deleteResponse(database, owner, first.id)
    const next = await endedResponse(database, owner, { conversation })
    expect(await selectConversationContext(database, owner, first.conversationId)).toEqual({
      writer: null,
      headResponseId: next.id,
      nextPosition: 4,
      items: [...next.input, ...next.output],
    })
    expect(await rowCounts(database, owner)).toEqual({
      conversations: 1,
      responses: 1,
      items: 2,
      uses: 2,
      places: 2,
    })
  })
})
