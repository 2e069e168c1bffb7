import { Hono } from 'hono'
import { invalidRequest } from '../../lib/api-error.ts'
import { apiErrorOf } from '../../responses/error-data.ts'
import { isResponseId, newResponseId } from '../../responses/ids.ts'
import { listedItems, pageOfTexts } from '../../responses/item-list.ts'
import { deleteResponse, listInputItems } from '../../responses/store.ts'
import { storedResponse } from '../../responses/stored-response.ts'
import { storedStream } from '../../responses/stored-stream.ts'
import type { Admission, Owner, ResponseStreamObject } from '../../responses/types.ts'
import {
  type Includes,
  includesOf,
  itemListQuery,
  retrieveQuery,
  sequenceParameter,
} from '../../wire/response-queries.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { tailFrames } from '../event-stream.ts'
import { PassedBody } from '../passed-body.ts'
import { bodySource } from '../request-body.ts'
import { query, unknownId } from '../validated-request.ts'
import { currentPolicy, itemListAnswer, ownerOf, readable } from './response-answers.ts'

/** Responses (interface: Responses; Events, Resume). What is not the caller's does not exist for it, on every verb. */
export const responseRoutes = new Hono<AppEnv>()
  .post('/v1/responses', create)
  .get('/v1/responses/:responseId', query(retrieveQuery), async (context) => {
    const { stream, starting_after: startingAfter, ...includes } = context.req.valid('query')
    refuseRunPosition(context.req.param('responseId'), startingAfter)
    const asked = askedResponse(context)
    if (stream) return streamAnswer(context, asked, includesOf(includes), startingAfter)
    return context.json(await readable(context, await known(context, asked), includesOf(includes)))
  })
  .delete('/v1/responses/:responseId', async (context) => {
    const { id, owner, object } = askedResponse(context)
    const { database, contentStore } = context.var.deps
    // The object first: it stops generating, and writes nothing any more.
    const removed = await object.remove(owner)
    const deleted = await deleteResponse(database, owner, id)
    if (deleted) await contentStore.remove(deleted.contentKeys)
    if (!removed && !deleted) throw unknownId('Response', id)
    return context.json({ id, object: 'response', deleted: true })
  })
  .post('/v1/responses/:responseId/cancel', async (context) => {
    const asked = askedResponse(context)
    const cancelled = await asked.object.cancel(asked.owner)
    return context.json(
      await readable(context, cancelled ?? (await known(context, asked)), { encryptedContent: false }),
    )
  })
  .get('/v1/responses/:responseId/input_items', query(itemListQuery), async (context) => {
    const asked = askedResponse(context)
    const page = context.req.valid('query')
    const { items, model } = await inputItems(context, asked, page)
    const policy = currentPolicy(context, model)
    return itemListAnswer(context, items, includesOf(page), () => policy)
  })

/** A response by an id that was made here. Whether it exists, and for this caller, its object and Postgres know. */
interface AskedResponse {
  id: string
  owner: Owner
  object: ResponseStreamObject
}

/** @throws ApiError not_found for an id that was not made here: no object is woken for it. */
function askedResponse(context: AppContext): AskedResponse {
  const id = context.req.param('responseId') ?? ''
  const { deps } = context.var
  if (!isResponseId(deps.configuration.KEY_PEPPERS, id)) throw unknownId('Response', id)
  return { id, owner: ownerOf(context), object: deps.responseStream(id) }
}

/** The response of the object that has it, else of Postgres; never a mixture of both. @throws ApiError not_found */
async function known(context: AppContext, { id, owner, object }: AskedResponse): Promise<ResponseObject> {
  const response = (await object.snapshot(owner)) ?? (await storedResponse(context.var.deps, owner, id))
  if (response === null) throw unknownId('Response', id)
  return response
}

/** Clients that keep strictly to Open Responses ask for it (https://www.openresponses.org/specification). */
const COMPATIBILITY_HEADER = 'x-headgate-compatibility'

/** Begins a response, which then generates in its object whether or not its caller waits (design: Responses). */
async function create(context: AppContext): Promise<Response> {
  const { deps } = context.var
  const id = newResponseId(deps.configuration.KEY_PEPPERS)
  const asked = { id, owner: ownerOf(context), object: deps.responseStream(id) }
  const { stream, background } = await begin(context, asked)
  if (stream) {
    const tail = await asked.object.follow(asked.owner, 0)
    if (tail === null) throw unknownId('Response', id)
    return eventStream(context, followed(context, asked, tail, 0))
  }
  const response = await (background ? asked.object.snapshot(asked.owner) : asked.object.ended(asked.owner))
  // Removed while its caller waited.
  if (response === null) throw unknownId('Response', id)
  return context.json(response)
}

