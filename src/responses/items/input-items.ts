import { applyEdits } from '../../lib/byte-edits.ts'
import { ownedCopy } from '../../lib/bytes/owned-bytes.ts'
import type { Slices } from '../../lib/slices.ts'
import { turnOf } from '../model/response-ids.ts'
import type { ContextItem } from '../model/types.ts'
import { ownItemType } from '../open-responses/type-names.ts'
import { type InputItemForm, idOf } from './types/input-item.ts'
import { ItemScan } from './types/item-scan.ts'
import { ITEM_TYPES, newItemId } from './types/item-types.ts'

/** An item of a request: a whole item, or a reference to a stored one. */
export type InputItem = WholeItem | { reference: string }

interface WholeItem extends ContextItem {
  /** Id of a stored item that it repeats with less content. The stored one replaces it if the owner has it. */
  repeats?: string
}

/**
 * Reads an element of `input`: checks it by its type, and replaces its id by a new one. Messages and references may leave
 * out `type`. Texts are not decoded. Long items are read in slices.
 * @param source one JSON value. @param where its name in error messages.
 * @returns with a copy of the bytes.
 * @throws ApiError invalid_request `invalid_body` that names the member.
 */
export function* readItem(source: Uint8Array, where: string): Slices<InputItem> {
  const item = yield* ItemScan.read(source, where)
  const type = ownItemType(typeOf(item))
  if (type === 'item_reference') return { reference: idOf(item, 'id') }
  const known = ITEM_TYPES.get(type)
  if (!known) return item.fail('type', `${JSON.stringify(type.slice(0, 100))} is no type of item`)
  return compose(item, type, known.read(item))
}

/** A message of the user. @param contents of a JSON string, with its escapes. */
export function userMessage(contents: Uint8Array): ContextItem {
  const id = newItemId('message')
  const start = `{"id":"${id}","type":"message","role":"user","content":[{"type":"input_text","text":"`
  const pieces = [encoder.encode(start), contents, encoder.encode('"}],"status":"completed"}')]
  return { id, type: 'message', role: 'user', callId: null, bytes: ownedCopy(pieces).bytes }
}

function typeOf(item: ItemScan): string {
  const type = item.members.get('type')
  if (type && type.kind !== 'null') return item.textOf(type) ?? item.fail('type', 'must be a short string')
  const isBare = [...item.members.keys()].every((name) => name === 'id' || name === 'type')
  return isBare && item.members.has('id') ? 'item_reference' : 'message'
}

/** Composes an item of a new id in the turn of its own, its type, and its members as the bytes that were sent. */
function compose(
  item: ItemScan,
  type: string,
  { role, callId, edits = [], dropped, added = [], repeats }: InputItemForm,
): WholeItem {
  const given = item.textOf(item.members.get('id'))
  const id = newItemId(type, (given && turnOf(given)) ?? undefined)
  const pieces: Uint8Array[] = [encoder.encode(`{"id":"${id}","type":"${type}"`)]
  for (const [name, { memberStart, start, end }] of item.members) {
    if (name === 'id' || name === 'type' || dropped?.has(name)) continue
    pieces.push(COMMA, item.source.subarray(memberStart, start))
    const inside = edits.filter((edit) => edit.start >= start && edit.end <= end)
    const shifted = inside.map((edit) => ({ ...edit, start: edit.start - start, end: edit.end - start }))
    pieces.push(...applyEdits(item.source.subarray(start, end), shifted).pieces)
  }
  pieces.push(encoder.encode(`${added.map((member) => `,${member}`).join('')}}`))
  const { bytes } = ownedCopy(pieces)
  return {
    id,
    type,
    role: role ?? null,
    callId: callId ?? null,
    bytes,
    ...(repeats !== undefined && { repeats }),
  }
}

const encoder = new TextEncoder()
const COMMA = encoder.encode(',')
