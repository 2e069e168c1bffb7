import { Hono } from 'hono'
import { renderItem } from '../../responses/items/item-list.ts'
import {
  listConversationItems,
  selectConversationItem,
  selectItemModels,
} from '../../responses/store/read-responses.store.ts'
import { includesOf, itemListQuery, itemQuery } from '../../wire/response-queries.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { query, unknownId } from '../validated-request.ts'
import { foundPage, itemListAnswer, jsonBytes, ownerOf, policiesOf } from './response-answers.ts'

/** Reading conversations (interface: Conversations). A new response continues them. */
export const conversationRoutes = new Hono<AppEnv>()
  .get('/v1/conversations/:conversationId/items', query(itemListQuery), async (context) => {
    const { deps } = context.var
    const conversationId = context.req.param('conversationId')
    const page = context.req.valid('query')
    const found = await listConversationItems(deps.database, ownerOf(context), conversationId, page)
    if (found === null) throw unknownId('Conversation', conversationId)
    const list = foundPage(found)
    const policyOf = await policiesOfItems(context, list.items)
    return itemListAnswer(context, list, includesOf(page), policyOf)
  })
  .get('/v1/conversations/:conversationId/items/:itemId', query(itemQuery), async (context) => {
    const { deps } = context.var
    const { conversationId, itemId } = context.req.param()
    const item = await selectConversationItem(deps.database, ownerOf(context), conversationId, itemId)
    if (item === null) throw unknownId('Item', itemId)
    const { contentStore } = deps
    const includes = includesOf(context.req.valid('query'))
    const policyOf = await policiesOfItems(context, [item])
    return jsonBytes(context, await renderItem(item, { contentStore, policyOf, includes }))
  })

/** A conversation may have output of several models, and a policy may apply to some of them only. */
async function policiesOfItems(context: AppContext, items: ReadonlyArray<{ id: string }>) {
  const ids = items.map(({ id }) => id)
  return policiesOf(context, await selectItemModels(context.var.deps.database, ownerOf(context), ids))
}
