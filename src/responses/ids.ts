import { currentKey, hmacSha256Hex, type KeyRing, secretsEqual } from '../lib/crypto.ts'
import { newId, randomBase62 } from '../lib/ids.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 22
/** Ten base62 characters are a little under 60 bits. */
const MAC_LENGTH = 10
const SHAPE = new RegExp(`^resp_([0-9A-Za-z]{${RANDOM_LENGTH}})([0-9A-Za-z]{${MAC_LENGTH}})$`)

/**
 * Makes the id of a new response, `resp_<22 base62><10 base62>`. The last part is a MAC under the ring's current key:
 * an id names a Durable Object, and one that was guessed must not wake any.
 * @throws if the ring is empty.
 */
export function newResponseId(ring: KeyRing): string {
  const random = randomBase62(RANDOM_LENGTH)
  return `resp_${random}${macOf(currentKey(ring).key, random)}`
}

/** Whether an id was made by `newResponseId` under any key of the ring. Its time does not depend on the MAC. */
export function isResponseId(ring: KeyRing, id: string): boolean {
  const [, random, mac] = SHAPE.exec(id) ?? []
  if (random === undefined || mac === undefined) return false
  let made = false
  for (const key of ring.values()) made = secretsEqual(mac, macOf(key, random)) || made
  return made
}

/** Makes the id of a conversation, `conv_<22 base62>`. */
export function newConversationId(): string {
  return newId('conv')
}

/** The prefix keeps this apart from other uses of the same keys. */
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
 * Whether an id or a name of somebody else can be one here: columns and parameters of Postgres take no NUL and no half
 * of a surrogate pair, and other control characters are in no id that was meant.
 */
export const isIdText = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text)
