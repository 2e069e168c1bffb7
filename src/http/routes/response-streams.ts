import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import { storedStream } from '../../responses/emitter/stored-stream.ts'
import { framesFor } from '../../responses/model/rendered-frames.ts'
import type { ResponseStateReport } from '../../responses/model/types.ts'
import { openResponsesFrames } from '../../responses/open-responses/rendered-events.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import { type Includes, sequenceParameter } from '../../wire/response-queries.ts'
import type { AppContext } from '../context.ts'
import { awaitedFrames, type OpenTail, tailFrames } from '../event-stream.ts'
import { currentPolicy, redactForOwner, refreshRights } from './response-answers.ts'
import {
  endedResponse,
  findEnded,
  findIfEnded,
  findResponse,
  type ResponseHandle,
} from './response-handle.ts'

/** Streams the events of a response that has begun, from the first one. @param events from its object. */
export const startedStream = (
  context: AppContext,
  handle: ResponseHandle,
  compatibility: Compatibility | undefined,
  events: ReadableStream<Uint8Array>,
): Response =>
  eventStream(context, inForm(context, compatibility, tailFrames(events, 0, tailOpener(context, handle))))

/** Streams the events after a number, stored and live (interface: Events, Resume). */
export async function streamAnswer(
  context: AppContext,
  handle: ResponseHandle,
  includes: Includes,
  startingAfter: number | undefined,
): Promise<Response> {
  const after = startingAfter ?? lastEventId(context) ?? 0
  const state = await handle.object.state(handle.owner)
  if (context.req.raw.method === 'HEAD') {
    // Nothing reads the body of this answer: a tail would stay open, as one of the response's readers.
    if (!state) await findResponse(context, handle)
    return eventStream(context, null)
  }
  const tail = await currentFrames(context, handle, state, after)
  if (state && tail) return eventStream(context, inForm(context, state.compatibility, tail))
  const condensed = async () => {
    if (state?.running) await endedResponse(context, handle)
    const { response, numbers } = await findEnded(context, handle)
    const frames = storedStream(await redactForOwner(context, response, includes), numbers, after)
    return inForm(context, response.compatibility, frames)
  }
  return eventStream(context, await awaitedIfRunning(context, state, condensed))
}

/**
 * All events of a response in the form in which they are stored, live or from the store: for a reader that has answered
 * already, and continues with another response.
 * @returns null without such a response. @throws ApiError rate_limited as `streamAnswer`, and what the database throws.
 */
export async function wholeStream(
  context: AppContext,
  handle: ResponseHandle,
): Promise<ReadableStream<Uint8Array> | null> {
  const state = await handle.object.state(handle.owner)
  let tail = await currentFrames(context, handle, state, 0)
  if (state && !tail) {
    // The reader's rights may be older than the response.
    await refreshRights(context)
    tail = await currentFrames(context, handle, state, 0)
  }
  if (tail) return tail
  const condensed = async () => {
    if (state?.running) await endedResponse(context, handle)
    const ended = await findIfEnded(context, handle)
    if (ended === null) return null
    return storedStream(await redactForOwner(context, ended.response, NO_INCLUDES), ended.numbers, 0)
  }
  if (!state?.running) return condensed()
  const existing = async () => (await condensed()) ?? new Blob([]).stream()
  return awaitedIfRunning(context, state, existing)
}

const NO_INCLUDES: Includes = new Set()

/** The frames of a response whose events are under the policies in force; null for any other. */
async function currentFrames(
  context: AppContext,
  handle: ResponseHandle,
  state: ResponseStateReport | null,
  after: number,
): Promise<ReadableStream<Uint8Array> | null> {
  if (state === null || (await currentPolicy(context, state.model)).version !== state.policyVersion)
    return null
  const open = tailOpener(context, handle)
  const tail = await open(after)
  return tail && tailFrames(tail, after, open)
}

/**
 * The condensed events of a response. The stored events of a running response were redacted under policies that have changed, so
 * that only the final response can be returned.
 */
async function awaitedIfRunning(
  { var: { deps } }: AppContext,
  state: ResponseStateReport | null,
  condensed: () => Promise<ReadableStream<Uint8Array>>,
): Promise<ReadableStream<Uint8Array>> {
  if (!state?.running) return condensed()
  return awaitedFrames(condensed(), deps.configuration.STREAM_HEARTBEAT_MS)
}

/** Browsers send it when they reconnect. @throws ApiError invalid_request for an invalid number. */
export function lastEventId(context: AppContext): number | null {
  const header = context.req.header('last-event-id')?.trim()
  if (!header) return null
  const parsed = sequenceParameter.safeParse(header)
  if (parsed.success) return parsed.data
  throw invalidRequest('Last-Event-ID: must be a whole number, 0 or higher', 'invalid_query')
}

/**
 * Opens the stream of events after a number, which is null without a response in the object.
 * @throws ApiError rate_limited when the response has its maximum of readers.
 */
const tailOpener =
  ({ var: { deps } }: AppContext, { object, owner }: ResponseHandle): OpenTail =>
  async (after) => {
    const tail = await object.follow(owner, after)
    if (tail !== 'busy') return tail
    throw new ApiError(
      'rate_limited',
      'This response has too many readers at once. Try again when one has left.',
      // Readers that have left are detected by the next heartbeat.
      { retryAfterSeconds: deps.configuration.STREAM_HEARTBEAT_MS / 1000 },
    )
  }

/** The frames of a response in its form, for the client of a request. */
export function inForm(
  context: AppContext,
  form: Compatibility | undefined,
  frames: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> {
  const rendered = form === 'open_responses' ? openResponsesFrames(frames) : frames
  return framesFor(context.req.header('user-agent'), rendered)
}

/** Answers with events. @param body null for a request of their headers only. */
export const eventStream = (context: AppContext, body: ReadableStream<Uint8Array> | null): Response =>
  context.newResponse(body as never, 200, {
    'content-type': 'text/event-stream',
    // A proxy that compresses would delay events.
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
