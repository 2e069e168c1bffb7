import { isDate, isUniform, luhn, numberIn, remainder, weightedSum } from '../checksums.ts'
import { type NationalDetector, nationalNumber, nationalWord } from './national.ts'

export const NORTHERN_AND_EASTERN_EUROPE: readonly NationalDetector[] = [
  /** Weights 1 3 7 9, and the century added to the month (ustawa o ewidencji ludności). */
  nationalNumber({
    id: 'pl_pesel',
    description: 'Polish PESEL number (date of birth, check digit)',
    forms: { '11': 0.5 },
    context: 'pesel, numer pesel, ewidencyjny',
    contextScore: 0.96,
    validate: (digits) =>
      weightedSum(digits, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]) % 10 === 0 &&
      isDate(numberIn(digits, 4, 6), numberIn(digits, 2, 4) % 20),
  }),
  /** Luhn over the ten digits; 60 is added to the day of a coordination number (Skatteverket). */
  nationalNumber({
    id: 'se_personnummer',
    description: 'Swedish personal identity number (date of birth, Luhn)',
    forms: { '8-4, 8 4': 0.9, '6-4': 0.75, '12': 0.65, '10': 0.3 },
    context: 'personnummer, samordningsnummer, personal identity, personnr, pnr, swedish, person number',
    contextScore: 0.97,
    validate(digits) {
      if (digits.length === 12 && !/^(?:18|19|20)/.test(digits)) return false
      const short = digits.slice(-10)
      return isDate(numberIn(short, 4, 6) % 60, numberIn(short, 2, 4)) && luhn(short)
    },
  }),
  /** Since 2007 the check digit does not hold for all numbers, so only the date is demanded (CPR-kontoret). */
  nationalNumber({
    id: 'dk_cpr',
    description: 'Danish personal number (CPR, date of birth)',
    forms: { '6-4': 0.6, '10, 6 4': 0.2 },
    context: 'cpr, cpr nr, cpr nummer, personnummer, danish, cprnr',
    validate: (digits) => isDate(numberIn(digits, 0, 2), numberIn(digits, 2, 4)),
  }),
  /** Two check digits modulo 11; 40 is added to the day of a D-number (Skatteetaten). */
  nationalNumber({
    id: 'no_fodselsnummer',
    description: 'Norwegian birth number (date of birth, two check digits)',
    forms: { '6 5, 6-5': 0.85, '11': 0.65 },
    context: 'fodselsnummer, fødselsnummer, personnummer, fnr, d nummer, birth number, norwegian',
    contextScore: 0.97,
    validate: (digits) =>
      isDate(numberIn(digits, 0, 2) % 40, numberIn(digits, 2, 4) % 40) &&
      weightedSum(digits, [3, 7, 6, 1, 8, 9, 4, 5, 2, 1]) % 11 === 0 &&
      weightedSum(digits, [5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]) % 11 === 0,
  }),
  /** The sign gives the century; the last character is the rest modulo 31 (Digi- ja väestötietovirasto). */
  nationalWord({
    id: 'fi_hetu',
    description: 'Finnish personal identity code (date of birth, check character)',
    baseScore: 0.95,
    first: 'digit',
    lengths: [6, 11],
    pattern: /\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y](?![A-Za-z0-9])/y,
    context: 'hetu, henkilötunnus, henkilotunnus, personbeteckning, personal identity code',
    contextScore: 0.98,
    validate: (match) =>
      isDate(numberIn(match, 0, 2), numberIn(match, 2, 4)) &&
      '0123456789ABCDEFHJKLMNPRSTUVWXY'[Number(match.slice(0, 6) + match.slice(7, 10)) % 31] === match[10],
  }),
  /** Divisible by 11; 50 is added to the month of women, and 20 or 70 since 2004. */
  nationalNumber({
    id: 'cz_rodne_cislo',
    description: 'Czech and Slovak birth number (date of birth, divisible by 11)',
    forms: { '6/4': 0.75, '10': 0.25 },
    context: 'rodne cislo, rodné číslo, birth number, rc',
    validate: (digits) =>
      remainder(digits, 11) === 0 && isDate(numberIn(digits, 4, 6), (numberIn(digits, 2, 4) % 50) % 20),
  }),
  nationalNumber({
    id: 'ro_cnp',
    description: 'Romanian personal numeric code (date of birth, check digit)',
    forms: { '13': 0.65 },
    context: 'cnp, cod numeric personal',
    contextScore: 0.96,
    validate: (digits) =>
      /^[1-9]/.test(digits) &&
      isDate(numberIn(digits, 5, 7), numberIn(digits, 3, 5)) &&
      (weightedSum(digits, [2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11) % 10 === Number(digits[12]),
  }),
  /** The tenth and eleventh digits are made from those before. */
  nationalNumber({
    id: 'tr_identity_number',
    description: 'Turkish identity number (two check digits)',
    forms: { '11': 0.55 },
    context: 'tc kimlik, kimlik, kimlik no, tckn, t c kimlik no, turkish id, tc',
    contextScore: 0.96,
    validate(digits) {
      const odd = weightedSum(digits, [1, 0, 1, 0, 1, 0, 1, 0, 1])
      const even = weightedSum(digits, [0, 1, 0, 1, 0, 1, 0, 1])
      const tenth = (((odd * 7 - even) % 10) + 10) % 10
      const eleventh = (odd + even + tenth) % 10
      return digits[0] !== '0' && tenth === Number(digits[9]) && eleventh === Number(digits[10])
    },
  }),
  /** Sum of digits times 9 to 1, modulo 101. */
  nationalNumber({
    id: 'ru_snils',
    description: 'Russian insurance account number (SNILS, control number)',
    forms: { '3-3-3 2, 3-3-3-2': 0.9, '11': 0.4 },
    context: 'снилс, snils, страховой номер',
    contextScore: 0.97,
    validate: (digits) =>
      !isUniform(digits) &&
      (weightedSum(digits, [9, 8, 7, 6, 5, 4, 3, 2, 1]) % 101) % 100 === numberIn(digits, 9, 11),
  }),
  /** Date of birth, citizenship 0 or 1, Luhn. */
  nationalNumber({
    id: 'za_id',
    description: 'South African identity number (date of birth, Luhn)',
    forms: { '6 4 3, 6 4 2 1, 6-4-3': 0.75, '13': 0.65 },
    context: 'id number, identity number, rsa id, south african, sa id, id no, identiteitsnommer',
    contextScore: 0.96,
    validate: (digits) =>
      isDate(numberIn(digits, 4, 6), numberIn(digits, 2, 4)) &&
      /^[012]$/.test(digits.charAt(10)) &&
      luhn(digits),
  }),
]
