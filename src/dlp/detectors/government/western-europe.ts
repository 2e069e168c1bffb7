import { isUniform, numberIn, remainder, weightedSum } from '../checksums.ts'
import { type NationalDetector, nationalNumber, nationalWord } from './national.ts'

/** Key: 97 less the number modulo 97; Corsica's 2A and 2B count as 19 and 18 (INSEE). */
function isFrenchNumber(code: string): boolean {
  const compact = code
    .replace(/[ \t._-]/g, '')
    .replace('2A', '19')
    .replace('2B', '18')
  const month = numberIn(compact, 3, 5)
  const known = /^[123478]/.test(compact) && month > 0 && (month <= 12 || (month >= 20 && month <= 99))
  return (
    known && compact.length === 15 && 97 - remainder(compact.slice(0, 13), 97) === numberIn(compact, 13, 15)
  )
}

const FRENCH = {
  id: 'fr_nir',
  description: 'French social security number (NIR, two-digit key)',
  baseScore: 0.9,
  context:
    'nir, insee, securite sociale, sécurité sociale, numero de securite sociale, secu, sécu, ' +
    'carte vitale, social security, assure, assuré',
  contextScore: 0.97,
  validate: isFrenchNumber,
} as const

const ODD_VALUES = [
  1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
]

const SPANISH_LETTERS = 'TRWAGMYFPDXBNJZSQVHLCKE'

function spanishCheck(code: string): boolean {
  const compact = code.replace(/[. -]/g, '').toUpperCase()
  const number = compact.slice(0, -1).replace('X', '0').replace('Y', '1').replace('Z', '2')
  return SPANISH_LETTERS[Number(number) % 23] === compact.at(-1)
}

