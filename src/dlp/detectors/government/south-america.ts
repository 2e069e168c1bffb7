import { isUniform, weightedSum } from '../checksums.ts'
import type { WordDetector } from '../detector.ts'
import { type NationalDetector, nationalNumber, nationalWord } from './national.ts'

/** Brazil's two check digits: weights from 2 up, from the right, modulo 11. */
function brazilianCheckDigits(characters: string, highestWeight: number): boolean {
  const length = characters.length - 2
  for (let checked = length; checked < length + 2; checked++) {
    let sum = 0
    for (let index = 0; index < checked; index++) {
      const weight = 2 + ((checked - 1 - index) % (highestWeight - 1))
      sum += (characters.charCodeAt(index) - 48) * weight
    }
    const digit = sum % 11 < 2 ? 0 : 11 - (sum % 11)
    if (digit !== characters.charCodeAt(checked) - 48) return false
  }
  return true
}

const CNPJ = {
  id: 'br_cnpj',
  description: 'Brazilian registry number of a company (CNPJ, also with letters; two check digits)',
  baseScore: 0.95,
  context: 'cnpj, cadastro nacional, empresa',
  contextScore: 0.98,
} as const

/** Since 2026 the first twelve places may be letters, counted as their ASCII code less 48. */
const brazilianCompanyWithLetters = (first: WordDetector['first']): WordDetector =>
  nationalWord({
    ...CNPJ,
    first,
    lengths: [2],
    pattern: /[0-9A-Z]{2}\.[0-9A-Z]{3}\.[0-9A-Z]{3}\/[0-9A-Z]{4}-\d{2}(?![A-Za-z0-9])/y,
    validate: (code) => /[A-Z]/.test(code) && brazilianCheckDigits(code.replace(/[./-]/g, ''), 9),
  })

/** Check digit 0-9 or K: weights 2 to 7 from the right, modulo 11. */
function chileanCheck(code: string): boolean {
  const compact = code.replace(/[.-]/g, '').toUpperCase()
  let sum = 0
  for (let index = 0; index < compact.length - 1; index++) {
    sum += Number(compact[compact.length - 2 - index]) * (2 + (index % 6))
  }
  return '0K987654321'[sum % 11] === compact.at(-1)
}

const CHILEAN = {
  id: 'cl_rut',
  description: 'Chilean tax number (RUT, modulo 11)',
  baseScore: 0.85,
  context: 'rut, run, rol unico',
} as const

export const SOUTH_AMERICA: readonly NationalDetector[] = [
  nationalNumber({
    id: 'br_cpf',
    description: 'Brazilian taxpayer registry number of a person (CPF, two check digits)',
    forms: { '3.3.3-2': 0.95, '3 3 3 2, 3.3.3.2, 9-2, 3-3-3-2': 0.8, '11': 0.5 },
    context: 'cpf, cadastro de pessoas, contribuinte, receita federal',
    contextScore: 0.98,
    validate: (digits) => !isUniform(digits) && brazilianCheckDigits(digits, 12),
  }),
  nationalNumber({
    ...CNPJ,
    forms: { '2.3.3/4-2': 0.95, '14': 0.6 },
    validate: (digits) => !isUniform(digits) && brazilianCheckDigits(digits, 9),
  }),
  nationalNumber({
    ...CHILEAN,
    forms: { '2.3.3-1, 1.3.3-1': 0.85, '8-1, 7-1': 0.45 },
    validate: chileanCheck,
  }),
  brazilianCompanyWithLetters('letter'),
  brazilianCompanyWithLetters('digit'),
  nationalWord({
    ...CHILEAN,
    first: 'digit',
    lengths: [1, 2, 7, 8],
    pattern: /\d{1,2}\.?\d{3}\.?\d{3}-[kK](?![A-Za-z0-9])/y,
    validate: chileanCheck,
  }),
  nationalNumber({
    id: 'ar_cuit',
    description: 'Argentine tax number (CUIT and CUIL, modulo 11)',
    forms: { '2-8-1': 0.75, '11': 0.3 },
    context: 'cuit, cuil',
    validate: (digits) =>
      /^(?:2[03-7]|3[034])/.test(digits) && weightedSum(digits, [5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]) % 11 === 0,
  }),
]
