import { describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { ContentGoneError } from '../../../src/responses/content/content-store.ts'
import { type ContextStore, loadContext } from '../../../src/responses/context/load-context.ts'
import type { StoredItem } from '../../../src/responses/model/stored-items.ts'
import type { ResponseSettings } from '../../../src/wire/responses.ts'
import { itemOf, parsed } from './items.ts'

const database = {} as Database
const owner = { organizationId: 'o', userId: 'u' }
const stored = (id: string, more: Partial<StoredItem> = {}): StoredItem => {
  const body = JSON.stringify({ id, type: 'message', role: 'user', content: [] })
  return { id, type: 'message', role: 'user', callId: null, body, contentKey: null, ...more }
}
const elsewhere = (id: string) => stored(id, { body: null, contentKey: `key/${id}` })

const nothing: ContextStore = {
  selectConversationContext: async () => null,
  selectResponseContext: async () => null,
  selectItems: async () => [],
}
const conversation = {
  writer: null,
  headResponseId: 'resp_9',
  nextPosition: 7,
  items: [stored('msg_1'), stored('msg_2')],
}
const previous = {
  conversationId: 'conv_1' as string | null,
  isHead: true,
  status: 'completed' as const,
  contextPosition: 5,
  items: [stored('msg_1')],
}
const fresh = itemOf({ role: 'user', content: 'new' })

function load(
  settings: Partial<ResponseSettings>,
  store: Partial<ContextStore> = {},
  items: Array<typeof fresh | { reference: string }> = [fresh],
  content: Record<string, Uint8Array> = {},
) {
  const get = async (key: string) => {
    const bytes = content[key]
    if (!bytes) throw new ContentGoneError(key)
    return bytes
  }
  const request = { settings: { model: 'm', ...settings }, items }
  return loadContext({ database, contentStore: { get } }, owner, request, { ...nothing, ...store })
}

describe('where a response goes', () => {
  it('a new conversation, unless it is not stored', async () => {
    const context = await load({})
    expect(context).toMatchObject({ creates: true, forkOf: null, writer: null, history: [], input: [fresh] })
    expect(context.conversationId).toMatch(/^conv_/)
    expect(context.position).toBeUndefined()
    expect(await load({ store: false })).toMatchObject({ conversationId: null, creates: false })
  })

  it('the conversation it names', async () => {
    const asked: unknown[] = []
    const selectConversationContext = async (...parameters: unknown[]) => {
      asked.push(parameters)
      return { ...conversation, writer: 'resp_8' }
    }
    const context = await load({ conversation: 'conv_1' }, { selectConversationContext })
    expect(asked).toEqual([[database, owner, 'conv_1']])
    expect(context).toMatchObject({ conversationId: 'conv_1', creates: false, position: 7, writer: 'resp_8' })
    expect(context.history.map(({ id }) => id)).toEqual(['msg_1', 'msg_2'])
    const read = await load({ conversation: 'conv_1', store: false }, { selectConversationContext })
    expect(read).toMatchObject({ conversationId: null, creates: false, position: undefined })
    expect(read.history).toHaveLength(2)
  })

  it('that of the previous response when it was the last, else one of its own', async () => {
    const following = (more: object) =>
      load(
        { previous_response_id: 'resp_1' },
        { selectResponseContext: async () => ({ ...previous, ...more }) },
      )
    expect(await following({})).toMatchObject({
      conversationId: 'conv_1',
      creates: false,
      forkOf: null,
      position: 5,
      previousResponseId: 'resp_1',
      writer: null,
    })
    for (const more of [{ isHead: false }, { conversationId: null }]) {
      const forked = await following(more)
      expect(forked).toMatchObject({ creates: true, forkOf: 'resp_1', position: undefined })
      expect(forked.conversationId).not.toBe('conv_1')
    }
    expect(await following({ status: 'in_progress' })).toMatchObject({
      writer: 'resp_1',
    })
    const selectResponseContext = async () => previous
    expect(
      await load({ previous_response_id: 'resp_1', store: false }, { selectResponseContext }),
    ).toMatchObject({ conversationId: null, creates: false, forkOf: null, history: [{ id: 'msg_1' }] })
  })

  it('nowhere', async () => {
    await expect(load({ conversation: 'conv_x' })).rejects.toMatchObject({ status: 404, code: 'not_found' })
    await expect(load({ conversation: '' })).rejects.toMatchObject({ status: 404 })
    await expect(load({ previous_response_id: '' })).rejects.toMatchObject({ status: 404 })
    await expect(load({ previous_response_id: 'resp_x' })).rejects.toMatchObject({ status: 404 })
    await expect(load({ conversation: 'c', previous_response_id: 'r' })).rejects.toMatchObject({
      status: 400,
      message: 'conversation: may not be given together with previous_response_id.',
    })
  })
})

describe('what a request refers to', () => {
  const selectItems = async (_database: unknown, _owner: unknown, ids: readonly string[]) =>
    ids.filter((id) => id !== 'msg_x').map((id) => stored(id))

  it('comes where it is referred to, once', async () => {
    const items = [{ reference: 'msg_7' }, fresh, { reference: 'msg_6' }, { reference: 'msg_7' }]
    const { input, referenced } = await load({}, { selectItems }, items)
    expect(input.map(({ id }) => id)).toEqual(['msg_7', fresh.id, 'msg_6'])
    expect([...referenced.keys()]).toEqual(['msg_7', 'msg_6'])
  })

  it('is left out when the history has it', async () => {
    const selectConversationContext = async () => conversation
    const context = await load({ conversation: 'conv_1' }, { selectItems, selectConversationContext }, [
      { reference: 'msg_2' },
      fresh,
    ])
    expect(context.input).toEqual([fresh])
    expect(context.referenced.size).toBe(0)
  })

  it('must be there', async () => {
    await expect(load({}, { selectItems }, [{ reference: 'msg_x' }])).rejects.toMatchObject({
      status: 404,
      code: 'not_found',
      message: 'Item msg_x not found.',
    })
  })
})

describe('reasoning that is given again without what is sealed of it', () => {
  const id = `rs_${'a'.repeat(22)}`
  const again = itemOf({ type: 'reasoning', id, summary: [] })
  const whole = stored(id, { type: 'reasoning' })

  it('is the stored one, once', async () => {
    const { input, referenced } = await load({}, { selectItems: async () => [whole] }, [again, fresh, again])
    expect(input.map((item) => item.id)).toEqual([id, fresh.id])
    expect([...referenced.keys()]).toEqual([id])
  })

  it('is left out when the history has it', async () => {
    const selectConversationContext = async () => ({ ...conversation, items: [whole] })
    const { input } = await load({ conversation: 'c' }, { selectConversationContext }, [again, fresh])
    expect(input).toEqual([fresh])
  })

  it('is the given one if its owner has none, or no longer has one', async () => {
    const gone = { selectItems: async () => [elsewhere(id)] }
    for (const store of [{}, gone]) {
      const { input, referenced } = await load({}, store, [again])
      expect(input).toEqual([again])
      expect(referenced.size).toBe(0)
    }
  })
})

describe('content in the content store', () => {
  const body = new TextEncoder().encode(stored('msg_2').body ?? '')
  const items = [stored('msg_1'), elsewhere('msg_2'), elsewhere('msg_3')]
  const selectConversationContext = async () => ({ ...conversation, items })

  it('is fetched, and what was erased is left out', async () => {
    const { history } = await load({ conversation: 'c' }, { selectConversationContext }, [], {
      'key/msg_2': body,
    })
    expect(history.map(({ id }) => id)).toEqual(['msg_1', 'msg_2'])
    expect(history.map(({ bytes }) => parsed(bytes).id)).toEqual(['msg_1', 'msg_2'])
  })

  it('is not referred to when it was erased', async () => {
    const selectItems = async () => [elsewhere('msg_3')]
    await expect(load({}, { selectItems }, [{ reference: 'msg_3' }])).rejects.toMatchObject({ status: 404 })
  })

  it('is bounded together with everything else', async () => {
    const large = new Uint8Array(30 * 1024 * 1024)
    const content = { 'key/msg_2': large, 'key/msg_3': large }
    await expect(
      load({ conversation: 'c' }, { selectConversationContext }, [], content),
    ).rejects.toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    })
  })
})