/** @throws ApiError for everything that keeps a response from beginning. */
async function begin(context: AppContext, { id, object }: AskedResponse) {
  const { principal, catalogueEpoch, call } = context.var
  const admission: Admission = {
    responseId: id,
    principal,
    catalogueEpoch,
    record: call,
    headers: [...context.req.raw.headers].filter(([name]) => !CREDENTIAL_HEADERS.has(name)),
    functionCallsComplete: context.req.header(COMPATIBILITY_HEADER)?.trim() === 'open-responses',
  }
  const body = new PassedBody(bodySource(context))
  try {
    const result = await object.start(admission, body.stream)
    // The object opened the call in the ledger, so it is not recorded once more here.
    Object.assign(call, result.record)
    if (body.failure) throw body.failure
    if (result.error) throw apiErrorOf(result.error)
    return result
  } catch (error) {
    throw body.failure ?? error
  } finally {
    await body.finish()
  }
}

/** Who the caller is was decided here: its key goes no further. */
const CREDENTIAL_HEADERS = new Set(['authorization', 'x-api-key', 'api-key', 'cookie', 'proxy-authorization'])

/** The events of a response are of an agent's run if its id says so; those are replayed whole only (interface: Events). */
function refuseRunPosition(id: string, startingAfter: number | undefined): void {
  if (!id.startsWith('resp_run_') || !startingAfter) return
  throw invalidRequest(
    'starting_after: must be 0 or left out for the response of an agent run',
    'invalid_query',
  )
}

/** Replays a response after a number, and follows it while it runs (interface: Events, Resume). */
async function streamAnswer(
  context: AppContext,
  asked: AskedResponse,
  includes: Includes,
  startingAfter: number | undefined,
): Promise<Response> {
  const after = startingAfter ?? lastEventId(context) ?? 0
  const { object, owner } = asked
  const state = await object.state(owner)
  const isLive = state !== null && (state.running || (await isCurrent(context, asked, state.policyVersion)))
  const tail = isLive ? await object.follow(owner, after) : null
  if (tail) return eventStream(context, followed(context, asked, tail, after))
  const response = await readable(context, await known(context, asked), includes)
  return eventStream(context, storedStream(response, after))
}

/** Whether the policies in force are those that the events of a response were made under. */
async function isCurrent(context: AppContext, asked: AskedResponse, policyVersion: string): Promise<boolean> {
  const { model } = await known(context, asked)
  return (await currentPolicy(context, model)).version === policyVersion
}

/** What a browser sends when it connects again. @throws ApiError invalid_request for what is no number of an event. */
function lastEventId(context: AppContext): number | null {
  const header = context.req.header('last-event-id')?.trim()
  if (!header) return null
  const parsed = sequenceParameter.safeParse(header)
  if (parsed.success) return parsed.data
  throw invalidRequest('Last-Event-ID: must be a whole number, 0 or higher', 'invalid_query')
}

const followed = (
  { var: { deps } }: AppContext,
  { id, owner }: AskedResponse,
  tail: ReadableStream<Uint8Array>,
  after: number,
) => tailFrames(tail, after, (last) => deps.responseStream(id).follow(owner, last))

const eventStream = (context: AppContext, body: ReadableStream<Uint8Array>): Response =>
  context.newResponse(body as never, 200, {
    'content-type': 'text/event-stream',
    // An event that waits in a compressor of a proxy is late.
    'cache-control': 'no-cache, no-transform',
  })

/** What a response was given: of Postgres when that has it, else of its object. @throws ApiError not_found */
async function inputItems(
  context: AppContext,
  asked: AskedResponse,
  page: Parameters<typeof pageOfTexts>[1],
) {
  const { deps } = context.var
  const { id, owner, object } = asked
  const { model } = await known(context, asked)
  const settled = await object.settle(owner)
  if (settled === 'settled' || settled === 'absent') {
    const stored = await listInputItems(deps.database, owner, id, page)
    if (stored === 'unknown_item') return { model, items: stored }
    if (stored !== null) return { model, items: listedItems(deps, stored) }
  }
  // Not stored, not yet, or never.
  const texts = await object.inputItems(owner)
  if (texts === null) throw unknownId('Response', id)
  return { model, items: pageOfTexts(texts, page) }
}
