import { currentKey, hmacSha256Hex, type KeyRing, secretsEqual } from '../../lib/crypto.ts'
import { newId, randomBase62 } from '../../lib/ids.ts'
import type { Owner } from './types.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 22
/** Ten base62 characters are a little under 60 bits. */
const MAC_LENGTH = 10
const SHAPE = new RegExp(`^resp_([0-9A-Za-z]{${RANDOM_LENGTH}})([0-9A-Za-z]{${MAC_LENGTH}})$`)

/**
 * Creates the id of a response, `resp_<22 base62><10 base62>`. The last part is a MAC under the ring's current key: an id
 * names a Durable Object, and a guessed id must not start one.
 * @throws if the ring is empty.
 */
export function newResponseId(ring: KeyRing): string {
  const random = randomBase62(RANDOM_LENGTH)
  return `resp_${random}${responseMac(currentKey(ring).key, random)}`
}

/** Whether `newResponseId` has created the id with any key of the ring. Takes constant time in the MAC. */
export function isResponseId(ring: KeyRing, id: string): boolean {
  const [, random, mac] = SHAPE.exec(id) ?? []
  if (random === undefined || mac === undefined) return false
  return anyKey(ring, mac, (key) => responseMac(key, random))
}

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
const responseMac = (key: Uint8Array, random: string): string =>
  base62Mac(key, `response-id:${random}`, MAC_LENGTH)

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
