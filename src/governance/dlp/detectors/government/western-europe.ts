import {
  icaoCheckDigit,
  isDate,
  isoMod11And10,
  isUniform,
  part,
  remainder,
  weightedSum,
} from '../checksums.ts'
import { grouped, type NumberDetector, type WordDetector } from '../detector.ts'

/** Letters that are not given out: HMRC, National Insurance Manual NIM39110. The official sample has QQ. */
const britishInsuranceNumber: WordDetector = {
  id: 'gb_nino',
  category: 'government',
  description: 'UK National Insurance number (permitted prefixes)',
  baseScore: 0.85,
  first: 'letter',
  lengths: [2, 4, 6, 8, 9],
  pattern: /[A-Z]{2}[ -]?\d{2}[ -]?\d{2}[ -]?\d{2}[ -]?[A-D](?![A-Za-z0-9])/y,
  context: [
    'nino',
    'ni',
    'ni number',
    'ni no',
    'national insurance',
    'national insurance number',
    'insurance number',
  ],
  contextScore: 0.97,
  validate(match) {
    const prefix = match.slice(0, 2)
    if (prefix === 'QQ') return true
    return /^[ABCEGHJ-PRSTW-Z][ABCEGHJ-NPRSTW-Z]$/.test(prefix) && !/^(?:BG|GB|NK|KN|TN|NT|ZZ)$/.test(prefix)
  },
  open: /(?:^|[^A-Za-z0-9])[A-Z]{2}(?:[ -]?\d{2}){0,3}[ -]?\d?$/,
}

