import { invalidRequest } from '../../lib/api-error.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { scanJson } from '../../lib/json-scan.ts'
import { changeMessages, type MessageRules } from './chat-message-rules.ts'
import { jsonAt } from './frame-json.ts'
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
  /** Names that the provider uses for members of the protocol. One whose new name is in the request as well is left out. */
  renamed?: Readonly<Record<string, string>>
  /** What is sent in place of a member, by its text; without members that the request has itself. */
  replaced?: Readonly<Record<string, Readonly<Record<string, Json>>>>
  /** Changes within the messages of a translated request. */
  messages?: MessageRules
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

/** Whether a member is sent as it is. @param rules null for those of the protocol. */
export const takesMember = (rules: BodyMembers | null | undefined, name: string): boolean =>
  !rules || treatmentOf(rules, name) === 'kept'

/** The members that are sent in place of one; undefined for the member itself. */
function replacementOf(
  { replaced, renamed }: BodyMembers,
  { name, text }: { name: string; text: () => unknown },
  has: (name: string) => boolean,
): Json | undefined {
  const texts = replaced && entryOf(replaced, name)
  const value = texts && text()
  const members = typeof value === 'string' ? texts && entryOf(texts, value) : undefined
  if (members) {
    return Object.fromEntries(Object.entries(members).filter(([other]) => other === name || !has(other)))
  }
  const isTwice = renamed && entryOf(renamed, name) !== undefined && has(renamed[name] ?? '')
  return isTwice ? {} : undefined
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
  const has = (name: string) => members.some((member) => member.name === name)
  for (const { name, kind, memberStart, start, end } of members) {
    if (isRemoved(name)) continue
    const inner = rules.refusedInside && entryOf(rules.refusedInside, name)
    if (inner !== undefined && holds(body.subarray(start, end), inner)) throw refusal(`${name}.${inner}`)
    const treatment = treatmentOf(rules, name)
    if (treatment === 'refused' && kind !== 'null') throw refusal(name)
    if (treatment === 'dropped' && kind !== 'null') dropped.push(name)
    const text = () => (kind === 'string' ? jsonAt(body, { start, end }) : null)
    const members = treatment === 'kept' ? replacementOf(rules, { name, text }, has) : {}
    if (members && Object.keys(members).length === 0) removed.add(name)
    else if (members)
      edits.push({ start: memberStart, end, replacement: encoder.encode(membersText(members)) })
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
    const replacement = encoder.encode(`${membersText(rules.added ?? {})},`)
    edits.push({ start: first.memberStart, end: first.memberStart, replacement })
  }
  return { body: { removed, edits }, dropped }
}

const encoder = new TextEncoder()

/** The members of an object as JSON, without its braces. */
const membersText = (members: Json): string => JSON.stringify(members).slice(1, -1)

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

/** `memberEdits` for the parsed body of a translation, and the rules for its messages. @throws ApiError as `memberEdits`. */
export function changeMembers(body: Json, rules: BodyMembers): ChangedMembers<Json> {
  const changed: Json = { ...rules.added }
  const dropped = [...(rules.alsoDropped ?? [])]
  const has = (name: string) => Object.hasOwn(body, name)
  for (const [name, value] of Object.entries(body)) {
    const inner = rules.refusedInside && entryOf(rules.refusedInside, name)
    if (inner !== undefined && isPresent(objectOf(value)[inner])) throw refusal(`${name}.${inner}`)
    const treatment = treatmentOf(rules, name)
    if (treatment === 'refused' && isPresent(value)) throw refusal(name)
    if (treatment === 'dropped' && isPresent(value)) dropped.push(name)
    if (treatment !== 'kept') continue
    const members = replacementOf(rules, { name, text: () => value }, has)
    if (members) Object.assign(changed, members)
    else changed[rules.renamed?.[name] ?? name] = value
  }
  if (rules.messages) dropped.push(...changeMessages(changed, rules.messages))
  return { body: changed, dropped }
}
