import { createHash } from 'node:crypto'
import { contextPattern } from './context-words.ts'
import type { DetectorDescription, Match, TokenDetector } from './detector.ts'
import { keccak256 } from './keccak.ts'

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const RIPPLE_ALPHABET = 'rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz'

/** Decodes base 58. @returns null if a character is not of it */
function decodeBase58(text: string, alphabet = ALPHABET): Uint8Array | null {
  const bytes: number[] = []
  for (const character of text) {
    let carry = alphabet.indexOf(character)
    if (carry < 0) return null
    for (let index = 0; index < bytes.length; index++) {
      carry += (bytes[index] ?? 0) * 58
      bytes[index] = carry & 255
      carry >>= 8
    }
    for (; carry > 0; carry >>= 8) bytes.push(carry & 255)
  }
  for (let index = 0; index < text.length - 1 && text[index] === alphabet[0]; index++) bytes.push(0)
  return Uint8Array.from(bytes.reverse())
}

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

/** Payload of a base 58 text whose last four bytes are the start of the double SHA-256 of those before. */
function decodeBase58Check(text: string, alphabet?: string): Uint8Array | null {
  const bytes = decodeBase58(text, alphabet)
  if (bytes === null || bytes.length < 5) return null
  const payload = bytes.subarray(0, -4)
  const hash = sha256(sha256(payload))
  for (let index = 0; index < 4; index++) if (hash[index] !== bytes[payload.length + index]) return null
  return payload
}

const BECH32_ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const BECH32_GENERATORS = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]

/** Whether a text passes the checksum of BIP 173 or BIP 350. */
function isBech32(text: string): boolean {
  const lower = text.toLowerCase()
  const separator = lower.lastIndexOf('1')
  if ((lower !== text && text !== text.toUpperCase()) || separator < 1 || lower.length - separator < 7)
    return false
  let check = 1
  const add = (value: number): void => {
    const top = check >>> 25
    check = ((check & 0x1ffffff) << 5) ^ value
    for (let bit = 0; bit < 5; bit++) if ((top >> bit) & 1) check ^= BECH32_GENERATORS[bit] ?? 0
  }
  for (let index = 0; index < separator; index++) add(lower.charCodeAt(index) >> 5)
  add(0)
  for (let index = 0; index < separator; index++) add(lower.charCodeAt(index) & 31)
  for (let index = separator + 1; index < lower.length; index++) {
    const value = BECH32_ALPHABET.indexOf(lower.charAt(index))
    if (value < 0) return false
    add(value)
  }
  return check === 1 || check === 0x2bc830a3
}

/** Mixed case spells a checksum (EIP-55); one case has none. */
function isEthereumAddress(text: string): boolean {
  const hex = text.slice(2)
  const lower = hex.toLowerCase()
  if (/^(.)\1*$/.test(hex)) return false
  if (hex === lower || hex === hex.toUpperCase()) return true
  const hash = keccak256(lower)
  for (let index = 0; index < 40; index++) {
    const nibble = ((hash[index >> 1] ?? 0) >> (index % 2 === 0 ? 4 : 0)) & 15
    const letter = lower.charAt(index)
    if ((nibble > 7 ? letter.toUpperCase() : letter) !== hex[index]) return false
  }
  return true
}

/** The last two bytes of the decoded base 32 are the CRC-16/XMODEM of the others. */
function isStellarAddress(text: string): boolean {
  let bits = 0
  let size = 0
  const bytes: number[] = []
  for (const character of text) {
    bits = ((bits << 5) | 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(character)) & 0xfff
    size += 5
    if (size < 8) continue
    size -= 8
    bytes.push((bits >> size) & 255)
  }
  let crc = 0
  for (const byte of bytes.slice(0, -2)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  }
  return crc === (bytes.at(-2) ?? 0) + (bytes.at(-1) ?? 0) * 256
}

/** A written form of a coin's addresses. `shape` is tried on the whole token, so it is anchored and bounded. */
interface Form {
  shape: RegExp
  check(text: string): boolean
}

const base58 = (shape: RegExp, version: (payload: Uint8Array) => boolean, alphabet?: string): Form => ({
  shape,
  check(text) {
    const payload = decodeBase58Check(text, alphabet)
    return payload !== null && version(payload)
  },
})
const hash160 =
  (...versions: number[]) =>
  (payload: Uint8Array): boolean =>
    payload.length === 21 && versions.includes(payload[0] ?? -1)
const bech32 = (shape: RegExp): Form => ({ shape, check: isBech32 })

