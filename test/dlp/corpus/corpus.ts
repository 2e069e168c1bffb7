import { BICS, CARDS, IBANS, ROUTING_NUMBERS } from './bank-values.ts'
import { DOMAINS, EMAILS, IP_ADDRESSES, URLS_WITH_CREDENTIALS } from './contact-values.ts'
import { PASSPORTS, SOCIAL_SECURITY_NUMBERS, TAXPAYER_NUMBERS } from './document-values.ts'
import { LabelledText, type Sample } from './labelled-text.ts'
import { LOOK_ALIKES, type LookAlike } from './look-alikes.ts'
import { EUROPEAN_IDS } from './national-id-values-europe.ts'
import { WORLD_IDS } from './national-id-values-world.ts'
import { PHONES } from './phone-values.ts'
import { ENTROPY_SECRETS, PRIVATE_KEYS, SIGNED_TOKENS } from './secret-values.ts'
import { SeededRandom } from './seeded-random.ts'
import { type Item, namedAfter, settle } from './settings.ts'
import {
  LABEL_TYPES,
  LANGUAGES,
  type LabelType,
  type Language,
  type SensitiveValue,
  type ValueMakers,
} from './values.ts'
import { VENDOR_KEYS } from './vendor-key-values.ts'
import { WALLETS } from './wallet-values.ts'

const MAKERS: Readonly<Record<LabelType, ValueMakers>> = {
  card: CARDS,
  iban: IBANS,
  bic: BICS,
  us_routing: ROUTING_NUMBERS,
  us_ssn: SOCIAL_SECURITY_NUMBERS,
  us_itin: TAXPAYER_NUMBERS,
  phone: PHONES,
  email: EMAILS,
  ip: IP_ADDRESSES,
  domain: DOMAINS,
  url_credentials: URLS_WITH_CREDENTIALS,
  passport: PASSPORTS,
  national_id: { ...EUROPEAN_IDS, ...WORLD_IDS },
  wallet: WALLETS,
  jwt: SIGNED_TOKENS,
  private_key: PRIVATE_KEYS,
  vendor_key: VENDOR_KEYS,
  entropy_secret: ENTROPY_SECRETS,
}

/** A text with look-alikes and no sensitive value: all that is found in it is wrong. */
export interface InnocentSample {
  sample: Sample
  lookAlike: LookAlike
}

export interface Corpus {
  labelled: Sample[]
  innocent: InnocentSample[]
}

export interface CorpusPlan {
  seed: number
  /** Values of each type at least; each kind of a type has as many as the others. */
  valuesPerType: number
  lookAlikes: number
}

/** Values of all kinds of one type, in turns of kind. */
export function valuesOf(type: LabelType, count: number, seed: number): SensitiveValue[] {
  const random = new SeededRandom(seed)
  const makers = Object.values(MAKERS[type])
  return Array.from({ length: Math.max(count, makers.length) }, (_, index) => {
    const maker = makers[index % makers.length]
    if (maker === undefined) throw new Error(`no value of type ${type}`)
    return maker(random)
  })
}

/** Builds the corpus: the same plan gives the same corpus everywhere. */
export function buildCorpus({ seed, valuesPerType, lookAlikes }: CorpusPlan): Corpus {
  const random = new SeededRandom(seed)
  const labelled = LABEL_TYPES.flatMap((type, order) =>
    valuesOf(type, valuesPerType, seed + order + 1).map((value, index) =>
      settle(random, withCompany(random, value), languageFor(random, value), index),
    ),
  )
  const makers = Object.values(LOOK_ALIKES)
  const innocent = Array.from({ length: lookAlikes }, (_, index): InnocentSample => {
    const lookAlike = random.pick(makers.slice(index % makers.length, (index % makers.length) + 1))(random)
    const sample = settle(random, [{ innocent: lookAlike }], random.pick(LANGUAGES), random.integer(0, 99))
    return { sample, lookAlike }
  })
  return { labelled, innocent }
}

/** Text directly before and after a value in prose, markup, code and rows. */
export const SURROUNDINGS: readonly (readonly [before: string, after: string])[] = [
  ['', ''],
  ['', '.'],
  ['', '. Then more.'],
  ['', ', and'],
  ['', '; next'],
  ['', ': yes'],
  ['', '!'],
  ['', '?'],
  ['', '...'],
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
  ['<', '>'],
  ['<b>', '</b>'],
  ['"', '"'],
  ["'", "'"],
  ['`', '`'],
  ['**', '**'],
  ['«', '»'],
  ['「', '」'],
  ['“', '”'],
  ['|', '|'],
  ['\t', '\t'],
  ['=', '&'],
  ['=', '\\n'],
  ['是', '。'],
  ['は', 'です'],
  ['\n', '\n'],
]

/** Text that joins a value with another token, as in the names of files. */
export const ADJOINING: readonly (readonly [before: string, after: string])[] = [
  ['', '.txt'],
  ['', '.tar.gz'],
  ['', '_1'],
  ['', '_1.pdf'],
  ['', '_final'],
  ['', '_'],
  ['', '-2'],
  ['', '-scan'],
  ['', '@home'],
  ['', '%'],
  ['', ' 1234'],
  ['', '\t1234'],
  ['scan_', ''],
  ['scan_2026_', '.pdf'],
  ['2026-', ''],
  ['a/', '.jpg'],
  ['#', ''],
  ['1234 ', ''],
  ['1234\t', '\t1234'],
]

/** Letters right beside a value. */
export const GLUED: typeof ADJOINING = [
  ['', 'x'],
  ['', 'é'],
  ['', '™'],
  ['x', ''],
  ['№', ''],
]

/** Values of every kind between marks, after their name where they need it or all are to have one. */
export function surroundedSamples(
  valuesPerType: number,
  seed: number,
  mark: (typeof SURROUNDINGS)[number],
  allNamed = false,
): Sample[] {
  const [before, after] = mark
  return LABEL_TYPES.flatMap((type, order) => valuesOf(type, valuesPerType, seed + order + 1)).map(
    (value) => {
      const name = allNamed || value.needsName ? `${value.names.en[0]}: ` : 'see '
      return new LabelledText()
        .add(name + before)
        .value(value)
        .add(after)
        .sample(`between ${before} and ${after}`)
    },
  )
}

/** Values that only their name identifies, and whose name follows them. */
export function namedAfterSamples(valuesPerType: number, seed: number): Sample[] {
  const random = new SeededRandom(seed)
  return LABEL_TYPES.flatMap((type, order) => valuesOf(type, valuesPerType, seed + order + 1))
    .filter(({ needsName }) => needsName)
    .map((value) => namedAfter(random, value))
}

/** A value by itself, or after a look-alike, as they come together in records. */
function withCompany(random: SeededRandom, value: SensitiveValue): Item[] {
  if (!random.chance(0.2)) return [{ sensitive: value }]
  const innocent = random.pick(Object.values(LOOK_ALIKES))(random)
  return [{ innocent }, { sensitive: value }]
}

/** Mostly a language that has a name for the value. */
function languageFor(random: SeededRandom, { names }: SensitiveValue): Language {
  const named = LANGUAGES.filter((language) => names[language] !== undefined)
  return random.chance(0.85) ? random.pick(named) : 'en'
}
