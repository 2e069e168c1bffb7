import { ApiError } from '../../lib/api-error.ts'
import { PartReader } from '../../lib/bytes/read-bytes.ts'
import { withFreshStub } from '../../lib/fresh-stub.ts'
import { newId } from '../../lib/ids.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { RequestContent, ResponseStreamObject, StartRequest } from '../model/types.ts'

/** Time limit of the methods that do not wait for a model, with their repetition. */
const ANSWER_LIMIT_MS = 10_000

/**
 * The client of a response's Durable Object. A call that fails in transit is repeated once on a fresh stub; `start` with a
 * stream only if nothing of that was read, since the rest would be another request; `compact` in that case only. An object
 * that has a response begins no other (`DurableResponse.start`). `follow`, `ended`, `start` and `compact` have no time limit,
 * since they may wait for a model; the others have ten seconds. A repeated `remove` can return false although the response
 * was removed, by a first call whose result was lost.
 * @param responseId names the object; its MAC has been checked.
 * @returns the object's methods; each throws ApiError `internal` when the object does not answer.
 */
export function responseStreamClient(
  namespace: DurableObjectNamespace,
  responseId: string,
): ResponseStreamObject {
  const call = <Result>(
    use: (object: ResponseStreamObject) => Promise<Result>,
    mayRepeat: () => boolean = () => true,
  ) => withFreshStub(namespace, responseId, use, mayRepeat)
  const unlimited = <Result>(use: (object: ResponseStreamObject) => Promise<Result>) => orApiError(call(use))
  const limited = <Result>(use: (object: ResponseStreamObject) => Promise<Result>) => {
    let waiting = true
    const answer = withinTime(
      call(use, () => waiting),
      ANSWER_LIMIT_MS,
      'the object of a response',
    )
    return orApiError(
      answer.finally(() => {
        waiting = false
      }),
    )
  }
  /** A call with a body. With a stream it is repeated only if nothing of that was read. */
  const withBody = <Result>(
    body: RequestContent,
    use: (object: ResponseStreamObject, body: RequestContent) => Promise<Result>,
    bytesMayRepeat: boolean,
  ) => {
    if (body instanceof Uint8Array)
      return orApiError(
        call(
          (object) => use(object, body),
          () => bytesMayRepeat,
        ),
      )
    const passed = passTwice(body)
    const result = call((object) => use(object, passed.stream()), passed.reclaim)
    return orApiError(result.catch(passed.abort))
  }
  return {
    start: (request, body) => {
      const next = requestOfEachAttempt(request)
      return withBody(body, (object, content) => object.start(next(), content), true)
    },
    // No repetition: the first attempt may have called a model.
    compact: (request, body) => withBody(body, (object, content) => object.compact(request, content), false),
    follow: (owner, after) => unlimited((object) => object.follow(owner, after)),
    ended: (owner) => unlimited((object) => object.ended(owner)),
    snapshot: (owner) => limited((object) => object.snapshot(owner)),
    cancel: (owner) => limited((object) => object.cancel(owner)),
    remove: (owner) => limited((object) => object.remove(owner)),
    inputItems: (owner, page) => limited((object) => object.inputItems(owner, page)),
    state: (owner) => limited((object) => object.state(owner)),
    context: (owner) => limited((object) => object.context(owner)),
    passFiles: (owner) => limited((object) => object.passFiles(owner)),
    release: (owner) => limited((object) => object.release(owner)),
    settle: (owner) => limited((object) => object.settle(owner)),
  }
}

/**
 * The request of one attempt after the other. Each has a call of its own: that of an attempt which was rolled back is settled,
 * and the ledger would admit it again without a charge.
 */
function requestOfEachAttempt(request: StartRequest): () => StartRequest {
  let attempts = 0
  return () => {
    if (attempts++ === 0) return request
    return { ...request, identity: { ...request.identity, callId: newId('call') } }
  }
}

async function orApiError<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (cause) {
    throw new ApiError('internal', 'The response could not be reached.', { cause })
  }
}

/**
 * A body that can be passed a second time as long as nothing of it was read. The first stream fails from then on, so that
 * an attempt that is still running cannot begin a response with it.
 */
function passTwice(body: ReadableStream<Uint8Array>) {
  const reader = new PartReader(body)
  let holder = 0
  let read = false
  const stream = (): ReadableStream<Uint8Array> => {
    const mine = ++holder
    const source: UnderlyingByteSource = {
      type: 'bytes',
      async pull(controller) {
        if (mine !== holder) throw new Error('this body was taken back')
        read = true
        const part = await reader.next(controller.byobRequest?.view?.byteLength)
        if (part) return enqueue(part, controller)
        controller.close()
        controller.byobRequest?.respond(0)
      },
      async cancel(reason) {
        if (mine === holder) reader.cancel(reason)
      },
    }
    // Nothing is read ahead, since a body that was read cannot be passed again.
    return new ReadableStream(source, { highWaterMark: 0 })
  }
  /** Invalidates the first stream. @returns whether the body may be passed again. */
  const reclaim = (): boolean => {
    if (read) return false
    holder++
    return true
  }
  /** Stops reading from the sender of the body. @throws the given error. */
  const abort = async (error: unknown): Promise<never> => {
    holder++
    reader.cancel(error)
    throw error
  }
  return { stream, reclaim, abort }
}

/** Enqueues a part. @param part its memory is reused afterwards. */
function enqueue(part: Uint8Array, controller: ReadableByteStreamController): void {
  const request = controller.byobRequest
  const view = request?.view
  if (!request || !view) {
    controller.enqueue(part.slice())
    return
  }
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(part)
  request.respond(part.length)
}
