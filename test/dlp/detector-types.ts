import { BUILT_IN_DETECTORS } from '../../src/dlp/detectors/registry.ts'
import type { LabelType } from './corpus/values.ts'

/** The engine's detectors in the words of the corpus. */
const BY_ID: Readonly<Record<string, LabelType>> = {
  card: 'card',
  iban: 'iban',
  bic: 'bic',
  aba_routing: 'us_routing',
  us_ssn: 'us_ssn',
  us_itin: 'us_itin',
  phone: 'phone',
  email: 'email',
  ip_address: 'ip',
  domain: 'domain',
  url_credentials: 'url_credentials',
  passport_number: 'passport',
  passport_mrz: 'passport',
  jwt: 'jwt',
  private_key: 'private_key',
  secret: 'entropy_secret',
}

/** The other detectors are many of one sort: an id of a country, a key of a vendor, a coin's address. */
const BY_CATEGORY: Readonly<Record<string, LabelType>> = {
  government: 'national_id',
  crypto: 'wallet',
  secret: 'vendor_key',
}

const TYPES = new Map(
  BUILT_IN_DETECTORS.map(({ id, category }) => [id, BY_ID[id] ?? BY_CATEGORY[category] ?? null]),
)

/** @returns null for a detector that the corpus has no values of. */
export function typeOfDetector(id: string): LabelType | null {
  return TYPES.get(id) ?? null
}
