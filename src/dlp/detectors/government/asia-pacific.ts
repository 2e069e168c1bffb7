import { isDate, isUniform, luhn, numberIn, verhoeff, weightedSum } from '../checksums.ts'
import { type NationalDetector, nationalNumber, nationalWord } from './national.ts'

const CN_WEIGHTS = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]

/** Region, date of birth, sequence, and a check character 0-9 or X (GB 11643-1999, ISO 7064 MOD 11-2). */
function isChineseNumber(code: string): boolean {
  const year = numberIn(code, 6, 10)
  const known = /^[1-9]/.test(code) && year >= 1900 && year <= 2100
  if (!known || !isDate(numberIn(code, 12, 14), numberIn(code, 10, 12), year)) return false
  return '10X98765432'[weightedSum(code, CN_WEIGHTS) % 11] === code[17]?.toUpperCase()
}

const CHINESE = {
  id: 'cn_resident_id',
  description: 'Chinese resident identity number (date of birth, check character)',
  baseScore: 0.92,
  context: '身份证, 身份证号, 公民身份, id card, resident identity, identity card, citizen id',
  contextScore: 0.98,
  validate: isChineseNumber,
} as const

const SG_LETTERS = {
  S: 'JZIHGFEDCBA',
  T: 'GFEDCBAJZIH',
  F: 'XWUTRQPNMLK',
  G: 'RQPNMLKXWUT',
  M: 'XWUTRQPNJLK',
}

const TW_LETTERS = 'ABCDEFGHJKLMNPQRSTUVXYWZIO'

