import {
  icaoCheckDigit,
  isArticleNumber,
  isDate,
  isoMod11And10,
  isUniform,
  numberIn,
  remainder,
  weightedSum,
} from '../checksums.ts'
import { type NationalDetector, nationalNumber, nationalWord } from './national.ts'

export const CENTRAL_EUROPE: readonly NationalDetector[] = [
  /** Exactly one of the first ten digits occurs twice or three times (Bundeszentralamt für Steuern). */
  nationalNumber({
    id: 'de_tax_id',
    description: 'German tax identification number (IdNr, digit frequency and check digit)',
    forms: { '2 3 3 3, 2-3-3-3, 2.3.3.3': 0.7, '11': 0.6 },
    context:
      'steuer, steuer id, steuer idnr, steuernummer, steueridentifikationsnummer, idnr, ' +
      'identifikationsnummer, tin, tax id, tax identification, tax number',
    validate(digits) {
      const counts = new Map<string, number>()
      for (const digit of digits.slice(0, 10)) counts.set(digit, (counts.get(digit) ?? 0) + 1)
      const repeated = [...counts.values()].filter((count) => count > 1)
      if (repeated.length !== 1 || (repeated[0] ?? 0) > 3) return false
      return isoMod11And10(digits)
    },
  }),
  /** Serial of letters without vowels and of digits, check digit as in ICAO 9303; the new card's first letter is L to Y. */
  nationalWord({
    id: 'de_id_card',
    description: 'German identity card number (Personalausweis, check digit)',
    baseScore: 0.45,
    first: 'letter',
    lengths: [9, 10],
    pattern: /[LMNPRTVWXY][CFGHJKLMNPRTVWXYZ0-9]{8}\d?(?![A-Za-z0-9])/y,
    context: 'personalausweis, ausweis, ausweisnummer, personalausweisnummer, id card, identity card, perso',
    contextScore: 0.92,
    validate(match) {
      if (!/\d.*\d/.test(match)) return false
      return match.length === 9 || icaoCheckDigit(match.slice(0, 9)) === Number(match[9])
    },
  }),
  /** Weights 9 to 2 and -1, modulo 11. */
  nationalNumber({
    id: 'nl_bsn',
    description: 'Dutch citizen service number (BSN, eleven test), near a word that names it',
    forms: { '4.2.3, 4 2 3': 0.4, '9, 3 3 3, 3.3.3, 3-3-3': 0.2 },
    context:
      'bsn, burgerservicenummer, burger service nummer, sofinummer, sofi, citizen service, ' +
      'citizen number, dutch',
    validate: (digits) => weightedSum(digits, [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 === 0 && !isUniform(digits),
  }),
  /** The last two digits are 97 less the rest modulo 97, with a 2 before those born since 2000. */
  nationalNumber({
    id: 'be_national_number',
    description: 'Belgian national register number (modulo 97)',
    forms: {
      '2.2.2-3.2': 0.95,
      '2.2.2.3.2, 2 2 2 3 2, 2-2-2-3-2, 2 2 2-3 2, 6-3-2, 6 3 2, 6-3.2': 0.8,
      '11': 0.55,
    },
    context:
      'rijksregisternummer, rijksregister, registre national, numero national, numéro national, nrn, ' +
      'niss, insz, inss, national register, national number, belgian',
    contextScore: 0.96,
    validate(digits) {
      const known = numberIn(digits, 2, 4) <= 12 && numberIn(digits, 4, 6) <= 31
      const check = numberIn(digits, 9, 11)
      const matches = (text: string): boolean => 97 - remainder(text, 97) === check
      return known && (matches(digits.slice(0, 9)) || matches(`2${digits.slice(0, 9)}`))
    },
  }),
  /** EAN-13 with the country's 756. */
  nationalNumber({
    id: 'ch_ahv',
    description: 'Swiss social security number (AHV/AVS, check digit)',
    forms: { '3.4.4.2, 3 4 4 2, 3-4-4-2': 0.95, '13': 0.7 },
    context: 'ahv, avs, oasi, sozialversicherungsnummer, ahv nr, ahv nummer',
    contextScore: 0.98,
    validate: (digits) => digits.startsWith('756') && isArticleNumber(digits),
  }),
  /** Check digit in the fourth place; the date of birth follows. */
  nationalNumber({
    id: 'at_svnr',
    description: 'Austrian social insurance number (check digit)',
    forms: { '4 6, 4-6': 0.5, '10': 0.25 },
    context:
      'svnr, sv nummer, sozialversicherung, sozialversicherungsnummer, versicherungsnummer, vsnr, ' +
      'social insurance, austrian',
    validate(digits) {
      const sum = weightedSum(digits, [3, 7, 9, 0, 5, 8, 4, 2, 1, 6])
      return (
        digits[0] !== '0' &&
        sum % 11 === Number(digits[3]) &&
        isDate(numberIn(digits, 4, 6), numberIn(digits, 6, 8) % 13)
      )
    },
  }),
]
