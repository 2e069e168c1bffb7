import { invalidRequest } from '../../../lib/api-error.ts'
import { entryOf, isPresent, type Json } from '../../protocols/json.ts'

/**
 * Treatment of a member in a translation. `kept` unchanged; `translated` to an equivalent; `dropped` because it only
 * tunes the answer or is specific to its vendor; `refused` because its loss would change the meaning of the answer.
 */
type Treatment = 'kept' | 'translated' | 'dropped' | 'refused'

interface MemberRule {
  treatment: Treatment
  /** An explanation of the rule; for a refused member the message of the error. */
  note: string
  /** Only for a refused member: whether a value is refused; other values only state the default. */
  refuses?: (value: unknown) => boolean
  /** Value of the member in the converted body, empty where it was dropped, for members with another name there. */
  becomes?: (body: Json) => unknown
  /** Only for a dropped member: it is dropped on every call, or has no effect on the answer. */
  silent?: true
}

export type MemberRules = Readonly<Record<string, MemberRule>>

export const kept = (note = '', becomes?: MemberRule['becomes']): MemberRule => ({
  treatment: 'kept',
  note,
  ...(becomes && { becomes }),
})
export const translated = (note: string, becomes?: MemberRule['becomes']): MemberRule => ({
  treatment: 'translated',
  note,
  ...(becomes && { becomes }),
})
export const dropped = (note: string): MemberRule => ({ treatment: 'dropped', note })
/** Dropped as the interface defines it, or without effect: not reported to the caller. */
export const removed = (note: string): MemberRule => ({ treatment: 'dropped', note, silent: true })
export const refused = (note: string, refuses: (value: unknown) => boolean = isPresent): MemberRule => ({
  treatment: 'refused',
  note,
  refuses,
})

export const isDropped = (rules: MemberRules, name: string): boolean =>
  entryOf(rules, name)?.treatment === 'dropped'

/** Removed on every call (interface: Chat completions, Messages). */
const INTERNAL = new Set(['litellm_metadata', 'proxy_server_request'])

/**
 * @param request in the caller's protocol. @param rules of its members. @param body the converted request.
 * @returns names of the members with a value that have no effect on the converted request. Members without a rule are
 * among them unless the body has them.
 */
export function droppedMembers(request: Json, rules: MemberRules, body: Json): string[] {
  return Object.keys(request).filter((name) => {
    if (!isPresent(request[name]) || INTERNAL.has(name)) return false
    const rule = entryOf(rules, name)
    if (rule?.treatment === 'dropped') return rule.silent !== true
    if (rule?.treatment === 'refused') return false
    if (rule?.becomes) return !isPresent(rule.becomes(body))
    return rule?.treatment !== 'translated' && request[name] !== false && !isPresent(body[name])
  })
}

/** Names of the members with a value that every translation drops and reports. */
export const alwaysDropped = (request: Json, rules: MemberRules): string[] =>
  Object.keys(request).filter((name) => {
    const rule = entryOf(rules, name)
    return isPresent(request[name]) && rule?.treatment === 'dropped' && rule.silent !== true
  })

/** Whether a list has elements, for members that may be sent empty. */
export const holdsItems = (value: unknown): boolean => Array.isArray(value) && value.length > 0

/**
 * @param place where `members` stand in the request, with a dot at its end; empty at the top.
 * @throws ApiError invalid_request naming the first member whose loss would change the answer.
 */
export function refuseLostMembers(members: Json, rules: MemberRules, place = ''): void {
  for (const [name, value] of Object.entries(members)) {
    const rule = entryOf(rules, name)
    if (rule?.refuses?.(value)) throw invalidRequest(`${place}${name}: ${rule.note}`)
  }
}

/** @throws ApiError invalid_request for a kind of part, block or tool that the other protocol does not have. */
export function refuseKind(kind: string, place: string, what: string): never {
  const named = kind === '' ? 'without a type' : `of type ${kind.slice(0, 60)}`
  throw invalidRequest(`${place}: ${what} ${named} are not supported by this model.`)
}
