import type { SeededRandom } from './seeded-random.ts'
import type { Names, SensitiveValue, ValueMaker, ValueMakers } from './values.ts'

/** United States tax numbers, and passports of the larger countries. */

const SSN_NAMES: Names = { en: ['SSN', 'social security number', 'social security', 'Social Security No.'] }
const ITIN_NAMES: Names = { en: ['ITIN', 'taxpayer identification number', 'individual taxpayer id'] }

function threePart(random: SeededRandom, parts: readonly string[]): { text: string; bare: boolean } {
  const separator = random.pick(['-', '-', '-', ' ', ''])
  return { text: parts.join(separator), bare: separator === '' }
}

/** Social Security Administration: no area 000, 666 or 900 and above, no group 00, no serial 0000. */
export const SOCIAL_SECURITY_NUMBERS: ValueMakers = {
  us: (random) => {
    const area = random.chance(0.5) ? random.padded(1, 665, 3) : random.padded(667, 899, 3)
    const { text, bare } = threePart(random, [area, random.padded(1, 99, 2), random.padded(1, 9999, 4)])
    return {
      type: 'us_ssn',
      kind: 'us',
      text,
      names: SSN_NAMES,
      keys: ['ssn', 'social_security_number'],
      needsName: bare,
    }
  },
}

/** Internal Revenue Service: area 9xx, group 50 to 65, 70 to 88, 90 to 92 or 94 to 99. */
export const TAXPAYER_NUMBERS: ValueMakers = {
  us: (random) => {
    const [low, high] = random.pick([
      [50, 65],
      [70, 88],
      [90, 92],
      [94, 99],
    ] as const)
    const parts = [random.padded(900, 999, 3), random.padded(low, high, 2), random.digits(4)]
    const { text, bare } = threePart(random, parts)
    return {
      type: 'us_itin',
      kind: 'us',
      text,
      names: ITIN_NAMES,
      keys: ['itin', 'taxpayer_id'],
      needsName: bare,
    }
  },
}

const PASSPORT_NAMES: Names = {
  en: ['passport number', 'passport', 'passport no.'],
  de: ['Reisepass', 'Passnummer', 'Reisepassnummer'],
  fr: ['passeport', 'numéro de passeport'],
  es: ['pasaporte', 'número de pasaporte'],
  it: ['passaporto', 'numero di passaporto'],
  pt: ['passaporte', 'número do passaporte'],
  nl: ['paspoort', 'paspoortnummer'],
  pl: ['paszport', 'numer paszportu'],
  ja: ['パスポート番号', '旅券番号'],
  zh: ['护照号码'],
}

/** Forms as the issuing offices describe them. */
const PASSPORT_FORMS: Record<string, readonly string[]> = {
  US: ['@########', '#########'],
  GB: ['#########'],
  FR: ['##@@#####'],
  CA: ['@@######'],
  AU: ['@#######', 'P@#######'],
  IN: ['@#######'],
  IT: ['@@#######'],
  ES: ['@@@######'],
  JP: ['@@#######'],
  CN: ['E########', 'G########', 'EA#######'],
  BR: ['@@######'],
  KR: ['M########'],
  PL: ['@@#######'],
  NL: ['N[ABCDEFGH]######[123456789]'],
  PT: ['@@######'],
  RU: ['## #######'],
  CH: ['[XC]#######'],
}

const passport =
  (kind: string, write: (random: SeededRandom) => string, needsName = true): ValueMaker =>
  (random): SensitiveValue => ({
    type: 'passport',
    kind,
    text: write(random),
    names: PASSPORT_NAMES,
    keys: ['passport_number', 'passport', 'passportNo'],
    needsName,
  })

export const PASSPORTS: ValueMakers = {
  ...Object.fromEntries(
    Object.entries(PASSPORT_FORMS).map(([country, forms]) => [
      country,
      passport(country, (random) => random.fill(random.pick(forms))),
    ]),
  ),
  DE: passport('DE', (random) => {
    const serial = random.fill(`[CFGHJK]${'[0123456789CFGHJKLMNPRTVWXYZ]'.repeat(8)}`)
    return random.chance(0.5) ? serial : serial + machineReadableDigit(serial)
  }),
  machine_readable: passport('machine_readable', machineReadableLine, false),
}

/** ICAO 9303 part 3: weights 7, 3, 1; letters from 10, the filler `<` is 0. */
function machineReadableDigit(text: string): string {
  const rankOf = (character: string): number =>
    character === '<' ? 0 : /\d/.test(character) ? Number(character) : character.charCodeAt(0) - 55
  const sum = [...text].reduce(
    (total, character, index) => total + rankOf(character) * ([7, 3, 1][index % 3] ?? 0),
    0,
  )
  return String(sum % 10)
}

/** ICAO 9303 part 4: the second line of a passport. */
function machineReadableLine(random: SeededRandom): string {
  const number = random.fill('[CFGHJK]########')
  const day = (from: number, to: number): string =>
    random.padded(from, to, 2) + random.padded(1, 12, 2) + random.padded(1, 28, 2)
  const [birth, expiry] = [day(50, 99), day(27, 35)]
  const country = random.pick(['D<<', 'FRA', 'GBR', 'USA', 'ESP', 'ITA', 'NLD'])
  const optional = '<'.repeat(14)
  const checked = (text: string): string => text + machineReadableDigit(text)
  const composite = machineReadableDigit(
    checked(number) + checked(birth) + checked(expiry) + checked(optional),
  )
  return `${checked(number)}${country}${checked(birth)}${random.pick(['F', 'M', '<'])}${checked(expiry)}${checked(optional)}${composite}`
}
