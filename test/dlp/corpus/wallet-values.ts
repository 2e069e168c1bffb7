import { base58, base58Check, segwitAddress } from './check-digits.ts'
import { keccak256 } from './keccak.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { Names, ValueMakers } from './values.ts'

/** Addresses of cryptocurrencies, with the checksums of their chains. */

const NAMES: Names = {
  en: ['wallet', 'wallet address', 'payout address', 'deposit address'],
  de: ['Wallet-Adresse', 'Wallet'],
  fr: ['adresse du portefeuille'],
  es: ['dirección de la cartera'],
}

const RIPPLE_DIGITS = 'rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz'

const writers: Record<string, (random: SeededRandom) => string> = {
  bitcoin: (random) => base58Check(0x00, random.bytes(20)),
  bitcoin_script: (random) => base58Check(0x05, random.bytes(20)),
  bitcoin_segwit: (random) => segwitAddress('bc', 0, random.bytes(20)),
  bitcoin_taproot: (random) => segwitAddress('bc', 1, random.bytes(32)),
  ethereum: (random) => mixedCase(Buffer.from(random.bytes(20)).toString('hex')),
  ethereum_lower: (random) => `0x${Buffer.from(random.bytes(20)).toString('hex')}`,
  litecoin: (random) => base58Check(0x30, random.bytes(20)),
  litecoin_segwit: (random) => segwitAddress('ltc', 0, random.bytes(20)),
  dogecoin: (random) => base58Check(0x1e, random.bytes(20)),
  tron: (random) => base58Check(0x41, random.bytes(20)),
  ripple: (random) => base58Check(0x00, random.bytes(20), RIPPLE_DIGITS),
  solana: (random) => base58(random.bytes(32)),
}

export const WALLETS: ValueMakers = Object.fromEntries(
  Object.entries(writers).map(([kind, write]) => [
    kind,
    (random: SeededRandom) => ({
      type: 'wallet' as const,
      kind,
      text: write(random),
      names: { ...NAMES, en: [...NAMES.en, `${kind.split('_')[0]} address`] },
      keys: ['wallet', 'wallet_address', 'payoutAddress'],
      needsName: kind === 'solana',
    }),
  ]),
)

/** EIP-55: a letter is a capital where the hash of the address has a high digit. */
function mixedCase(address: string): string {
  const digest = Buffer.from(keccak256(Buffer.from(address))).toString('hex')
  const letters = [...address].map((letter, index) =>
    Number.parseInt(digest.charAt(index), 16) > 7 ? letter.toUpperCase() : letter,
  )
  return `0x${letters.join('')}`
}
