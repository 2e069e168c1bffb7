import { ApiError } from './api-error.ts'
import { logFailure } from './log.ts'

/**
 * Makes every method of a Durable Object's class log what it throws before that leaves the object: a call of another object
 * gets the text of an error without its cause and stack. Refusals for the caller are not failures.
 *
 * @param surface the class, as the line names it.
 */
export function logFailuresOf(objectClass: { prototype: object }, surface: string): void {
  const { prototype } = objectClass
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (name === 'constructor' || typeof value !== 'function') continue
    const logged = async function (this: object, ...parameters: unknown[]): Promise<unknown> {
      try {
        return await value.apply(this, parameters)
      } catch (error) {
        if (!(error instanceof ApiError) || error.kind === 'internal') {
          const place = { request_id: requestIdIn(parameters), surface, route: `${surface}.${name}` }
          logFailure('object_failed', place, error)
        }
        throw error
      }
    }
    Object.defineProperty(prototype, name, { value: logged, configurable: true, writable: true })
  }
}

/** The id in a parameter of a method, where it belongs to one request. */
const requestIdIn = (parameters: unknown[]): string | null =>
  parameters.map(requestIdOf).find((id) => id !== null) ?? null

function requestIdOf(parameter: unknown): string | null {
  const { requestId, identity } = (parameter ?? {}) as { requestId?: unknown; identity?: unknown }
  if (typeof requestId === 'string') return requestId
  return identity === undefined ? null : requestIdOf(identity)
}
