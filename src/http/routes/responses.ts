import { Hono } from 'hono'
import { isRunResponseId } from '../../agents/live/run-response.ts'
import { newId } from '../../lib/ids.ts'
import { apiErrorOf } from '../../responses/model/error-data.ts'
import type {
  CompactionResult,
  ErrorData,
  RequestContent,
  StartRequest,
  StartResult,
} from '../../responses/model/types.ts'
import { regionOf } from '../../responses/pool/regions.ts'
import { startResponse, storedResponseId } from '../../responses/pool/start-response.ts'
import { eraseResponse } from '../../responses/store/content-garbage.ts'
import { listInputItems } from '../../responses/store/read-responses.store.ts'
import { removeFilesOfEmpty } from '../../responses/tools/workspace/remove-workspace.ts'
import { MAXIMUM_BODY_BYTES } from '../../wire/body-limit.ts'
import {
  type Includes,
  type ItemListQuery,
  includesOf,
  itemListQuery,
  retrieveQuery,
} from '../../wire/response-queries.ts'
import { selectedCompatibility } from '../compatibility.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { isSmallBody, requireRoom } from '../governed-body.ts'
import { passedBody } from '../passed-body.ts'
import { setRateLimitHeaders } from '../rate-limit-headers.ts'
import { query, unknownId } from '../validated-request.ts'
import {
  currentPolicy,
  foundPage,
  itemListAnswer,
  jsonBytes,
  ownerOf,
  refreshRights,
  refusalAnswer,
  responseAnswer,
} from './response-answers.ts'
import { findIncluding, findResponse, handleOf, type ResponseHandle } from './response-handle.ts'
import { startedStream, streamAnswer } from './response-streams.ts'
import { cancelRunResponse, createRun, firstStep, refuseDeletion, retrieveRun } from './run-responses.ts'

/** New responses and compactions (interface: Responses). Their objects read the body and admit the call. */
export const newResponseRoutes = new Hono<AppEnv>()
  .post('/v1/responses', create)
  .post('/v1/responses/compact', compact)

/**
 * Stored responses (interface: Responses; Events, Resume). With every verb, a caller gets 404 for a response of another owner.
 */
export const responseRoutes = new Hono<AppEnv>()
  .get('/v1/responses/:responseId', query(retrieveQuery), async (context) => {
    const { stream, starting_after: startingAfter, ...rest } = context.req.valid('query')
    const includes = includesOf(rest)
    if (isRun(context)) return retrieveRun(context, { stream, startingAfter, includes })
    const handle = handleOf(context)
    if (stream) return streamAnswer(context, handle, includes, startingAfter)
    return retrieved(context, handle, includes)
  })
  .delete('/v1/responses/:responseId', async (context) => {
    if (isRun(context)) return refuseDeletion(context)
    const { id, owner, object } = handleOf(context)
    // The object first: it stops generating, and does not write afterwards.
    const removed = await object.remove(owner)
    const erased = await eraseResponse(context.var.deps, owner, id)
    if (!removed && !erased) throw unknownId('Response', id)
    if (erased?.conversationId) await removeFilesOfEmpty(context.var.deps, owner, erased.conversationId)
    return context.json({ id, object: 'response', deleted: true })
  })
  .post('/v1/responses/:responseId/cancel', async (context) => {
    if (isRun(context)) return cancelRunResponse(context)
    const handle = handleOf(context)
    const cancelled = await handle.object.cancel(handle.owner)
    const response = cancelled ?? (await findResponse(context, handle))
    return responseAnswer(context, response, NONE)
  })
  .get('/v1/responses/:responseId/input_items', query(itemListQuery), async (context) => {
    const page = context.req.valid('query')
    const handle = isRun(context) ? await firstStep(context) : handleOf(context)
    if (handle === null) return context.json(EMPTY_LIST)
    const { items, model, compatibility } = await inputItems(context, handle, page)
    const policy = currentPolicy(context, model)
    return itemListAnswer(context, items, includesOf(page), {
      policyOf: () => policy,
      compatibilityOf: () => compatibility,
    })
  })

const NONE: Includes = new Set()
const EMPTY_LIST = { object: 'list', data: [], first_id: null, last_id: null, has_more: false }

const isRun = (context: AppContext): boolean => isRunResponseId(context.req.param('responseId') ?? '')

/** Answers with a response, with the members that this request includes. @throws ApiError not_found */
async function retrieved(context: AppContext, handle: ResponseHandle, includes: Includes) {
  const response = await findIncluding(context, handle, includes)
  if (response === null) throw unknownId('Response', handle.id)
  return responseAnswer(context, response, includes)
}

