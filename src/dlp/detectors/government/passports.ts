import { icaoCheckDigit, isDate, numberIn } from '../checksums.ts'
import type { Match, ScoredDetector } from '../detector.ts'
import { type NationalDetector, nationalNumber, nationalWord } from './national.ts'

const PASSPORT = {
  id: 'passport_number',
  description: 'Passport number of the larger countries, near a word for passport',
  baseScore: 0.25,
  context:
    'passport, passport no, passport number, passports, reisepass, reisepassnummer, passnummer, ' +
    'pass nr, passeport, pasaporte, passaporto, passaporte, paspoort, paspoortnummer, paszport, 护照, ' +
    '旅券, パスポート, 여권, travel document, паспорт, passeports, pasaportes, útlevél, passi',
  contextScore: 0.85,
} as const

export const MACHINE_READABLE_ZONE: ScoredDetector = {
  id: 'passport_mrz',
  category: 'government',
  description: 'Machine-readable line of a passport, visa or identity card (ICAO 9303, check digits)',
  baseScore: 0.95,
}

const SECOND_OF_TWO = /^[A-Z0-9<]{9}\d[A-Z<]{3}(\d{6})(\d)[MFX<](\d{6})(\d)[A-Z0-9<]*$/
const FIRST_OF_THREE = /^[ACI][A-Z0-9<][A-Z<]{3}([A-Z0-9<]{9})([0-9<])[A-Z0-9<]{15}$/
const SECOND_OF_THREE = /^(\d{6})(\d)[MFX<](\d{6})(\d)[A-Z<]{3}[A-Z0-9<]{11}\d$/
const NAME_LINE = /^[PV][A-Z<][A-Z<]{3}[A-Z]+(?:<[A-Z]+)*<<[A-Z<]*$/

/** Whether a line of 30, 36 or 44 characters `A-Z 0-9 <` is one of a travel document. Sizes: ICAO 9303-4, -5, -6. */
function isMachineReadableLine(line: string): boolean {
  const two = line.length === 44 || line.length === 36
  if (two && NAME_LINE.test(line) && line.endsWith('<')) return true
  if (two) {
    const match = SECOND_OF_TWO.exec(line)
    return match !== null && checks(line.slice(0, 9), line[9]) && datesCheck(match)
  }
  if (line.length !== 30) return false
  const first = FIRST_OF_THREE.exec(line)
  if (first !== null) return checks(first[1] ?? '', first[2])
  const second = SECOND_OF_THREE.exec(line)
  if (second !== null) return datesCheck(second)
  return /^[A-Z]+(?:<[A-Z]+)*<<[A-Z]+(?:<[A-Z]+)*<{2,}$/.test(line)
}

const checks = (field: string, digit: string | undefined): boolean => String(icaoCheckDigit(field)) === digit

function datesCheck(match: RegExpExecArray): boolean {
  const [, birth = '', birthCheck, expiry = '', expiryCheck] = match
  return (
    checks(birth, birthCheck) &&
    checks(expiry, expiryCheck) &&
    isDate(numberIn(expiry, 4, 6), numberIn(expiry, 2, 4))
  )
}

/** Reads a run of `A-Z 0-9 <`. @returns the whole run if it is a machine-readable line */
export function readMachineReadableLine(text: string, start: number, end: number): Match | null {
  if (![30, 36, 44].includes(end - start)) return null
  return isMachineReadableLine(text.slice(start, end))
    ? { start, end, score: MACHINE_READABLE_ZONE.baseScore }
    : null
}

export const PASSPORTS: readonly NationalDetector[] = [
  /** US and GB: nine digits; RU: two, two and six digits. */
  nationalNumber({
    ...PASSPORT,
    forms: { '9, 8, 2 7, 2 2 6, 4 6, 10': 0.15 },
    validate: () => true,
  }),
  /** US (letter, 8 digits), DE, FR, IT, ES, NL, IN, CN, JP, KR, AU, CA, and others of these forms. */
  nationalWord({
    ...PASSPORT,
    first: 'letter',
    lengths: [7, 8, 9, 10],
    pattern:
      /(?:[A-Z]\d{7,8}|[A-Z]{2}\d{6,7}|[A-Z]{3}\d{6}|[CFGHJK][CFGHJKLMNPRTVWXYZ0-9]{8}\d?|[A-NP-Z]{2}[A-NP-Z0-9]{6}\d)(?![A-Za-z0-9])/y,
    validate: (match) => /\d/.test(match),
  }),
  /** FR: two digits, two letters, five digits. */
  nationalWord({
    ...PASSPORT,
    first: 'digit',
    lengths: [9],
    pattern: /\d{2}[A-Z]{2}\d{5}(?![A-Za-z0-9])/y,
    validate: () => true,
  }),
]
