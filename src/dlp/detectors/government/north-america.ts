import { isDate, isUniform, luhn, numberIn } from '../checksums.ts'
import { type NationalDetector, nationalNumber, nationalWord } from './national.ts'

const CURP_ALPHABET = '0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ'

export const NORTH_AMERICA: readonly NationalDetector[] = [
  /** Areas 000, 666 and 900 and up, group 00 and serial 0000 are never assigned (SSA, POMS RM 10201.035). */
  nationalNumber({
    id: 'us_ssn',
    description: 'US Social Security number (assigned ranges)',
    forms: { '3-2-4': 0.85, '3 2 4, 3.2.4': 0.6, '9': 0.2 },
    context: 'ssn, ssns, social security, social security number, social, ss no, ss number, soc sec, tin',
    validate(digits) {
      const area = numberIn(digits, 0, 3)
      const assigned = area !== 0 && area !== 666 && area < 900
      return assigned && digits.slice(3, 5) !== '00' && digits.slice(5) !== '0000' && !isUniform(digits)
    },
  }),
  /** First digit 9, the fourth and fifth in the ranges that the IRS gives out (Publication 4757; 2026 ranges). */
  nationalNumber({
    id: 'us_itin',
    description: 'US individual taxpayer identification number (assigned ranges)',
    forms: { '3-2-4': 0.8, '3 2 4, 3.2.4': 0.55, '9': 0.2 },
    context: 'itin, taxpayer, individual taxpayer, tax id, tax identification, tin, irs, ssn',
    validate(digits) {
      const group = numberIn(digits, 3, 5)
      const assigned =
        (group >= 50 && group <= 65) || (group >= 70 && group <= 88) || (group >= 90 && group !== 93)
      return digits[0] === '9' && assigned
    },
  }),
  /** Luhn; 8 starts numbers of businesses, 0 those that the tax office gives out. */
  nationalNumber({
    id: 'ca_sin',
    description: 'Canadian social insurance number (Luhn)',
    forms: { '3-3-3': 0.6, '3 3 3': 0.45, '9': 0.2 },
    context:
      'sin, social insurance, social insurance number, nas, assurance sociale, ' +
      'numero d assurance sociale',
    validate: (digits) => digits[0] !== '8' && luhn(digits) && !isUniform(digits),
  }),
  nationalWord({
    id: 'mx_curp',
    description: 'Mexican population registry code (CURP, with date and check digit)',
    baseScore: 0.92,
    first: 'letter',
    lengths: [18],
    pattern: /[A-Z]{4}\d{6}[HMX][A-Z]{2}[B-DF-HJ-NP-TV-Z]{3}[0-9A-Z]\d(?![A-Za-z0-9])/y,
    context: 'curp, clave unica, clave única, registro de poblacion',
    contextScore: 0.98,
    validate(code) {
      let sum = 0
      for (let index = 0; index < 17; index++) sum += CURP_ALPHABET.indexOf(code.charAt(index)) * (18 - index)
      const known = isDate(numberIn(code, 8, 10), numberIn(code, 6, 8))
      return known && (10 - (sum % 10)) % 10 === Number(code[17])
    },
  }),
]
