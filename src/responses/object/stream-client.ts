import { ApiError } from '../../lib/api-error.ts'
import { PartReader } from '../../lib/bytes/read-bytes.ts'
import { withFreshStub } from '../../lib/fresh-stub.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { ResponseStreamObject } from '../types.ts'

/** Longest wait for what does not wait for a generation, the repetition included. */
const ANSWER_LIMIT_MS = 10_000

/**
 * The Durable Object of a response. A call that fails on its way is made once more on a fresh stub; `start` only if
 * nothing of the body was read, since the first call may have begun the response otherwise. `follow`, `ended` and `start`
 * wait for a model and take as long as it takes; all others have ten seconds. A repeated `remove` can return false
 * although the response was removed, by the first call whose answer was lost.
 *
 * @param responseId names the object; its MAC has been checked.
 * @returns the object's methods; each throws ApiError `internal` when the object does not answer
 */
export function responseStreamClient(
  namespace: DurableObjectNamespace,
  responseId: string,
): ResponseStreamObject {
  const ask = <Result>(
    use: (object: ResponseStreamObject) => Promise<Result>,
    mayRepeat: () => boolean = () => true,
  ) => withFreshStub(namespace, responseId, use, mayRepeat)
  const patiently = <Result>(use: (object: ResponseStreamObject) => Promise<Result>) => orApiError(ask(use))
  const soon = <Result>(use: (object: ResponseStreamObject) => Promise<Result>) => {
    let waiting = true
    const answer = withinTime(
      ask(use, () => waiting),
      ANSWER_LIMIT_MS,
      'the object of a response',
    )
    return orApiError(
      answer.finally(() => {
        waiting = false
      }),
    )
  }
  return {
    start: (request, body) => {
      const handed = handOver(body)
      const started = ask((object) => object.start(request, handed.stream()), handed.takeBack)
      return orApiError(started.catch(handed.giveUp))
    },
    follow: (owner, after) => patiently((object) => object.follow(owner, after)),
    ended: (owner) => patiently((object) => object.ended(owner)),
    snapshot: (owner) => soon((object) => object.snapshot(owner)),
    cancel: (owner) => soon((object) => object.cancel(owner)),
    remove: (owner) => soon((object) => object.remove(owner)),
    inputItems: (owner, page) => soon((object) => object.inputItems(owner, page)),
    state: (owner) => soon((object) => object.state(owner)),
    settle: (owner) => soon((object) => object.settle(owner)),
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
 * A body that can be handed over a second time as long as nothing of it was read. What was handed over before is dead
 * from then on: an attempt that still lives somewhere can never begin a response with it.
 */
function handOver(body: ReadableStream<Uint8Array>) {
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
        if (part) return pass(part, controller)
        controller.close()
        controller.byobRequest?.respond(0)
      },
      async cancel(reason) {
        if (mine === holder) reader.cancel(reason)
      },
    }
    // Nothing is read ahead: what is read cannot be handed over again.
    return new ReadableStream(source, { highWaterMark: 0 })
  }
  /** @returns whether the body may be handed over again */
  const takeBack = (): boolean => {
    if (read) return false
    holder++
    return true
  }
  /** Whoever sends the body hears that nobody wants it. @throws the error it is given */
  const giveUp = async (error: unknown): Promise<never> => {
    holder++
    reader.cancel(error)
    throw error
  }
  return { stream, takeBack, giveUp }
}

/** Hands on what was read. @param part is used again afterwards. */
function pass(part: Uint8Array, controller: ReadableByteStreamController): void {
  const request = controller.byobRequest
  const view = request?.view
  if (!request || !view) {
    controller.enqueue(part.slice())
    return
  }
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(part)
  request.respond(part.length)
}