export const WESTERN_EUROPE: readonly NationalDetector[] = [
  /** Letters that are not given out: HMRC, National Insurance Manual NIM39110. The official sample has QQ. */
  nationalWord({
    id: 'gb_nino',
    description: 'UK National Insurance number (permitted prefixes)',
    baseScore: 0.85,
    first: 'letter',
    lengths: [2, 4, 6, 8, 9],
    pattern: /[A-Z]{2}[ \t_-]?\d{2}[ \t_-]?\d{2}[ \t_-]?\d{2}[ \t_-]?[A-D](?![A-Za-z0-9])/y,
    context: 'nino, ni, ni number, ni no, national insurance, national insurance number, insurance number',
    contextScore: 0.97,
    validate(match) {
      const prefix = match.slice(0, 2)
      if (prefix === 'QQ') return true
      return (
        /^[ABCEGHJ-PRSTW-Z][ABCEGHJ-NPRSTW-Z]$/.test(prefix) && !/^(?:BG|GB|NK|KN|TN|NT|ZZ)$/.test(prefix)
      )
    },
    open: /(?:^|[^A-Za-z0-9])[A-Z]{2}(?:[ \t_-]?\d{2}){0,3}[ \t_-]?\d?$/,
  }),
  /** Weights 10 to 2, modulo 11 (NHS Data Dictionary). */
  nationalNumber({
    id: 'gb_nhs',
    description: 'UK National Health Service number (modulo 11)',
    forms: { '3 3 4': 0.65, '10, 3-3-4': 0.3 },
    context: 'nhs, nhs number, nhs no, national health, health service, patient',
    validate(digits) {
      const check = 11 - (weightedSum(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11)
      return check !== 10 && check % 11 === Number(digits[9]) && !isUniform(digits)
    },
  }),
  nationalNumber({
    ...FRENCH,
    forms: { '1 2 2 2 3 3 2, 1-2-2-2-3-3-2, 1.2.2.2.3.3.2, 13 2, 13-2': 0.9, '15': 0.7 },
  }),
  nationalWord({
    ...FRENCH,
    first: 'digit',
    lengths: [1, 15, 13],
    pattern:
      /[12][ \t._-]?\d{2}[ \t._-]?\d{2}[ \t._-]?2[AB][ \t._-]?\d{3}[ \t._-]?\d{3}[ \t._-]?\d{2}(?![A-Za-z0-9])/y,
    open: /(?:^|[^A-Za-z0-9])[12][ \t._-]?\d{2}[ \t._-]?\d{2}[ \t._-]?2(?:[AB](?:[ \t._-]?\d{0,3}){0,3}[ \t._-]?)?$/,
  }),
  /** Odd places (counted from one) by table, even places by value; modulo 26 (D.M. 23/12/1976). */
  nationalWord({
    id: 'it_codice_fiscale',
    description: 'Italian fiscal code (check letter)',
    baseScore: 0.95,
    first: 'letter',
    lengths: [16],
    pattern: /[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z](?![A-Za-z0-9])/iy,
    context: 'codice fiscale, cf, cod fiscale, fiscal code, tax code',
    contextScore: 0.98,
    validate(match) {
      const code = match.toUpperCase()
      let sum = 0
      for (let index = 0; index < 15; index++) {
        const unit = code.charCodeAt(index)
        const value = unit >= 65 ? unit - 65 : unit - 48
        sum += index % 2 === 0 ? (ODD_VALUES[value] ?? 0) : value
      }
      return sum % 26 === code.charCodeAt(15) - 65
    },
  }),
  nationalWord({
    id: 'es_dni',
    description: 'Spanish identity number (DNI, check letter)',
    baseScore: 0.7,
    first: 'digit',
    lengths: [1, 2, 8, 9],
    pattern: /(?:\d{8}|\d{1,2}\.\d{3}\.\d{3})[ -]?[A-HJ-NP-TV-Z](?![A-Za-z0-9])/y,
    context: 'dni, nif, documento nacional, documento de identidad, identidad',
    contextScore: 0.96,
    validate: spanishCheck,
    open: /(?:^|[^A-Za-z0-9])(?:\d{8}|\d{1,2}\.\d{3}\.\d{3})[ -]?$/,
  }),
  nationalWord({
    id: 'es_nie',
    description: 'Spanish number of foreigners (NIE, check letter)',
    baseScore: 0.85,
    first: 'letter',
    lengths: [1, 8, 9],
    pattern: /[XYZ][ -]?\d{7}[ -]?[A-HJ-NP-TV-Z](?![A-Za-z0-9])/y,
    context: 'nie, nif, extranjero, foreigner, identidad, numero de identidad de extranjero',
    contextScore: 0.97,
    validate: spanishCheck,
    open: /(?:^|[^A-Za-z0-9])[XYZ][ -]?\d{0,7}[ -]?$/,
  }),
  nationalNumber({
    id: 'pt_nif',
    description: 'Portuguese tax number (NIF, modulo 11), near a word that names it',
    forms: { '9': 0.2, '3 3 3, 3.3.3, 3-3-3': 0.3 },
    context:
      'nif, contribuinte, portuguese, numero de contribuinte, número de contribuinte, fiscal, ' +
      'finanças, vat pt',
    validate(digits) {
      const check = 11 - (weightedSum(digits, [9, 8, 7, 6, 5, 4, 3, 2]) % 11)
      return /^[1235689]/.test(digits) && (check > 9 ? 0 : check) === Number(digits[8]) && !isUniform(digits)
    },
  }),
  /** Weights 8 to 2, and 9 for a second letter, modulo 23. */
  nationalWord({
    id: 'ie_pps',
    description: 'Irish personal public service number (check letter)',
    baseScore: 0.6,
    first: 'digit',
    lengths: [8, 9],
    pattern: /\d{7}[A-W][A-IW]?(?![A-Za-z0-9])/y,
    context: 'pps, ppsn, personal public service, pps number',
    contextScore: 0.96,
    validate(match) {
      const second = match[8] === undefined || match[8] === 'W' ? 0 : match.charCodeAt(8) - 64
      const sum = weightedSum(match, [8, 7, 6, 5, 4, 3, 2]) + second * 9
      return 'WABCDEFGHIJKLMNOPQRSTUV'[sum % 23] === match[7]
    },
  }),
]
