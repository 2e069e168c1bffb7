import { createHash } from 'node:crypto'

/** Check digits as their standards describe them, written for the corpus alone. All take and give decimal digits. */

const at = (digits: string, index: number): number => Number(digits.charAt(index))

/** ISO/IEC 7812 annex B: the digit that makes a number with `payload` before it valid. */
export function luhnDigit(payload: string): string {
  let sum = 0
  for (let index = 0; index < payload.length; index++) {
    const digit = at(payload, payload.length - 1 - index)
    const doubled = index % 2 === 0 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return String((10 - (sum % 10)) % 10)
}

export function weightedSum(digits: string, weights: readonly number[]): number {
  return weights.reduce((sum, weight, index) => sum + weight * at(digits, index), 0)
}

/** The remainder of a number of any length. */
export function remainder(digits: string, divisor: number): number {
  let rest = 0
  for (const digit of digits) rest = (rest * 10 + Number(digit)) % divisor
  return rest
}

/** ISO 7064 MOD 11,10. */
export function mod11And10Digit(payload: string): string {
  let product = 10
  for (const digit of payload) {
    const sum = (Number(digit) + product) % 10 || 10
    product = (sum * 2) % 11
  }
  return String((11 - product) % 10)
}

/** ISO 7064 MOD 11-2: a digit or X. */
export function mod11And2Digit(payload: string): string {
  let sum = 0
  for (const digit of payload) sum = ((sum + Number(digit)) * 2) % 11
  const check = (12 - sum) % 11
  return check === 10 ? 'X' : String(check)
}

/** Verhoeff's scheme over the dihedral group of ten elements, by its rule of composition instead of the usual table. */
export function verhoeffDigit(payload: string): string {
  const compose = (left: number, right: number): number => {
    if (left < 5) return right < 5 ? (left + right) % 5 : 5 + ((left + right) % 5)
    return right < 5 ? 5 + ((left - right + 5) % 5) : (left - right + 5) % 5
  }
  const first = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]
  const permuted = (digit: number, times: number): number => {
    let result = digit
    for (let round = 0; round < times; round++) result = first[result] ?? 0
    return result
  }
  let sum = 0
  for (let index = 1; index <= payload.length; index++) {
    sum = compose(sum, permuted(at(payload, payload.length - index), index % 8))
  }
  return String(sum < 5 ? (5 - sum) % 5 : sum)
}

/** ISO 13616 (MOD 97-10): the two check digits of an IBAN. */
export function ibanCheckDigits(country: string, account: string): string {
  const numbers = `${account}${country}00`.replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55))
  return String(98 - remainder(numbers, 97)).padStart(2, '0')
}

const BITCOIN_DIGITS = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Base 58 as Bitcoin writes it, or with the digits of another coin. */
export function base58(bytes: Uint8Array, digits = BITCOIN_DIGITS): string {
  let number = BigInt(`0x${Buffer.from(bytes).toString('hex') || '0'}`)
  let text = ''
  for (; number > 0n; number /= 58n) text = digits.charAt(Number(number % 58n)) + text
  for (let index = 0; bytes[index] === 0; index++) text = digits.charAt(0) + text
  return text
}

/** Base 58 of a version, a payload and the first four bytes of their double SHA-256. */
export function base58Check(version: number, payload: Uint8Array, digits?: string): string {
  const body = Uint8Array.from([version, ...payload])
  const digest = sha256(sha256(body))
  return base58(Uint8Array.from([...body, ...digest.subarray(0, 4)]), digits)
}

export function sha256(bytes: Uint8Array): Uint8Array {
  return createHash('sha256').update(bytes).digest()
}

const FIVE_BIT_CHARACTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const FIVE_BIT_GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]

/** BIP 173 (version 0) and BIP 350 (later versions): a witness program as an address. */
export function segwitAddress(prefix: string, version: number, program: Uint8Array): string {
  const values = [version, ...fiveBitGroups(program)]
  const head = [...prefix].map((letter) => letter.charCodeAt(0))
  const expanded = [...head.map((code) => code >> 5), 0, ...head.map((code) => code & 31)]
  const constant = version === 0 ? 1 : 0x2bc830a3
  const sum = fiveBitSum([...expanded, ...values, 0, 0, 0, 0, 0, 0]) ^ constant
  const check = [25, 20, 15, 10, 5, 0].map((shift) => (sum >> shift) & 31)
  return `${prefix}1${[...values, ...check].map((value) => FIVE_BIT_CHARACTERS.charAt(value)).join('')}`
}

function fiveBitSum(values: readonly number[]): number {
  let sum = 1
  for (const value of values) {
    const top = sum >>> 25
    sum = ((sum & 0x1ffffff) << 5) ^ value
    for (const [index, generator] of FIVE_BIT_GENERATOR.entries()) if ((top >> index) & 1) sum ^= generator
  }
  return sum
}

function fiveBitGroups(bytes: Uint8Array): number[] {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? []).map((group) => Number.parseInt(group.padEnd(5, '0'), 2))
}