function coin(id: string, name: string, forms: readonly Form[], score = 0.97): TokenDetector {
  return {
    id: `${id}_address`,
    category: 'crypto',
    description: `${name} address`,
    find(text, start, end): Match | null {
      const token = text.slice(start, end)
      const found = forms.some((form) => form.shape.test(token) && form.check(token))
      return found ? { start, end, score } : null
    },
  }
}

const BECH32_BODY = '[02-9ac-hj-np-z]'
const NUMBERS = '[1-9A-HJ-NP-Za-km-z]'

/** Tried on tokens of letters and digits of 25 to 110 units. */
export const COINS: readonly TokenDetector[] = [
  coin('bitcoin', 'Bitcoin', [
    base58(new RegExp(`^[13mn2]${NUMBERS}{24,34}$`), hash160(0, 5, 111, 196)),
    bech32(new RegExp(`^(?:bc1|tb1)${BECH32_BODY}{11,71}$`, 'i')),
  ]),
  coin('ethereum', 'Ethereum', [{ shape: /^0[xX][0-9a-fA-F]{40}$/, check: isEthereumAddress }], 0.9),
  coin('litecoin', 'Litecoin', [
    base58(new RegExp(`^[LM3]${NUMBERS}{25,34}$`), hash160(48, 50)),
    bech32(new RegExp(`^ltc1${BECH32_BODY}{11,71}$`, 'i')),
  ]),
  coin('dogecoin', 'Dogecoin', [base58(new RegExp(`^[DA9]${NUMBERS}{25,34}$`), hash160(30, 22))]),
  coin('dash', 'Dash', [base58(new RegExp(`^[X7]${NUMBERS}{25,34}$`), hash160(76, 16))]),
  coin('zcash', 'Zcash', [base58(new RegExp(`^t[13]${NUMBERS}{33}$`), (payload) => payload.length === 22)]),
  coin('tron', 'Tron', [base58(new RegExp(`^T${NUMBERS}{33}$`), hash160(65))]),
  coin('ripple', 'XRP Ledger', [base58(new RegExp(`^r${NUMBERS}{24,34}$`), hash160(0), RIPPLE_ALPHABET)]),
  coin('cardano', 'Cardano', [bech32(new RegExp(`^(?:addr|stake)(?:_test)?1${BECH32_BODY}{50,104}$`))]),
  coin('cosmos', 'Cosmos and its chains', [
    bech32(
      new RegExp(`^(?:cosmos|osmo|juno|terra|inj|celestia|kava|secret|axelar|sei)1${BECH32_BODY}{38,58}$`),
    ),
  ]),
  coin('monero', 'Monero', [{ shape: /^[48][0-9AB][1-9A-HJ-NP-Za-km-z]{93}$/, check: () => true }], 0.9),
  coin('stellar', 'Stellar', [{ shape: /^G[A-Z2-7]{55}$/, check: isStellarAddress }]),
]

export const WALLET_KEY: TokenDetector = {
  id: 'wallet_private_key',
  category: 'secret',
  description: 'Private key of a wallet (WIF, BIP 32 xprv, Stellar seed)',
  find(text, start, end) {
    const token = text.slice(start, end)
    let found = false
    if (/^[5KLc9][1-9A-HJ-NP-Za-km-z]{50,51}$/.test(token)) {
      const payload = decodeBase58Check(token)
      found = payload !== null && (payload[0] === 128 || payload[0] === 239)
    } else if (/^[xyzt]prv[1-9A-HJ-NP-Za-km-z]{107,108}$/.test(token))
      found = decodeBase58Check(token) !== null
    else if (/^S[A-Z2-7]{55}$/.test(token)) found = isStellarAddress(token)
    return found ? { start, end, score: 0.98 } : null
  },
}

export const SOLANA: DetectorDescription = {
  id: 'solana_address',
  category: 'crypto',
  description: 'Solana address, near a word that names it',
}

export const SOLANA_CONTEXT = contextPattern(
  'solana, sol, phantom, spl, wallet, address, deposit, dirección, adresse, indirizzo, endereço, ' +
    'cartera, portefeuille, billetera, monedero, geldbörse, portafoglio, carteira, crypto, ' +
    'blockchain, 钱包, ウォレット',
)

/** 32 bytes in base 58. There is no checksum, so a word before the address has to name it. */
export function isSolanaAddress(token: string): boolean {
  return /^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(token) && decodeBase58(token)?.length === 32
}
