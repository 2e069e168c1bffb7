import { ApiError } from '../../lib/api-error.ts'
import { PartReader } from '../../lib/bytes/read-bytes.ts'
import { withFreshStub } from '../../lib/fresh-stub.ts'
import { newId } from '../../lib/ids.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { RequestContent, ResponseMethods, StartRequest } from '../model/types.ts'
import { type AnyMethod, METHOD_NAMES, RESPONSE_METHODS } from './methods.ts'

/** A response's Durable Object. */
interface ObjectAddress {
  namespace: DurableObjectNamespace
  name: string
  /** Parameters that precede those of each method. */
  before: readonly unknown[]
  locationHint?: DurableObjectLocationHint | undefined
}

/**
 * The client of a response in its Durable Object. A call that fails in transit is repeated once on a fresh stub, by the rules
 * of `RESPONSE_METHODS`.
 * @param address names the object; the MAC of the response's id has been checked.
 * @returns the object's methods; each throws ApiError `internal` when the object does not answer.
 */
export function responseClient({ namespace, name, before, locationHint }: ObjectAddress): ResponseMethods {
  const options = locationHint && { locationHint }
  const methods = METHOD_NAMES.map((method) => {
    const { limit, repeats } = RESPONSE_METHODS[method]
    const call: Call = (parameters, mayRepeat) => {
      const use = (object: Record<string, AnyMethod>) =>
        (object[method] as AnyMethod)(...before, ...parameters())
      return withFreshStub(namespace, name, use, mayRepeat, options)
    }
    if (repeats) {
      const withBodyOf = (request: StartRequest, body: RequestContent) =>
        orApiError(withBody(call, repeats, request, body))
      return [method, withBodyOf]
    }
    return [method, (...parameters: unknown[]) => orApiError(limited(call, limit, parameters))]
  })
  return Object.fromEntries(methods) as ResponseMethods
}

/** The client of an object that one response has for itself. */
export const responseStreamClient = (
  namespace: DurableObjectNamespace,
  responseId: string,
): ResponseMethods => responseClient({ namespace, name: responseId, before: [] })

/** @param parameters of each attempt. */
type Call = (parameters: () => unknown[], mayRepeat: () => boolean) => Promise<unknown>

/** @param limit milliseconds; null for none. */
function limited(call: Call, limit: number | null, parameters: unknown[]): Promise<unknown> {
  let waiting = true
  const answer = call(
    () => parameters,
    () => waiting,
  )
  if (limit === null) return answer
  return withinTime(answer, limit, 'the object of a response').finally(() => {
    waiting = false
  })
}

/** A call with a body. With a stream it is repeated only if nothing of that was read. */
function withBody(
  call: Call,
  repeats: 'with_bytes' | 'unread',
  request: StartRequest,
  body: RequestContent,
): Promise<unknown> {
  const next = requestOfEachAttempt(request)
  if (body instanceof Uint8Array)
    return call(
      () => [next(), body],
      () => repeats === 'with_bytes',
    )
  const passed = passTwice(body)
  return call(() => [next(), passed.stream()], passed.reclaim).catch(passed.abort)
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
