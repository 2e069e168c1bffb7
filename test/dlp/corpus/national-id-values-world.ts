import { luhnDigit, mod11And2Digit, verhoeffDigit, weightedSum } from './check-digits.ts'
import { birth, nationalId, untilFits } from './national-id-values-europe.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { ValueMakers } from './values.ts'

/** National and tax ids outside Europe, as the offices that issue them describe them. */

const optionally = (random: SeededRandom, digits: string, pattern: RegExp, form: string): string =>
  random.chance(0.6) ? digits.replace(pattern, form) : digits

/** Two check digits by falling weights, 11 less the remainder, 0 where that is 10 or more. */
function brazilianDigits(head: string, weights: readonly number[]): string {
  const digitOf = (digits: string): number => {
    const left = 11 - (weightedSum(digits, weights.slice(-digits.length)) % 11)
    return left > 9 ? 0 : left
  }
  const first = digitOf(head)
  return `${head}${first}${digitOf(`${head}${first}`)}`
}

export const WORLD_IDS: ValueMakers = {
  br_cpf: nationalId('br_cpf', { en: ['CPF'], pt: ['CPF', 'número do CPF'] }, ['cpf'], (random) =>
    optionally(
      random,
      brazilianDigits(random.digits(9), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]),
      /(...)(...)(...)(..)/,
      '$1.$2.$3-$4',
    ),
  ),
  br_cnpj: nationalId('br_cnpj', { en: ['CNPJ'], pt: ['CNPJ'] }, ['cnpj'], (random) =>
    optionally(
      random,
      brazilianDigits(`${random.digits(8)}0001`, [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]),
      /(..)(...)(...)(....)(..)/,
      '$1.$2.$3/$4-$5',
    ),
  ),
  ar_cuit: nationalId('ar_cuit', { en: ['CUIT', 'CUIL'], es: ['CUIT', 'CUIL'] }, ['cuit'], (random) =>
    untilFits(() => {
      const head = random.pick(['20', '23', '27', '30', '33']) + random.digits(8)
      const left = (11 - (weightedSum(head, [5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11)) % 11
      if (left === 10) return null
      return optionally(random, `${head}${left}`, /(..)(........)(.)/, '$1-$2-$3')
    }),
  ),
  cl_rut: nationalId('cl_rut', { en: ['RUT'], es: ['RUT', 'RUN'] }, ['rut'], (random) => {
    const head = String(random.integer(5_000_000, 25_000_000)).padStart(8, '0')
    const left = 11 - (weightedSum(head, [3, 2, 7, 6, 5, 4, 3, 2]) % 11)
    const check = left === 11 ? '0' : left === 10 ? 'K' : String(left)
    const digits = head.replace(/^0/, '')
    return `${random.chance(0.6) ? digits.replace(/(\d+)(...)(...)$/, '$1.$2.$3') : digits}-${check}`
  }),
  mx_curp: nationalId('mx_curp', { en: ['CURP'], es: ['CURP'] }, ['curp'], mexicanCode, 'strong'),
  ca_sin: nationalId(
    'ca_sin',
    { en: ['SIN', 'social insurance number'], fr: ['NAS', "numéro d'assurance sociale"] },
    ['sin', 'social_insurance_number'],
    (random) => {
      const head = random.fill('[1234567]#######')
      const digits = head + luhnDigit(head)
      const separator = random.pick(['', ' ', '-'])
      return digits.replace(/(...)(...)(...)/, `$1${separator}$2${separator}$3`)
    },
  ),
  au_tfn: nationalId('au_tfn', { en: ['tax file number', 'TFN'] }, ['tfn', 'tax_file_number'], (random) =>
    untilFits(() => {
      const digits = random.fill('%########')
      const valid = weightedSum(digits, [1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 === 0
      return valid ? optionally(random, digits, /(...)(...)(...)/, '$1 $2 $3') : null
    }),
  ),
  au_medicare: nationalId(
    'au_medicare',
    { en: ['Medicare number', 'Medicare card'] },
    ['medicare_number'],
    (random) => {
      const head = random.fill('[23456]#######')
      const check = weightedSum(head, [1, 3, 7, 9, 1, 3, 7, 9]) % 10
      return optionally(random, `${head}${check}${random.integer(1, 5)}`, /(....)(.....)(.)/, '$1 $2 $3')
    },
  ),
  in_aadhaar: nationalId(
    'in_aadhaar',
    { en: ['Aadhaar', 'Aadhaar number'] },
    ['aadhaar', 'aadhaar_number'],
    (random) => {
      const head = random.fill('[23456789]##########')
      return optionally(random, head + verhoeffDigit(head), /(....)(....)(....)/, '$1 $2 $3')
    },
  ),
  in_pan: nationalId(
    'in_pan',
    { en: ['PAN', 'PAN card'] },
    ['pan_number', 'permanent_account_number'],
    (random) => random.fill('@@@[PCHFATBLJG]@####@'),
  ),
  cn_resident: nationalId(
    'cn_resident',
    { en: ['resident identity number', 'Chinese id'], zh: ['身份证号', '身份证号码'] },
    ['id_card', 'resident_id'],
    (random) => {
      const born = birth(random, 1950, 2004)
      const region = random.pick(['110101', '310104', '440305', '510107', '330106', '420103', '610113'])
      const head = `${region}${born.year}${born.month}${born.day}${random.digits(3)}`
      return head + mod11And2Digit(head)
    },
    'strong',
  ),
  jp_my_number: nationalId(
    'jp_my_number',
    { en: ['My Number', 'Individual Number'], ja: ['マイナンバー', '個人番号'] },
    ['my_number', 'kojin_bango'],
    (random) => {
      const head = random.digits(11)
      const left = weightedSum(head, [6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11
      return optionally(random, head + String(left <= 1 ? 0 : 11 - left), /(....)(....)(....)/, '$1 $2 $3')
    },
  ),
  kr_rrn: nationalId(
    'kr_rrn',
    { en: ['resident registration number', 'RRN'] },
    ['rrn', 'resident_registration_number'],
    (random) => {
      const born = birth(random, 1950, 1999)
      const head = `${born.year.slice(2)}${born.month}${born.day}${random.pick(['1', '2'])}${random.padded(0, 95, 2)}${random.digits(3)}`
      const check = (11 - (weightedSum(head, [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11)) % 10
      return `${head.slice(0, 6)}-${head.slice(6)}${check}`
    },
    'strong',
  ),
  sg_nric: nationalId('sg_nric', { en: ['NRIC', 'FIN'] }, ['nric'], (random) => {
    const [series, digits] = [random.pick(['S', 'T', 'F', 'G']), random.digits(7)]
    const sum = weightedSum(digits, [2, 7, 6, 5, 4, 3, 2]) + (series === 'T' || series === 'G' ? 4 : 0)
    const letters = series === 'S' || series === 'T' ? 'JZIHGFEDCBA' : 'XWUTRQPNMLK'
    return series + digits + letters.charAt(sum % 11)
  }),
  hk_id: nationalId('hk_id', { en: ['HKID', 'Hong Kong identity card'] }, ['hkid'], (random) => {
    const [letter, digits] = [random.pick([...'ABCDEGHKMPRVYZ']), random.digits(6)]
    const sum = 36 * 9 + (letter.charCodeAt(0) - 55) * 8 + weightedSum(digits, [7, 6, 5, 4, 3, 2])
    const check = (11 - (sum % 11)) % 11
    return `${letter}${digits}(${check === 10 ? 'A' : check})`
  }),
  tw_id: nationalId(
    'tw_id',
    { en: ['Taiwan id', 'national identification card'], zh: ['身分證字號'] },
    ['tw_id'],
    (random) => {
      const letters = 'ABCDEFGHJKLMNPQRSTUVXYWZIO'
      const letter = random.pick([...letters])
      const code = letters.indexOf(letter) + 10
      const digits = random.pick(['1', '2']) + random.digits(7)
      const sum = Math.floor(code / 10) + (code % 10) * 9 + weightedSum(digits, [8, 7, 6, 5, 4, 3, 2, 1])
      return `${letter}${digits}${(10 - (sum % 10)) % 10}`
    },
  ),
  za_id: nationalId(
    'za_id',
    { en: ['South African ID number', 'ID number'] },
    ['id_number', 'sa_id'],
    (random) => {
      const born = birth(random)
      const head = `${born.year.slice(2)}${born.month}${born.day}${random.digits(4)}08`
      return head + luhnDigit(head)
    },
  ),
  il_id: nationalId('il_id', { en: ['teudat zehut', 'Israeli id number'] }, ['teudat_zehut'], (random) => {
    const head = random.padded(10_000_000, 39_999_999, 8)
    return head + luhnDigit(head)
  }),
  th_id: nationalId('th_id', { en: ['Thai national ID', 'Thai id card'] }, ['thai_id'], (random) => {
    const head = random.fill('[12345678]###########')
    const check = (11 - (weightedSum(head, [13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11)) % 10
    return optionally(random, `${head}${check}`, /(.)(....)(.....)(..)(.)/, '$1-$2-$3-$4-$5')
  }),
}

/** Clave Única de Registro de Población: letters of the names, date, sex, state, consonants, and a weighted digit. */
function mexicanCode(random: SeededRandom): string {
  const born = birth(random)
  const consonants = random.characters('BCDFGHJKLMNPQRSTVWXYZ', 3)
  const names = random.fill('[GMRLHTC][AEIOU][GMRLHTC][JMARL]')
  const state = random.pick(['DF', 'JC', 'NL', 'MC', 'VZ', 'PL', 'GT', 'YN'])
  const head = `${names}${born.year.slice(2)}${born.month}${born.day}${random.pick(['H', 'M'])}${state}${consonants}${random.digits(1)}`
  const order = '0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ'
  const sum = [...head].reduce(
    (total, character, index) => total + order.indexOf(character) * (18 - index),
    0,
  )
  return head + String((10 - (sum % 10)) % 10)
}
