import type { ResponseMethods } from '../model/types.ts'

/** Time limit of the methods that do not wait for a model, with their repetition. */
const ANSWER_LIMIT_MS = 10_000

interface MethodRules<Result> {
  /** Milliseconds; null for a method that may wait for a model. */
  limit: number | null
  /**
   * Of a method with a body: whether a call that failed on its way is repeated although the object may have read the body.
   * `with_bytes`: with a body of bytes only. A stream can only be sent again as long as nothing of it was read.
   */
  repeats?: 'with_bytes' | 'unread'
  /** The result where there is no response; null for a method that creates its response. */
  absent: { result: Result } | null
}

type Method = keyof ResponseMethods
type ResultOf<Name extends Method> = Awaited<ReturnType<ResponseMethods[Name]>>

const none = <Result>(result: Result) => ({ result })

/**
 * The methods of a response over RPC, from which the clients and the classes of the objects are derived. A repeated `remove`
 * can return false although the response was removed, by a first call whose result was lost. `compact` is not repeated, since
 * its first call may have called a model; an object that has a response begins no other (`DurableResponse.start`).
 */
export const RESPONSE_METHODS: { readonly [Name in Method]: MethodRules<ResultOf<Name>> } = {
  reserve: { limit: ANSWER_LIMIT_MS, absent: null },
  start: { limit: null, repeats: 'with_bytes', absent: null },
  compact: { limit: null, repeats: 'unread', absent: null },
  follow: { limit: null, absent: none(null) },
  ended: { limit: null, absent: none(null) },
  snapshot: { limit: ANSWER_LIMIT_MS, absent: none(null) },
  cancel: { limit: ANSWER_LIMIT_MS, absent: none(null) },
  remove: { limit: ANSWER_LIMIT_MS, absent: none(false) },
  inputItems: { limit: ANSWER_LIMIT_MS, absent: none(null) },
  state: { limit: ANSWER_LIMIT_MS, absent: none(null) },
  context: { limit: ANSWER_LIMIT_MS, absent: none(null) },
  passFiles: { limit: ANSWER_LIMIT_MS, absent: none(false) },
  release: { limit: ANSWER_LIMIT_MS, absent: none(undefined) },
  settle: { limit: ANSWER_LIMIT_MS, absent: none('absent') },
}

export const METHOD_NAMES = Object.keys(RESPONSE_METHODS) as Method[]

/** A method of a response without its types, which `RESPONSE_METHODS` is checked against. */
export type AnyMethod = (...parameters: unknown[]) => Promise<unknown>

/**
 * Gives the class of a Durable Object the methods of a response.
 * @param call calls one of them; its parameters are those that the client has sent.
 */
export function defineMethods<Shell>(
  objectClass: { prototype: Shell },
  call: (object: Shell, method: Method, parameters: unknown[]) => Promise<unknown>,
): void {
  for (const name of METHOD_NAMES) {
    const value = function (this: Shell, ...parameters: unknown[]) {
      return call(this, name, parameters)
    }
    Object.defineProperty(objectClass.prototype, name, { value, configurable: true, writable: true })
  }
}