export const ASIA_PACIFIC: readonly NationalDetector[] = [
  /** Twelve digits, the first 2 to 9, Verhoeff (UIDAI). */
  nationalNumber({
    id: 'in_aadhaar',
    description: 'Indian Aadhaar number (Verhoeff)',
    forms: { '4 4 4, 4-4-4': 0.75, '12': 0.35 },
    context: 'aadhaar, aadhar, adhaar, adhar, uidai, uid, आधार',
    validate: (digits) => digits > '2' && !isUniform(digits) && verhoeff(digits),
  }),
  /** The fourth letter is the kind of holder. */
  nationalWord({
    id: 'in_pan',
    description: 'Indian permanent account number (PAN)',
    baseScore: 0.7,
    first: 'letter',
    lengths: [10],
    pattern: /[A-Z]{3}[ABCFGHJLPTK][A-Z]\d{4}[A-Z](?![A-Za-z0-9])/y,
    context: 'pan, permanent account, income tax, pan card',
    validate: (match) => match.slice(5, 9) !== '0000',
  }),
  nationalNumber({
    ...CHINESE,
    forms: { '18, 6 8 4, 6-8-4': 0.92 },
  }),
  nationalWord({
    ...CHINESE,
    first: 'digit',
    lengths: [18],
    pattern: /\d{17}[Xx](?![A-Za-z0-9])/y,
  }),
  /** Twelve digits; weights 2 to 7 from the right, modulo 11 (Ordinance 85 of 2014). */
  nationalNumber({
    id: 'jp_my_number',
    description: 'Japanese individual number (My Number, check digit)',
    forms: { '4 4 4, 4-4-4': 0.45, '12': 0.3 },
    context: 'my number, mynumber, マイナンバー, 個人番号, individual number, kojin bango',
    validate(digits) {
      const rest = weightedSum(digits, [6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11
      return !isUniform(digits) && (rest <= 1 ? 0 : 11 - rest) === Number(digits[11])
    },
  }),
  /** Date of birth, then the century and sex. Numbers given out since October 2020 have no check digit. */
  nationalNumber({
    id: 'kr_rrn',
    description: 'Korean resident registration number (date of birth)',
    forms: { '6-7': 0.8, '6 7': 0.45, '13': 0.3 },
    context: '주민등록, 주민등록번호, 주민번호, rrn, resident registration, alien registration, 외국인등록',
    validate: (digits) => /^.{6}[1-8]/.test(digits) && isDate(numberIn(digits, 4, 6), numberIn(digits, 2, 4)),
  }),
  nationalNumber({
    id: 'au_tfn',
    description: 'Australian tax file number (weighted modulo 11)',
    forms: { '3 3 3, 3-3-3': 0.45, '9': 0.2 },
    context: 'tfn, tax file, tax file number, australian tax',
    validate: (digits) => weightedSum(digits, [1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 === 0 && !isUniform(digits),
  }),
  nationalNumber({
    id: 'au_medicare',
    description: 'Australian Medicare card number (check digit)',
    forms: { '4 5 1, 4-5-1, 4 5 1/1, 4 5 1-1, 4 5 1 1': 0.75, '10, 11': 0.2 },
    context: 'medicare, medicare card, medicare number',
    validate: (digits) =>
      /^[2-6]/.test(digits) && weightedSum(digits, [1, 3, 7, 9, 1, 3, 7, 9]) % 10 === Number(digits[8]),
  }),
  nationalWord({
    id: 'sg_nric',
    description: 'Singapore NRIC or FIN (check letter)',
    baseScore: 0.8,
    first: 'letter',
    lengths: [9],
    pattern: /[STFGM]\d{7}[A-Z](?![A-Za-z0-9])/y,
    context: 'nric, fin, identity card',
    validate(match) {
      const kind = match.charAt(0) as keyof typeof SG_LETTERS
      const sum = weightedSum(match.slice(1), [2, 7, 6, 5, 4, 3, 2]) + (kind === 'M' ? 3 : 0)
      return SG_LETTERS[kind][sum % 11] === match[8]
    },
  }),
  /** Form: one or two letters, six digits, a check digit or A in brackets. */
  nationalWord({
    id: 'hk_id',
    description: 'Hong Kong identity card number (check character)',
    baseScore: 0.85,
    first: 'letter',
    lengths: [7, 8],
    pattern: /[A-Z]{1,2}\d{6}\([0-9A]\)(?![A-Za-z0-9])/y,
    context: 'hkid, identity card, 身份證',
    validate(match) {
      const code = match.replace(/[()]/g, '').padStart(9, ' ')
      let sum = 0
      for (let index = 0; index < 8; index++) {
        const unit = code.charCodeAt(index)
        sum += (unit === 32 ? 36 : unit >= 65 ? unit - 55 : unit - 48) * (9 - index)
      }
      return '0A987654321'[sum % 11] === code[8]
    },
    open: /[A-Z]{1,2}\d{6}\([0-9A]?\)?$/,
  }),
  nationalWord({
    id: 'tw_id',
    description: 'Taiwanese identity number (check digit)',
    baseScore: 0.5,
    first: 'letter',
    lengths: [10],
    pattern: /[A-Z][1289]\d{8}(?![A-Za-z0-9])/y,
    context: '身分證, 身分證字號, national id, roc id, taiwan id, tw id, taiwan, taiwanese, identity',
    validate(match) {
      const letter = TW_LETTERS.indexOf(match.charAt(0)) + 10
      const sum =
        Math.floor(letter / 10) + (letter % 10) * 9 + weightedSum(match.slice(1), [8, 7, 6, 5, 4, 3, 2, 1, 1])
      return sum % 10 === 0
    },
  }),
  nationalNumber({
    id: 'th_id',
    description: 'Thai identity number (modulo 11)',
    forms: { '1 4 5 2 1, 1-4-5-2-1': 0.9, '13': 0.35 },
    context: 'thai id, เลขประจำตัวประชาชน, บัตรประชาชน, national id',
    validate: (digits) =>
      (11 - (weightedSum(digits, [13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11)) % 10 === Number(digits[12]),
  }),
  /** Luhn over nine digits, leading zeros included. */
  nationalNumber({
    id: 'il_id',
    description: 'Israeli identity number (Luhn), near a word that names it',
    forms: { '9, 8-1': 0.2 },
    context: 'teudat zehut, israeli id, תעודת זהות, ת ז, מספר זהות',
    validate: (digits) => luhn(digits) && !isUniform(digits),
  }),
]
