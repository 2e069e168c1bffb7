import type { SeededRandom } from './seeded-random.ts'

/** The types of the corpus. Kinds (issuer, country, vendor) are distinguished within a type. */
export const LABEL_TYPES = [
  'card',
  'iban',
  'bic',
  'us_routing',
  'us_ssn',
  'us_itin',
  'phone',
  'email',
  'ip',
  'domain',
  'url_credentials',
  'passport',
  'national_id',
  'wallet',
  'jwt',
  'private_key',
  'vendor_key',
  'entropy_secret',
] as const
export type LabelType = (typeof LABEL_TYPES)[number]

export const LANGUAGES = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'pl', 'ja', 'zh'] as const
export type Language = (typeof LANGUAGES)[number]

/** Names of a value in forms and prose, by language. English is always there. */
export type Names = { en: readonly string[] } & { [Name in Language]?: readonly string[] }

export interface SensitiveValue {
  type: LabelType
  kind: string
  text: string
  /** The part that has to be covered, where that is not all: the password of an address, say. */
  core?: { start: number; end: number }
  names: Names
  /** Names of the value in programs and tables. */
  keys: readonly string[]
  /** True where only the words around it distinguish it from any other number. */
  needsName: boolean
}

/** Makes one value of a kind. */
export type ValueMaker = (random: SeededRandom) => SensitiveValue

/** A table of makers by kind, each taking turns. */
export type ValueMakers = Readonly<Record<string, ValueMaker>>
