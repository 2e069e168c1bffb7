import { invalidRequest } from '../../../lib/api-error.ts'
import { entryOf, isPresent, type Json } from '../json.ts'

/**
 * Treatment of a member in a translation. `kept` unchanged; `translated` to an equivalent; `dropped` because it only
 * tunes the answer or is specific to its vendor; `refused` because its loss would change the meaning of the answer.
 */
export type Treatment = 'kept' | 'translated' | 'dropped' | 'refused'

export interface MemberRule {
  treatment: Treatment
  /** How or why; for a refused member the message of the error. */
  note: string
  /** Of a refused member: whether a value is refused; other values only state the default. */
  refuses?: (value: unknown) => boolean
}

export type MemberRules = Readonly<Record<string, MemberRule>>

export const kept = (note = ''): MemberRule => ({ treatment: 'kept', note })
export const translated = (note: string): MemberRule => ({ treatment: 'translated', note })
export const dropped = (note: string): MemberRule => ({ treatment: 'dropped', note })
export const refused = (note: string, refuses: (value: unknown) => boolean = isPresent): MemberRule => ({
  treatment: 'refused',
  note,
  refuses,
})

export const isDropped = (rules: MemberRules, name: string): boolean =>
  entryOf(rules, name)?.treatment === 'dropped'

/** Whether a list has elements, for members that may be sent empty. */
export const holdsItems = (value: unknown): boolean => Array.isArray(value) && value.length > 0

/**
 * @param place where `members` stand in the request, with a dot at its end; empty at the top.
 * @throws ApiError invalid_request naming the first member whose loss would change the answer.
 */
export function refuseMembers(members: Json, rules: MemberRules, place = ''): void {
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
