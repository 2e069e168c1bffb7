import { applyEdits } from '../../lib/byte-edits.ts'
import { ownedCopy } from '../../lib/bytes/owned-bytes.ts'
import { type GivenForm, idOf } from '../item-types/given-item.ts'
import { ItemScan } from '../item-types/item-scan.ts'
import { ITEM_TYPES, newItemId } from '../item-types/item-types.ts'
import type { ContextItem } from '../types.ts'

/** An item of a request: a new one, or the id of one that is stored. */
export type NewItem = GivenItem | { reference: string }

/** An item that is given whole. */
export interface GivenItem extends ContextItem {
  /** Id of the stored item that it says again with less than that has: where its owner has that one, it counts. */
  repeats?: string
}

/**
 * Reads an element of `input`: checks what its type needs, and gives it an id of ours in place of any it has. `type`
 * may be left out of a message and of a reference. Texts are not decoded.
 *
 * @param source one JSON value. @param where names it in messages.
 * @returns with bytes of its own.
 * @throws ApiError invalid_request `invalid_body` that names the member.
 */
export function readItem(source: Uint8Array, where: string): NewItem {
  const item = new ItemScan(source, where)
  const type = typeOf(item)
  if (type === 'item_reference') return { reference: idOf(item, 'id') }
  const known = ITEM_TYPES.get(type)
  if (!known) return item.fail('type', `${JSON.stringify(type.slice(0, 100))} is no type of item`)
  return composed(item, type, known.read(item))
}

/** A message of the user. @param contents of a JSON string, escapes untouched. */
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

/** Puts an item together: an id of ours, its type, and the members that it has, as the bytes that they are. */
function composed(
  item: ItemScan,
  type: string,
  { role, callId, edits = [], dropped, added = [], repeats }: GivenForm,
): GivenItem {
  const id = newItemId(type)
  const pieces: Uint8Array[] = [encoder.encode(`{"id":"${id}","type":"${type}"`)]
  for (const [name, { memberStart, start, end }] of item.members) {
    if (name === 'id' || name === 'type' || dropped?.has(name)) continue
    pieces.push(COMMA, item.source.subarray(memberStart, start))
    const inside = edits.filter((edit) => edit.start >= start && edit.end <= end)
    const shifted = inside.map((edit) => ({ ...edit, start: edit.start - start, end: edit.end - start }))
    pieces.push(...applyEdits(item.source.subarray(start, end), shifted).pieces)
  }
  pieces.push(encoder.encode(`${added.map((member) => `,${member}`).join('')}}`))
  const given = { id, type, role: role ?? null, callId: callId ?? null, bytes: ownedCopy(pieces).bytes }
  return repeats === undefined ? given : { ...given, repeats }
}

const encoder = new TextEncoder()
const COMMA = encoder.encode(',')
