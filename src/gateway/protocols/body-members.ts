import { invalidRequest } from '../../lib/api-error.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { scanJson } from '../../lib/json-scan.ts'
import { entryOf, isPresent, type Json, objectOf } from './json.ts'
import type { RequestOutline } from './request-outline.ts'

/** How the top-level members of a body differ at one provider from those of its protocol. */
export interface BodyMembers {
  /** The only members that are sent; absent for all. Others are left out and named to the caller. */
  taken?: ReadonlySet<string>
  /** Members that are left out and named to the caller, because they only tune the answer. */
  dropped?: ReadonlySet<string>
  /** Members that are left out and not named, because they stand elsewhere in the request, such as in its path. */
  moved?: ReadonlySet<string>
  /** Members without which the request would mean something else: it is refused. */
  refused?: ReadonlySet<string>
  /** A member of a member that is refused as well. */
  refusedInside?: Readonly<Record<string, string>>
  /** Names that the provider uses for members of the protocol. */
  renamed?: Readonly<Record<string, string>>
  /** Members that are sent in place of the request's own. */
  added?: Json
  /** Names of what is left out outside of the body, such as values of headers. */
  alsoDropped?: readonly string[]
}

/** A request without what a provider does not take, and the names of what was left out. */
export interface ChangedMembers<Body> {
  body: Body
  /** Names for the caller. */
  dropped: string[]
}

/** Treatment of a member of a request. */
function treatmentOf(rules: BodyMembers, name: string): 'kept' | 'dropped' | 'moved' | 'refused' {
  const { taken, dropped, moved, refused, added } = rules
  if (moved?.has(name) || (added && Object.hasOwn(added, name))) return 'moved'
  if (refused?.has(name)) return 'refused'
  return dropped?.has(name) || (taken && !taken.has(name)) ? 'dropped' : 'kept'
}

const refusal = (name: string) =>
  invalidRequest(
    `${name}: the provider of this model does not have it, and the answer would be another one without it.`,
  )

/**
 * The changes of a body that passes as bytes.
 * @param isRemoved whether a member is left out by other rules.
 * @returns the members to remove, and edits outside of them.
 * @throws ApiError invalid_request naming a member that must not be lost.
 */
export function memberEdits(
  { body, members }: Pick<RequestOutline, 'body' | 'members'>,
  rules: BodyMembers,
  isRemoved: (name: string) => boolean,
): ChangedMembers<{ removed: ReadonlySet<string>; edits: ByteEdit[] }> {
  const removed = new Set<string>()
  const edits: ByteEdit[] = []
  const dropped = [...(rules.alsoDropped ?? [])]
  for (const { name, kind, memberStart, start, end } of members) {
    if (isRemoved(name)) continue
    const inner = rules.refusedInside && entryOf(rules.refusedInside, name)
    if (inner !== undefined && holds(body.subarray(start, end), inner)) throw refusal(`${name}.${inner}`)
    const treatment = treatmentOf(rules, name)
    if (treatment === 'refused' && kind !== 'null') throw refusal(name)
    if (treatment === 'dropped' && kind !== 'null') dropped.push(name)
    if (treatment !== 'kept') removed.add(name)
    else if (rules.renamed && Object.hasOwn(rules.renamed, name)) {
      edits.push({
        start: memberStart,
        end: start,
        replacement: encoder.encode(`${JSON.stringify(rules.renamed[name])}:`),
      })
    }
  }
  const added = Object.entries(rules.added ?? {})
  const first = members[0]
  if (added.length > 0 && first) {
    const text = added.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)},`).join('')
    edits.push({ start: first.memberStart, end: first.memberStart, replacement: encoder.encode(text) })
  }
  return { body: { removed, edits }, dropped }
}

const encoder = new TextEncoder()

/** Whether the object of a text has a member with a value. */
function holds(json: Uint8Array, name: string): boolean {
  let isHeld = false
  scanJson(json, {
    value(path, kind) {
      if (path.length === 1 && path[0] === name && kind !== 'null') isHeld = true
    },
  })
  return isHeld
}

/** `memberEdits` for the parsed body of a translation. @throws ApiError as `memberEdits`. */
export function changeMembers(body: Json, rules: BodyMembers): ChangedMembers<Json> {
  const changed: Json = { ...rules.added }
  const dropped = [...(rules.alsoDropped ?? [])]
  for (const [name, value] of Object.entries(body)) {
    const inner = rules.refusedInside && entryOf(rules.refusedInside, name)
    if (inner !== undefined && isPresent(objectOf(value)[inner])) throw refusal(`${name}.${inner}`)
    const treatment = treatmentOf(rules, name)
    if (treatment === 'refused' && isPresent(value)) throw refusal(name)
    if (treatment === 'dropped' && isPresent(value)) dropped.push(name)
    if (treatment === 'kept') changed[rules.renamed?.[name] ?? name] = value
  }
  return { body: changed, dropped }
}
