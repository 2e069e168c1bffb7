import { COINS, SOLANA, WALLET_KEY } from './crypto-addresses.ts'
import type { DetectorDescription, NumberDetector, WordDetector } from './detector.ts'
import { bic, cards, IBAN, routingNumber } from './financial.ts'
import * as asiaPacific from './government/asia-pacific.ts'
import * as centralEurope from './government/central-europe.ts'
import * as northAmerica from './government/north-america.ts'
import * as northernEasternEurope from './government/northern-eastern-europe.ts'
import * as passports from './government/passports.ts'
import * as southAmerica from './government/south-america.ts'
import * as westernEurope from './government/western-europe.ts'
import { DOMAIN, EMAIL, IP_ADDRESS, URL_CREDENTIALS } from './network.ts'
import { PHONE } from './phone.ts'
import { PRIVATE_KEY } from './private-keys.ts'
import { BASIC_CREDENTIALS, JSON_WEB_TOKEN, SECRET } from './secrets.ts'
import { SPECIAL_KEYS } from './special-keys.ts'
import { VENDOR_KEYS } from './vendor-keys.ts'

const governments = [
  northAmerica,
  southAmerica,
  westernEurope,
  centralEurope,
  northernEasternEurope,
  asiaPacific,
  passports,
]

export const NUMBER_DETECTORS: readonly NumberDetector[] = [
  ...cards,
  routingNumber,
  ...governments.flatMap(({ numberDetectors }) => numberDetectors),
]
export const WORD_DETECTORS: readonly WordDetector[] = [
  bic,
  ...governments.flatMap(({ wordDetectors }) => wordDetectors),
]

const rows: readonly DetectorDescription[] = [
  ...NUMBER_DETECTORS,
  ...WORD_DETECTORS,
  IBAN,
  passports.MACHINE_READABLE_ZONE,
  EMAIL,
  PHONE,
  DOMAIN,
  IP_ADDRESS,
  URL_CREDENTIALS,
  JSON_WEB_TOKEN,
  PRIVATE_KEY,
  BASIC_CREDENTIALS,
  SECRET,
  ...VENDOR_KEYS,
  ...Object.values(SPECIAL_KEYS),
  ...COINS,
  WALLET_KEY,
  SOLANA,
]

/** Every built-in detector, once: what policies can name and consoles can show. */
export const DETECTORS: readonly DetectorDescription[] = [
  ...new Map(
    rows.map(({ id, category, description, baseScore }) => [id, { id, category, description, baseScore }]),
  ).values(),
].sort((left, right) => (left.category + left.id < right.category + right.id ? -1 : 1))