/** Weights 10 to 2, modulo 11 (NHS Data Dictionary). */
const britishHealthNumber: NumberDetector = {
  id: 'gb_nhs',
  category: 'government',
  description: 'UK National Health Service number (modulo 11)',
  baseScore: 0.65,
  forms: [
    { shapes: ['3 3 4'], score: 0.65 },
    { shapes: ['10', '3-3-4'], score: 0.3 },
  ],
  context: ['nhs', 'nhs number', 'nhs no', 'national health', 'health service', 'patient'],
  contextScore: 0.95,
  validate(digits) {
    const check = 11 - (weightedSum(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11)
    return check !== 10 && check % 11 === Number(digits[9]) && !isUniform(digits)
  },
}

/** Of the first ten digits exactly one occurs twice or three times (Bundeszentralamt für Steuern). */
const germanTaxId: NumberDetector = {
  id: 'de_tax_id',
  category: 'government',
  description: 'German tax identification number (IdNr, digit frequency and check digit)',
  baseScore: 0.7,
  forms: [
    { shapes: ['2 3 3 3', '2-3-3-3', '2.3.3.3'], score: 0.7 },
    { shapes: ['11'], score: 0.6 },
  ],
  context: [
    'steuer', 'steuer id', 'steuer idnr', 'steuernummer', 'steueridentifikationsnummer', 'idnr', 'identifikationsnummer',
    'tin', 'tax id', 'tax identification', 'tax number',
  ], // biome-ignore format: a list
  contextScore: 0.95,
  validate(digits) {
    const counts = new Map<string, number>()
    for (const digit of digits.slice(0, 10)) counts.set(digit, (counts.get(digit) ?? 0) + 1)
    const repeated = [...counts.values()].filter((count) => count > 1)
    if (repeated.length !== 1 || (repeated[0] ?? 0) > 3) return false
    return isoMod11And10(digits)
  },
}

/** Serial of letters without vowels and of digits, check digit as in ICAO 9303; the new card's first letter is L to Y. */
const germanIdentityCard: WordDetector = {
  id: 'de_id_card',
  category: 'government',
  description: 'German identity card number (Personalausweis, check digit)',
  baseScore: 0.45,
  first: 'letter',
  lengths: [9, 10],
  pattern: /[LMNPRTVWXY][CFGHJKLMNPRTVWXYZ0-9]{8}\d?(?![A-Za-z0-9])/y,
  context: [
    'personalausweis',
    'ausweis',
    'ausweisnummer',
    'personalausweisnummer',
    'id card',
    'identity card',
    'perso',
  ],
  contextScore: 0.92,
  validate(match) {
    if (!/\d.*\d/.test(match)) return false
    return match.length === 9 || icaoCheckDigit(match.slice(0, 9)) === Number(match[9])
  },
}

/** Key: 97 less the number modulo 97; Corsica's 2A and 2B count as 19 and 18 (INSEE). */
function isFrenchNumber(code: string): boolean {
  const compact = code.replace(/[ .-]/g, '').replace('2A', '19').replace('2B', '18')
  const month = part(compact, 3, 5)
  const known = /^[123478]/.test(compact) && month > 0 && (month <= 12 || (month >= 20 && month <= 99))
  return known && compact.length === 15 && 97 - remainder(compact.slice(0, 13), 97) === part(compact, 13, 15)
}

const FRENCH = {
  id: 'fr_nir',
  category: 'government',
  description: 'French social security number (NIR, two-digit key)',
  baseScore: 0.9,
  context: [
    'nir', 'insee', 'securite sociale', 'sécurité sociale', 'numero de securite sociale', 'secu', 'sécu', 'carte vitale',
    'social security', 'assure', 'assuré',
  ], // biome-ignore format: a list
  contextScore: 0.97,
  validate: isFrenchNumber,
} as const

const frenchNumber: NumberDetector = {
  ...FRENCH,
  forms: [
    { shapes: [...grouped('1 2 2 2 3 3 2', ' -.'), '13 2', '13-2'], score: 0.9 },
    { shapes: ['15'], score: 0.7 },
  ],
}
const frenchNumberOfCorsica: WordDetector = {
  ...FRENCH,
  first: 'digit',
  lengths: [1, 15, 13],
  pattern: /[12][ .-]?\d{2}[ .-]?\d{2}[ .-]?2[AB][ .-]?\d{3}[ .-]?\d{3}[ .-]?\d{2}(?![A-Za-z0-9])/y,
  open: /(?:^|[^A-Za-z0-9])[12][ .-]?\d{2}[ .-]?\d{2}[ .-]?2(?:[AB](?:[ .-]?\d{0,3}){0,3}[ .-]?)?$/,
}

const ODD_VALUES = [
  1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
]

/** Odd places (counted from one) by table, even places by value; modulo 26 (D.M. 23/12/1976). */
const italianFiscalCode: WordDetector = {
  id: 'it_codice_fiscale',
  category: 'government',
  description: 'Italian fiscal code (check letter)',
  baseScore: 0.95,
  first: 'letter',
  lengths: [16],
  pattern: /[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z](?![A-Za-z0-9])/iy,
  context: ['codice fiscale', 'cf', 'cod fiscale', 'fiscal code', 'tax code'],
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
}

const SPANISH_LETTERS = 'TRWAGMYFPDXBNJZSQVHLCKE'

function spanishCheck(code: string): boolean {
  const compact = code.replace(/[. -]/g, '').toUpperCase()
  const number = compact.slice(0, -1).replace('X', '0').replace('Y', '1').replace('Z', '2')
  return SPANISH_LETTERS[Number(number) % 23] === compact.at(-1)
}

const spanishIdentity: WordDetector = {
  id: 'es_dni',
  category: 'government',
  description: 'Spanish identity number (DNI, check letter)',
  baseScore: 0.7,
  first: 'digit',
  lengths: [1, 2, 8, 9],
  pattern: /(?:\d{8}|\d{1,2}\.\d{3}\.\d{3})[ -]?[A-HJ-NP-TV-Z](?![A-Za-z0-9])/y,
  context: ['dni', 'nif', 'documento nacional', 'documento de identidad', 'identidad'],
  contextScore: 0.96,
  validate: spanishCheck,
  open: /(?:^|[^A-Za-z0-9])(?:\d{8}|\d{1,2}\.\d{3}\.\d{3})[ -]?$/,
}

const spanishForeigner: WordDetector = {
  id: 'es_nie',
  category: 'government',
  description: 'Spanish number of foreigners (NIE, check letter)',
  baseScore: 0.85,
  first: 'letter',
  lengths: [1, 8, 9],
  pattern: /[XYZ][ -]?\d{7}[ -]?[A-HJ-NP-TV-Z](?![A-Za-z0-9])/y,
  context: ['nie', 'nif', 'extranjero', 'foreigner', 'identidad', 'numero de identidad de extranjero'],
  contextScore: 0.97,
  validate: spanishCheck,
  open: /(?:^|[^A-Za-z0-9])[XYZ][ -]?\d{0,7}[ -]?$/,
}

/** Weights 9 to 2 and -1, modulo 11. */
const dutchNumber: NumberDetector = {
  id: 'nl_bsn',
  category: 'government',
  description: 'Dutch citizen service number (BSN, eleven test), near a word that names it',
  baseScore: 0.4,
  forms: [
    { shapes: ['4.2.3', '4 2 3'], score: 0.4 },
    { shapes: ['9', ...grouped('3 3 3', ' .-')], score: 0.2 },
  ],
  context: [
    'bsn',
    'burgerservicenummer',
    'burger service nummer',
    'sofinummer',
    'sofi',
    'citizen service',
    'citizen number',
    'dutch',
  ],
  contextScore: 0.95,
  validate: (digits) => weightedSum(digits, [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 === 0 && !isUniform(digits),
}

const portugueseTaxNumber: NumberDetector = {
  id: 'pt_nif',
  category: 'government',
  description: 'Portuguese tax number (NIF, modulo 11), near a word that names it',
  baseScore: 0.3,
  forms: [
    { shapes: ['9'], score: 0.2 },
    { shapes: grouped('3 3 3', ' .-'), score: 0.3 },
  ],
  context: [
    'nif',
    'contribuinte',
    'numero de contribuinte',
    'número de contribuinte',
    'fiscal',
    'finanças',
    'vat pt',
  ],
  contextScore: 0.95,
  validate(digits) {
    const check = 11 - (weightedSum(digits, [9, 8, 7, 6, 5, 4, 3, 2]) % 11)
    return /^[1235689]/.test(digits) && (check > 9 ? 0 : check) === Number(digits[8]) && !isUniform(digits)
  },
}

/** The last two digits are 97 less the rest modulo 97, with a 2 before those born since 2000. */
const belgianNumber: NumberDetector = {
  id: 'be_national_number',
  category: 'government',
  description: 'Belgian national register number (modulo 97)',
  baseScore: 0.95,
  forms: [
    { shapes: ['2.2.2-3.2'], score: 0.95 },
    { shapes: ['2.2.2.3.2', '2 2 2 3 2', '2-2-2-3-2', '2 2 2-3 2', '6-3-2', '6 3 2', '6-3.2'], score: 0.8 },
    { shapes: ['11'], score: 0.55 },
  ],
  context: [
    'rijksregisternummer', 'rijksregister', 'registre national', 'numero national', 'numéro national', 'nrn', 'niss',
    'insz', 'inss', 'national register', 'national number', 'belgian',
  ], // biome-ignore format: a list
  contextScore: 0.96,
  validate(digits) {
    const known = part(digits, 2, 4) <= 12 && part(digits, 4, 6) <= 31
    const check = part(digits, 9, 11)
    const matches = (text: string): boolean => 97 - remainder(text, 97) === check
    return known && (matches(digits.slice(0, 9)) || matches(`2${digits.slice(0, 9)}`))
  },
}

/** EAN-13 with the country's 756. */
const swissNumber: NumberDetector = {
  id: 'ch_ahv',
  category: 'government',
  description: 'Swiss social security number (AHV/AVS, check digit)',
  baseScore: 0.95,
  forms: [
    { shapes: ['3.4.4.2', '3 4 4 2', '3-4-4-2'], score: 0.95 },
    { shapes: ['13'], score: 0.7 },
  ],
  context: ['ahv', 'avs', 'oasi', 'sozialversicherungsnummer', 'ahv nr', 'ahv nummer'],
  contextScore: 0.98,
  validate: (digits) =>
    digits.startsWith('756') && weightedSum(digits, [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]) % 10 === 0,
}

/** Check digit in the fourth place; the date of birth follows. */
const austrianNumber: NumberDetector = {
  id: 'at_svnr',
  category: 'government',
  description: 'Austrian social insurance number (check digit)',
  baseScore: 0.5,
  forms: [
    { shapes: ['4 6', '4-6'], score: 0.5 },
    { shapes: ['10'], score: 0.25 },
  ],
  context: [
    'svnr',
    'sv nummer',
    'sozialversicherung',
    'sozialversicherungsnummer',
    'versicherungsnummer',
    'vsnr',
    'social insurance',
    'austrian',
  ],
  contextScore: 0.95,
  validate(digits) {
    const sum = weightedSum(digits, [3, 7, 9, 0, 5, 8, 4, 2, 1, 6])
    return (
      digits[0] !== '0' &&
      sum % 11 === Number(digits[3]) &&
      isDate(part(digits, 4, 6), part(digits, 6, 8) % 13)
    )
  },
}

/** Weights 8 to 2, and 9 for a second letter, modulo 23. */
const irishNumber: WordDetector = {
  id: 'ie_pps',
  category: 'government',
  description: 'Irish personal public service number (check letter)',
  baseScore: 0.6,
  first: 'digit',
  lengths: [8, 9],
  pattern: /\d{7}[A-W][A-IW]?(?![A-Za-z0-9])/y,
  context: ['pps', 'ppsn', 'personal public service', 'pps number'],
  contextScore: 0.96,
  validate(match) {
    const second = match[8] === undefined || match[8] === 'W' ? 0 : match.charCodeAt(8) - 64
    const sum = weightedSum(match, [8, 7, 6, 5, 4, 3, 2]) + second * 9
    return 'WABCDEFGHIJKLMNOPQRSTUV'[sum % 23] === match[7]
  },
}

export const numberDetectors: readonly NumberDetector[] = [
  britishHealthNumber,
  germanTaxId,
  frenchNumber,
  dutchNumber,
  portugueseTaxNumber,
  belgianNumber,
  swissNumber,
  austrianNumber,
]
export const wordDetectors: readonly WordDetector[] = [
  britishInsuranceNumber,
  germanIdentityCard,
  frenchNumberOfCorsica,
  italianFiscalCode,
  spanishIdentity,
  spanishForeigner,
  irishNumber,
]
