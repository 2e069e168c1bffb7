import { Hono } from 'hono'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import { newId } from '../../lib/ids.ts'
import { eraseResponse } from '../../responses/content/content-garbage.ts'
import { isResponseId, newResponseId } from '../../responses/ids.ts'
import { listedItems } from '../../responses/items/item-list.ts'
import { sealedMemberOf } from '../../responses/items/redaction.ts'
import { storedStream } from '../../responses/log/stored-stream.ts'
import { apiErrorOf } from '../../responses/object/error-data.ts'
import { storedResponse } from '../../responses/object/stored-response.ts'
import { listInputItems } from '../../responses/response-queries.store.ts'
import type { Owner, ResponseStreamObject, StartRequest } from '../../responses/types.ts'
import {
  type Includes,
  type ItemListQuery,
  includesOf,
  itemListQuery,
  retrieveQuery,
  sequenceParameter,
} from '../../wire/response-queries.ts'
import type { OutputItem, ResponseObject } from '../../wire/responses.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { awaitedFrames, tailFrames } from '../event-stream.ts'
import { isSmallBody, requireRoom } from '../governed-body.ts'
import { PassedBody } from '../passed-body.ts'
import { bodySource } from '../request-body.ts'
import { query, unknownId } from '../validated-request.ts'
import {
  currentPolicy,
  foundPage,
  itemListAnswer,
  ownerOf,
  readable,
  refreshRights,
} from './response-answers.ts'

