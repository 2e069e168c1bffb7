import { Hono } from 'hono'
import { listedItems, toldItem } from '../../responses/item-list.ts'
import { listConversationItems, selectConversationItem } from '../../responses/store.ts'
import { includesOf, itemListQuery, itemQuery } from '../../wire/response-queries.ts'
import type { AppEnv } from '../context.ts'
import { query, unknownId } from './management/request.ts'
import { currentPolicy, itemListAnswer, jsonBytes, ownerOf } from './response-answers.ts'

/** A conversation holds what several models made: policies hold for its items that hold for every model. */
const EVERY_MODEL = ''

/** Conversations, to be read (interface: Conversations). They are continued by making a response. */
export const conversationRoutes = new Hono<AppEnv>()
  .get('/v1/conversations/:conversationId/items', query(itemListQuery), async (context) => {
    const { deps } = context.var
    const conversationId = context.req.param('conversationId')
    const asked = context.req.valid('query')
    const page = await listConversationItems(deps.database, ownerOf(context), conversationId, asked)
    if (page === null) throw unknownId('Conversation', conversationId)
    const items = page === 'unknown_item' ? page : listedItems(deps, page)
    return itemListAnswer(context, items, includesOf(asked), EVERY_MODEL)
  })
  .get('/v1/conversations/:conversationId/items/:itemId', query(itemQuery), async (context) => {
    const { deps } = context.var
    const { conversationId, itemId } = context.req.param()
    const found = await selectConversationItem(deps.database, ownerOf(context), conversationId, itemId)
    const [item] = found === null ? [] : listedItems(deps, { items: [found], hasMore: false }).items
    if (item === undefined) throw unknownId('Item', itemId)
    const { encryptedContent } = includesOf(context.req.valid('query'))
    const policy = await currentPolicy(context, EVERY_MODEL)
    return jsonBytes(context, await toldItem(item, { policy, encryptedContent }))
  })
