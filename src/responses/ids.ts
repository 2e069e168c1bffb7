import { currentKey, hmacSha256Hex, type KeyRing, secretsEqual } from '../lib/crypto.ts'
import { newId, randomBase62 } from '../lib/ids.ts'

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
  return `resp_${random}${macOf(currentKey(ring).key, random)}`
}

/** Whether `newResponseId` has created the id with any key of the ring. Takes constant time in the MAC. */
export function isResponseId(ring: KeyRing, id: string): boolean {
  const [, random, mac] = SHAPE.exec(id) ?? []
  if (random === undefined || mac === undefined) return false
  let made = false
  for (const key of ring.values()) made = secretsEqual(mac, macOf(key, random)) || made
  return made
}

/** Creates the id of a conversation, `conv_<22 base62>`. */
export const newConversationId = (): string => newId('conv')

/** The prefix separates this from other uses of the same keys. */
function macOf(key: Uint8Array, random: string): string {
  let rest = BigInt(`0x${hmacSha256Hex(key, `response-id:${random}`)}`)
  let digits = ''
  while (digits.length < MAC_LENGTH) {
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
