import { currentKey, hmacSha256Hex, type KeyRing, secretsEqual } from '../../lib/crypto.ts'
import { newId, randomBase62 } from '../../lib/ids.ts'
import type { Owner } from './types.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 22
/** Ten base62 characters are a little under 60 bits. */
const MAC_LENGTH = 10
const SHAPE = /^resp_((?:[0-9A-Za-z]{5})?[0-9A-Za-z]{22})([0-9A-Za-z]{10})$/

/** The object of a response that shares it with others of its organization. Each member is a part of the id, in base62. */
export interface ResponsePlace {
  /** A character that says where the object is. */
  region: string
  /** Two characters: the ten minutes in which it takes responses. */
  slot: string
  /** Two characters: one of the objects of this region and slot. */
  number: string
}

/**
 * Creates the id of a response, `resp_<place><22 base62><10 base62>`. The last part is a MAC over what precedes it, under the
 * ring's current key: an id names a Durable Object, and a guessed id must not start one.
 * @param place null for a response in an object of its own, whose id has no place.
 * @throws if the ring is empty.
 */
export function newResponseId(ring: KeyRing, place: ResponsePlace | null): string {
  const named = place === null ? '' : place.region + place.slot + place.number
  const text = named + randomBase62(RANDOM_LENGTH)
  return `resp_${text}${responseMac(currentKey(ring).key, text)}`
}

/** Whether `newResponseId` has created the id with any key of the ring. Takes constant time in the MAC. */
export function isResponseId(ring: KeyRing, id: string): boolean {
  const [, text, mac] = SHAPE.exec(id) ?? []
  if (text === undefined || mac === undefined) return false
  return anyKey(ring, mac, (key) => responseMac(key, text))
}

/** The place in an id; null for that of a response in an object of its own. The MAC is not checked. */
export function placeOf(id: string): ResponsePlace | null {
  const text = SHAPE.exec(id)?.[1]
  if (text === undefined || text.length === RANDOM_LENGTH) return null
  return { region: text.slice(0, 1), slot: text.slice(1, 3), number: text.slice(3, 5) }
}

/**
 * A number as base62 text of a fixed length, which wraps around.
 * @param length characters.
 */
export function base62(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 62))
    text = ALPHABET.charAt(rest % 62) + text
  return text
}

/** The number that `base62` has written. */
export const base62Value = (text: string): number =>
  [...text].reduce((value, character) => value * 62 + ALPHABET.indexOf(character), 0)

/** A call that an owner is requested to approve. */
interface RequestedCall {
  owner: Owner
  /** The public id of the integration. */
  server: string
  /** The tool's name, as the upstream has it. */
  tool: string
  /** JSON whose members are in a fixed order. */
  arguments: string
}

const APPROVAL_SHAPE = /^mcpr_([0-9A-Za-z]{22})([0-9A-Za-z]{22})$/

/**
 * Creates the id of a request for approval, `mcpr_<22 base62><22 base62>`. The last part is a MAC that binds it to the call:
 * clients that store nothing here send the request back with their approval, and must not get another call approved.
 */
export function newApprovalId(ring: KeyRing, call: RequestedCall): string {
  const random = randomBase62(RANDOM_LENGTH)
  return `mcpr_${random}${approvalMac(currentKey(ring).key, random, call)}`
}

/** Whether `newApprovalId` has created the id for this call, with any key of the ring. Takes constant time in the MAC. */
export function isApprovalId(ring: KeyRing, id: string, call: RequestedCall): boolean {
  const [, random, mac] = APPROVAL_SHAPE.exec(id) ?? []
  if (random === undefined || mac === undefined) return false
  return anyKey(ring, mac, (key) => approvalMac(key, random, call))
}

/** Whether a text has the form of such an id, of any owner and call. */
export const hasApprovalShape = (text: string): boolean => APPROVAL_SHAPE.test(text)

/** Creates the id of a conversation, `conv_<22 base62>`. */
export const newConversationId = (): string => newId('conv')

/** Characters of an item's id that the items of one turn share, and those that are its own: about 47 and 83 bits. */
const TURN_LENGTH = 8
const OWN_LENGTH = 14
const ITEM_SHAPE = new RegExp(`^[a-z]+_([0-9A-Za-z]{${TURN_LENGTH}})[0-9A-Za-z]{${OWN_LENGTH}}$`)

/** Creates the name of a turn of a model, which is a part of the ids of its items. */
export const newTurn = (): string => randomBase62(TURN_LENGTH)

/** Creates the id of an item, `<prefix>_<8 base62><14 base62>`. @param turn of the model that generated it. */
export const idOfTurn = (prefix: string, turn: string): string =>
  `${prefix}_${turn}${randomBase62(OWN_LENGTH)}`

/**
 * The turn in which an item was generated. Ids are kept by storage, by connections, and by clients that send a whole
 * conversation back, so that calls of one turn stay together in each of them. Nothing but the grouping of the owner's own
 * items depends on it.
 * @returns null for an id of another form. An item of a request has a turn that no other item has.
 */
export const turnOf = (itemId: string): string | null => ITEM_SHAPE.exec(itemId)?.[1] ?? null

function anyKey(ring: KeyRing, mac: string, macOfKey: (key: Uint8Array) => string): boolean {
  let made = false
  for (const key of ring.values()) made = secretsEqual(mac, macOfKey(key)) || made
  return made
}

/** The prefixes separate these from other uses of the same keys. */
const responseMac = (key: Uint8Array, text: string): string =>
  base62Mac(key, `response-id:${text}`, MAC_LENGTH)

function approvalMac(key: Uint8Array, random: string, call: RequestedCall): string {
  const { owner, server, tool } = call
  const bound = [random, owner.organizationId, owner.userId, server, tool, call.arguments]
  return base62Mac(key, `approval-id:${JSON.stringify(bound)}`, RANDOM_LENGTH)
}

/** @param length characters of the result; 43 would be the whole MAC. */
function base62Mac(key: Uint8Array, text: string, length: number): string {
  let rest = BigInt(`0x${hmacSha256Hex(key, text)}`)
  let digits = ''
  while (digits.length < length) {
    digits += ALPHABET.charAt(Number(rest % 62n))
    rest /= 62n
  }
  return digits
}

/**
 * Whether a foreign id or name can be stored: Postgres accepts neither NUL nor half of a surrogate pair, and other control
 * characters occur in no valid id.
 */
export const isIdText = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text)
