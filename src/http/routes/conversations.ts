import { Hono } from 'hono'
import { listedItems, renderItem } from '../../responses/items/item-list.ts'
import {
  listConversationItems,
  selectConversationItem,
  selectItemModels,
} from '../../responses/response-queries.store.ts'
import { includesOf, itemListQuery, itemQuery } from '../../wire/response-queries.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { query, unknownId } from '../validated-request.ts'
import { foundPage, itemListAnswer, jsonBytes, ownerOf, policiesOf } from './response-answers.ts'

/** Conversations, to be read (interface: Conversations). They are continued by making a response. */
export const conversationRoutes = new Hono<AppEnv>()
  .get('/v1/conversations/:conversationId/items', query(itemListQuery), async (context) => {
    const { deps } = context.var
    const conversationId = context.req.param('conversationId')
    const asked = context.req.valid('query')
    const found = await listConversationItems(deps.database, ownerOf(context), conversationId, asked)
    if (found === null) throw unknownId('Conversation', conversationId)
    const page = foundPage(found)
    const policyOf = await policiesOfItems(context, page.items)
    return itemListAnswer(context, listedItems(deps, page), includesOf(asked), policyOf)
  })
  .get('/v1/conversations/:conversationId/items/:itemId', query(itemQuery), async (context) => {
    const { deps } = context.var
    const { conversationId, itemId } = context.req.param()
    const found = await selectConversationItem(deps.database, ownerOf(context), conversationId, itemId)
    const [item] = found === null ? [] : listedItems(deps, { items: [found], hasMore: false }).items
    if (item === undefined) throw unknownId('Item', itemId)
    const { encryptedContent } = includesOf(context.req.valid('query'))
    const policyOf = await policiesOfItems(context, [item])
    return jsonBytes(context, await renderItem(item, { policyOf, encryptedContent }))
  })

/** A conversation holds what several models made, and policies may hold for some of them. */
async function policiesOfItems(context: AppContext, items: ReadonlyArray<{ id: string }>) {
  const ids = items.map(({ id }) => id)
  return policiesOf(context, await selectItemModels(context.var.deps.database, ownerOf(context), ids))
}