/** Begins a response, which its object generates whether or not the caller waits. */
async function create(context: AppContext): Promise<Response> {
  const { deps } = context.var
  const owner = ownerOf(context)
  const region = regionOf(context.req.raw.cf)
  const started = await passBody(context, (passed) =>
    startResponse(deps, { owner, region, ...passed }, MAXIMUM_BODY_BYTES, (id, object, bodyBytes) => {
      const request = startRequest(context, id, { bodyBytes, awaitsEnd: true })
      return startOrEnd({ id, owner, object }, request, passed.body)
    }),
  )
  if ('refusal' in started) return refusalAnswer(context, started.refusal)
  if ('agent' in started) return createRun(context, started.agent)
  const { responseId: id, events, background, compatibility } = started
  const handle = { id, owner, object: deps.responseObject(owner.organizationId, id) }
  for (const [name, value] of Object.entries(started.headers)) context.header(name, value)
  if (events) return startedStream(context, handle, compatibility, events)
  const response = background ? await handle.object.snapshot(owner) : (started.response ?? null)
  if (!background) await refreshRights(context)
  // The response was deleted while the caller waited.
  if (response === null) throw unknownId('Response', id)
  // The response has what this request includes.
  return responseAnswer(context, response, null)
}

/** Starts a response. If the answer of its object is lost, for one whose object restarted, it is the end of the response. */
async function startOrEnd(
  { object, owner }: ResponseHandle,
  request: StartRequest,
  body: RequestContent,
): Promise<StartResult> {
  try {
    return await object.start(request, body)
  } catch (error) {
    const response = await object.ended(owner).catch(() => null)
    if (response === null) throw error
    const { compatibility = 'headgate' } = response
    const known = { recorded: true, error: null, headers: {}, events: null, background: false }
    return { ...known, compatibility, held: false, response }
  }
}

/** Compacts a conversation in an object of its own, which stores nothing. */
async function compact(context: AppContext): Promise<Response> {
  const { deps } = context.var
  const id = storedResponseId(deps)
  const object = deps.responseObject(ownerOf(context).organizationId, id)
  const result = await passBody(context, ({ body }) => object.compact(startRequest(context, id), body))
  if ('refusal' in result) return refusalAnswer(context, result.refusal)
  return jsonBytes(context, result.compaction)
}

/** The message to the object of a response that goes with the body. */
function startRequest(
  context: AppContext,
  responseId: string,
  more: Partial<StartRequest> = {},
): StartRequest {
  const { caller, rights } = context.var
  return {
    responseId,
    principal: rights.principal,
    // A call id of its own: if the result of the object is lost, only the object settles the call.
    identity: { ...caller.identity, callId: newId('call') },
    headers: [...context.req.raw.headers].filter(([name]) => !CREDENTIAL_HEADERS.has(name)),
    compatibility: selectedCompatibility(context),
    ...more,
  }
}

/**
 * Passes the body of a request to its object, which admits the call.
 * @throws ApiError when the request was refused.
 */
async function passBody<Result extends StartResult | CompactionResult>(
  context: AppContext,
  use: (passed: { body: RequestContent; declaredBytes: number | null }) => Promise<Result>,
): Promise<Exclude<Result, { error: ErrorData }>> {
  // The object reads the whole body before the call is admitted.
  if (!isSmallBody(context)) await requireRoom(context)
  const body = await passedBody(context)
  try {
    const result = await use({ body: body.content, declaredBytes: body.declaredBytes })
    // The object has recorded it in the ledger.
    context.set('isRecorded', result.recorded)
    context.set('rateLimit', result.rateLimit ?? null)
    setRateLimitHeaders(context)
    if (body.failure) throw body.failure
    if (result.error) throw apiErrorOf(result.error)
    return result as Exclude<Result, { error: ErrorData }>
  } catch (error) {
    throw body.failure ?? error
  } finally {
    await body.finish()
  }
}

/** The Worker has authenticated the caller: its credential is not passed on. */
const CREDENTIAL_HEADERS = new Set(['authorization', 'x-api-key', 'api-key', 'cookie', 'proxy-authorization'])

/** A page of the input, from Postgres if the response is stored there, or else from its object. @throws ApiError not_found */
async function inputItems(
  context: AppContext,
  handle: ResponseHandle,
  { limit, order, after }: ItemListQuery,
) {
  const { deps } = context.var
  const { id, owner, object } = handle
  const { model, compatibility = 'headgate' as const } = await findResponse(context, handle)
  const page = { limit, order, after }
  const settled = await object.settle(owner)
  const isStored = settled === 'settled' || settled === 'absent'
  const found =
    (isStored ? await listInputItems(deps.database, owner, id, page) : null) ??
    // The response is not stored in Postgres, or not yet.
    (await object.inputItems(owner, page))
  if (found === null) throw unknownId('Response', id)
  return { model, compatibility, items: foundPage(found) }
}
