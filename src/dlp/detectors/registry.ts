import { COINS, SOLANA, WALLET_KEY } from './crypto-addresses.ts'
import type { DetectorDescription, NumberDetector, WordDetector } from './detector.ts'
import { bic, cards, IBAN, routingNumber } from './financial.ts'
import { ASIA_PACIFIC } from './government/asia-pacific.ts'
import { CENTRAL_EUROPE } from './government/central-europe.ts'
import type { NationalDetector } from './government/national.ts'
import { NORTH_AMERICA } from './government/north-america.ts'
import { NORTHERN_AND_EASTERN_EUROPE } from './government/northern-eastern-europe.ts'
import { MACHINE_READABLE_ZONE, PASSPORTS } from './government/passports.ts'
import { SOUTH_AMERICA } from './government/south-america.ts'
import { WESTERN_EUROPE } from './government/western-europe.ts'
import { DOMAIN, EMAIL, IP_ADDRESS, URL_CREDENTIALS } from './network.ts'
import { PHONE } from './phone.ts'
import { PRIVATE_KEY } from './private-keys.ts'
import { BASIC_CREDENTIALS, JSON_WEB_TOKEN, SECRET } from './secrets.ts'
import { SPECIAL_KEYS } from './special-keys.ts'
import { VENDOR_KEYS } from './vendor-keys.ts'

const NATIONAL: readonly NationalDetector[] = [
  ...NORTH_AMERICA,
  ...SOUTH_AMERICA,
  ...WESTERN_EUROPE,
  ...CENTRAL_EUROPE,
  ...NORTHERN_AND_EASTERN_EUROPE,
  ...ASIA_PACIFIC,
  ...PASSPORTS,
]

export const NUMBER_DETECTORS: readonly NumberDetector[] = [
  ...cards,
  routingNumber,
  ...NATIONAL.filter((detector) => 'forms' in detector),
]
export const WORD_DETECTORS: readonly WordDetector[] = [
  bic,
  ...NATIONAL.filter((detector) => 'pattern' in detector),
]

const rows: readonly DetectorDescription[] = [
  ...NUMBER_DETECTORS,
  ...WORD_DETECTORS,
  IBAN,
  MACHINE_READABLE_ZONE,
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

/** A detector of the engine, as policies can name it and consoles can show it. */
export interface BuiltInDetector extends DetectorDescription {
  /** Minimum score for rules without a `minimum_score` of their own. */
  minimumScore: number
}

/**
 * Scores are chosen for this threshold: a finding with a distinctive form or a context word is above, digits that only
 * could be such a number are below.
 */
const USUAL_MINIMUM_SCORE = 0.5

/** Every detector of the engine once, in order of the ids. */
export const BUILT_IN_DETECTORS: readonly BuiltInDetector[] = [
  ...new Map(
    rows.map(({ id, category, description }) => [
      id,
      { id, category, description, minimumScore: USUAL_MINIMUM_SCORE },
    ]),
  ).values(),
].sort((left, right) => (left.id < right.id ? -1 : 1))