/** Responses (interface: Responses; Events, Resume). What is not the caller's does not exist for it, on every verb. */
export const responseRoutes = new Hono<AppEnv>()
  .post('/v1/responses', create)
  .get('/v1/responses/:responseId', query(retrieveQuery), async (context) => {
    const { stream, starting_after: startingAfter, ...includes } = context.req.valid('query')
    refuseRunPosition(context.req.param('responseId'), startingAfter)
    const asked = askedResponse(context)
    if (stream) return streamAnswer(context, asked, includesOf(includes), startingAfter)
    return context.json(await retrieved(context, asked, includesOf(includes)))
  })
  .delete('/v1/responses/:responseId', async (context) => {
    const { id, owner, object } = askedResponse(context)
    // The object first: it stops generating, and writes nothing any more.
    const removed = await object.remove(owner)
    const erased = await eraseResponse(context.var.deps, owner, id)
    if (!removed && !erased) throw unknownId('Response', id)
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

/** A response as it is retrieved: with reasoning sealed where that is asked for, though its request did not. */
async function retrieved(context: AppContext, asked: AskedResponse, includes: Includes) {
  const response = await known(context, asked)
  if (!includes.encryptedContent || !response.output.some(isUnsealed)) {
    return readable(context, response, includes)
  }
  // Its object tells what its readers were told; Postgres has all of it, once it has ended.
  const stored = await storedResponse(context.var.deps, asked.owner, asked.id)
  return readable(context, stored ?? response, includes)
}

const isUnsealed = (item: OutputItem): boolean => {
  const sealed = sealedMemberOf(item)
  return sealed !== undefined && !(sealed in item)
}

/** What a response became, to be told under the policies that are in force by then. */
async function ended(context: AppContext, { object, owner }: AskedResponse): Promise<ResponseObject | null> {
  const response = await object.ended(owner)
  await refreshRights(context)
  return response
}

/** Clients that keep strictly to Open Responses ask for it (https://www.openresponses.org/specification). */
const COMPATIBILITY_HEADER = 'x-headgate-compatibility'

/** Begins a response, which then generates in its object whether or not its caller waits (design: Responses). */
async function create(context: AppContext): Promise<Response> {
  const { deps } = context.var
  const id = newResponseId(deps.configuration.KEY_PEPPERS)
  const asked = { id, owner: ownerOf(context), object: deps.responseStream(id) }
  const { events, background } = await begin(context, asked)
  if (events) return eventStream(context, tailFrames(events, 0, reopen(context, asked)))
  const response = await (background ? asked.object.snapshot(asked.owner) : ended(context, asked))
  // Removed while its caller waited.
  if (response === null) throw unknownId('Response', id)
  // Sealed reasoning is there if this request asked for it.
  return context.json(await readable(context, response, { encryptedContent: true }))
}

/** @throws ApiError for everything that keeps a response from beginning. */
async function begin(context: AppContext, { id, object }: AskedResponse) {
  // The object reads it all before it asks whether its caller may call.
  if (!isSmallBody(context)) await requireRoom(context)
  const { caller, rights } = context.var
  const request: StartRequest = {
    responseId: id,
    principal: rights.principal,
    // An id of its own: should the answer of the object be lost, what it opened is closed by it alone.
    identity: { ...caller.identity, callId: newId('call') },
    headers: [...context.req.raw.headers].filter(([name]) => !CREDENTIAL_HEADERS.has(name)),
    functionCallsComplete: context.req.header(COMPATIBILITY_HEADER)?.trim() === 'open-responses',
  }
  const body = new PassedBody(bodySource(context))
  try {
    const result = await object.start(request, body.stream)
    // The ledger has it from the object, so it is not recorded once more here.
    context.set('isRecorded', result.recorded)
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
  const isCurrent =
    state !== null && (await currentPolicy(context, state.model)).version === state.policyVersion
  const tail = isCurrent ? await followed(context, asked, after) : null
  if (tail) return eventStream(context, tail)
  const condensed = async () => {
    const response = (state?.running && (await ended(context, asked))) || (await known(context, asked))
    return storedStream(await readable(context, response, includes), after)
  }
  if (!state?.running) return eventStream(context, await condensed())
  // Its events are made under policies that are not in force any more, so only what it becomes can be told.
  const { STREAM_HEARTBEAT_MS } = context.var.deps.configuration
  return eventStream(context, awaitedFrames(condensed(), STREAM_HEARTBEAT_MS))
}

/** What a browser sends when it connects again. @throws ApiError invalid_request for what is no number of an event. */
function lastEventId(context: AppContext): number | null {
  const header = context.req.header('last-event-id')?.trim()
  if (!header) return null
  const parsed = sequenceParameter.safeParse(header)
  if (parsed.success) return parsed.data
  throw invalidRequest('Last-Event-ID: must be a whole number, 0 or higher', 'invalid_query')
}

/** The events of a response after a number. @returns null where there is nothing to follow. @throws as `openTail` */
async function followed(
  context: AppContext,
  asked: AskedResponse,
  after: number,
): Promise<ReadableStream<Uint8Array> | null> {
  const open = reopen(context, asked)
  const tail = await open(after)
  return tail && tailFrames(tail, after, open)
}

const reopen = (context: AppContext, asked: AskedResponse) => (last: number) => openTail(context, asked, last)

/** @throws ApiError rate_limited when the response has as many readers as it may have. */
async function openTail({ var: { deps } }: AppContext, { object, owner }: AskedResponse, after: number) {
  const tail = await object.follow(owner, after)
  if (tail !== 'busy') return tail
  throw new ApiError(
    'rate_limited',
    'This response has too many readers at once. Try again when one has left.',
    {
      // By then a reader who left is noticed.
      retryAfterSeconds: deps.configuration.STREAM_HEARTBEAT_MS / 1000,
    },
  )
}

const eventStream = (context: AppContext, body: ReadableStream<Uint8Array>): Response =>
  context.newResponse(body as never, 200, {
    'content-type': 'text/event-stream',
    // An event that waits in a compressor of a proxy is late.
    'cache-control': 'no-cache, no-transform',
  })

/** What a response was given: of Postgres when that has it, else of its object. @throws ApiError not_found */
async function inputItems(context: AppContext, asked: AskedResponse, { limit, order, after }: ItemListQuery) {
  const { deps } = context.var
  const { id, owner, object } = asked
  const { model } = await known(context, asked)
  const page = { limit, order, after }
  const settled = await object.settle(owner)
  const isStored = settled === 'settled' || settled === 'absent'
  const found =
    (isStored ? await listInputItems(deps.database, owner, id, page) : null) ??
    // Not stored, not yet, or never.
    (await object.inputItems(owner, page))
  if (found === null) throw unknownId('Response', id)
  return { model, items: listedItems(deps, foundPage(found)) }
}
