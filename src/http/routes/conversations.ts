import { Hono } from 'hono'
import { renderItem } from '../../responses/items/item-list.ts'
import {
  conversationExists,
  listConversationItems,
  selectConversationItem,
  selectItemOrigins,
} from '../../responses/store/read-responses.store.ts'
import { filePathOf, listedFiles, openFile } from '../../responses/tools/workspace/conversation-files.ts'
import { includesOf, itemListQuery, itemQuery } from '../../wire/response-queries.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { query, unknownId } from '../validated-request.ts'
import { foundPage, itemListAnswer, jsonBytes, ownerOf, renderingOf } from './response-answers.ts'

/** Reading conversations (interface: Conversations), and the files that tools made in them. A new response continues them. */
export const conversationRoutes = new Hono<AppEnv>()
  .get('/v1/conversations/:conversationId/items', query(itemListQuery), async (context) => {
    const { deps } = context.var
    const conversationId = context.req.param('conversationId')
    const page = context.req.valid('query')
    const found = await listConversationItems(deps.database, ownerOf(context), conversationId, page)
    if (found === null) throw unknownId('Conversation', conversationId)
    const list = foundPage(found)
    return itemListAnswer(context, list, includesOf(page), await itemRendering(context, list.items))
  })
  .get('/v1/conversations/:conversationId/items/:itemId', query(itemQuery), async (context) => {
    const { deps } = context.var
    const { conversationId, itemId } = context.req.param()
    const item = await selectConversationItem(deps.database, ownerOf(context), conversationId, itemId)
    if (item === null) throw unknownId('Item', itemId)
    const { contentStore } = deps
    const includes = includesOf(context.req.valid('query'))
    const rendering = await itemRendering(context, [item])
    return jsonBytes(context, await renderItem(item, { contentStore, includes, ...rendering }))
  })
  .get('/v1/conversations/:conversationId/files', async (context) => {
    const conversationId = await ownConversation(context)
    const { workspaceOf } = context.var.deps
    return context.json(await listedFiles(workspaceOf(ownerOf(context), conversationId)))
  })
  .get('/v1/conversations/:conversationId/files/:path{.+}', async (context) => {
    const conversationId = await ownConversation(context)
    const path = filePathOf(new URL(context.req.url).pathname)
    const { workspaceOf } = context.var.deps
    const file = path === null ? null : await openFile(workspaceOf(ownerOf(context), conversationId), path)
    if (file === null) throw unknownId('File', context.req.param('path'))
    return context.newResponse(file.body as never, 200, file.headers)
  })

/** The id of a conversation of the caller. @throws ApiError not_found */
async function ownConversation(context: AppContext): Promise<string> {
  const conversationId = context.req.param('conversationId') ?? ''
  const owner = ownerOf(context)
  if (await conversationExists(context.var.deps.database, owner, conversationId)) return conversationId
  throw unknownId('Conversation', conversationId)
}

/** A conversation may have output of several models, and of responses in several forms. */
async function itemRendering(context: AppContext, items: ReadonlyArray<{ id: string }>) {
  const ids = items.map(({ id }) => id)
  return renderingOf(context, await selectItemOrigins(context.var.deps.database, ownerOf(context), ids))
}
