import { luhnDigit, mod11And10Digit, remainder, weightedSum } from './check-digits.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { Names, SensitiveValue, ValueMaker, ValueMakers } from './values.ts'

/** National and tax ids of Europe, as the offices that issue them describe them. */

/** Tries until a value fits: some numbers have no check digit and are never issued. */
export function untilFits(attempt: () => string | null): string {
  for (let count = 0; count < 1_000; count++) {
    const text = attempt()
    if (text !== null) return text
  }
  throw new Error('no value fits')
}

/** A maker of ids of one country. `strong` ids are identified by their own form. */
export const nationalId =
  (
    kind: string,
    names: Names,
    keys: readonly string[],
    write: (random: SeededRandom) => string,
    form: 'strong' | 'weak' = 'weak',
  ): ValueMaker =>
  (random): SensitiveValue => ({
    type: 'national_id',
    kind,
    text: write(random),
    names,
    keys,
    needsName: form === 'weak',
  })

export interface Birth {
  year: string
  month: string
  day: string
}

export function birth(random: SeededRandom, from = 1940, to = 1999): Birth {
  return {
    year: String(random.integer(from, to)),
    month: random.padded(1, 12, 2),
    day: random.padded(1, 28, 2),
  }
}

const shortYear = ({ year }: Birth): string => year.slice(2)

const NIF_LETTERS = 'TRWAGMYFPDXBNJZSQVHLCKE'

export const EUROPEAN_IDS: ValueMakers = {
  gb_nhs: nationalId('gb_nhs', { en: ['NHS number', 'NHS no.'] }, ['nhs_number'], (random) => {
    const digits = untilFits(() => {
      const head = random.fill('[4567]########')
      const check = (11 - (weightedSum(head, [10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11)) % 11
      return check === 10 ? null : head + String(check)
    })
    return random.chance(0.6) ? digits.replace(/(...)(...)(....)/, '$1 $2 $3') : digits
  }),
  gb_nino: nationalId(
    'gb_nino',
    { en: ['National Insurance number', 'NI number', 'NINO'] },
    ['national_insurance', 'nino'],
    (random) => {
      const head = random.pick([
        'AB',
        'CE',
        'EH',
        'GK',
        'HR',
        'JC',
        'LB',
        'NA',
        'PX',
        'RW',
        'SK',
        'WM',
        'YZ',
        'TN',
      ])
      const separator = random.pick(['', ' '])
      return [
        head,
        random.digits(2),
        random.digits(2),
        random.digits(2),
        random.pick(['A', 'B', 'C', 'D']),
      ].join(separator)
    },
    'strong',
  ),
  de_tax_id: nationalId(
    'de_tax_id',
    { en: ['German tax id', 'Steuer-ID'], de: ['Steuer-ID', 'Steueridentifikationsnummer', 'IdNr.'] },
    ['steuer_id', 'tax_id'],
    (random) => {
      const head = untilFits(() => {
        const digits = [...'0123456789'].map((digit) => ({ digit, order: random.fraction() }))
        const order = digits.sort((left, right) => left.order - right.order).map(({ digit }) => digit)
        // Among the first ten digits, one occurs twice, one never and the others once; the first is not zero.
        const [from, to] = [random.integer(0, 9), random.integer(0, 9)]
        if (Math.abs(from - to) < 2) return null
        order[to] = order[from] ?? '0'
        return order[0] === '0' ? null : order.join('')
      })
      const digits = head + mod11And10Digit(head)
      return random.chance(0.5) ? digits.replace(/(..)(...)(...)(...)/, '$1 $2 $3 $4') : digits
    },
  ),
  fr_nir: nationalId(
    'fr_nir',
    { en: ['French social security number', 'NIR'], fr: ['numéro de sécurité sociale', 'NIR', 'n° sécu'] },
    ['nir', 'numero_securite_sociale'],
    (random) => {
      const born = birth(random)
      const head = `${random.pick(['1', '2'])}${shortYear(born)}${born.month}${random.padded(1, 95, 2)}${random.padded(1, 990, 3)}${random.padded(1, 999, 3)}`
      const digits = head + String(97 - remainder(head, 97)).padStart(2, '0')
      return random.chance(0.6)
        ? digits.replace(/(.)(..)(..)(..)(...)(...)(..)/, '$1 $2 $3 $4 $5 $6 $7')
        : digits
    },
  ),
  it_codice_fiscale: nationalId(
    'it_codice_fiscale',
    { en: ['codice fiscale', 'Italian tax code'], it: ['codice fiscale', 'C.F.'] },
    ['codice_fiscale'],
    codiceFiscale,
    'strong',
  ),
  es_dni: nationalId(
    'es_dni',
    { en: ['DNI', 'Spanish id'], es: ['DNI', 'NIF', 'documento de identidad'] },
    ['dni', 'nif'],
    (random) => {
      const digits = random.digits(8)
      return digits + random.pick(['', '', '-']) + NIF_LETTERS.charAt(Number(digits) % 23)
    },
  ),
  es_nie: nationalId(
    'es_nie',
    { en: ['NIE', 'foreigner id'], es: ['NIE', 'número de extranjero'] },
    ['nie'],
    (random) => {
      const [kind, digits] = [random.integer(0, 2), random.digits(7)]
      return `${'XYZ'.charAt(kind)}${digits}${NIF_LETTERS.charAt(Number(`${kind}${digits}`) % 23)}`
    },
  ),
  pt_nif: nationalId(
    'pt_nif',
    { en: ['NIF', 'Portuguese tax number'], pt: ['NIF', 'contribuinte', 'número de contribuinte'] },
    ['nif', 'contribuinte'],
    (random) => {
      const head = random.fill('[123]#######')
      const left = 11 - (weightedSum(head, [9, 8, 7, 6, 5, 4, 3, 2]) % 11)
      return head + String(left > 9 ? 0 : left)
    },
  ),
  nl_bsn: nationalId(
    'nl_bsn',
    { en: ['BSN', 'Dutch citizen number'], nl: ['BSN', 'burgerservicenummer'] },
    ['bsn', 'burgerservicenummer'],
    (random) =>
      untilFits(() => {
        const head = random.fill('[123456789]#######')
        const check = weightedSum(head, [9, 8, 7, 6, 5, 4, 3, 2]) % 11
        return check === 10 ? null : head + String(check)
      }),
  ),
  be_national_number: nationalId(
    'be_national_number',
    {
      en: ['Belgian national number', 'national register number'],
      nl: ['rijksregisternummer'],
      fr: ['numéro national', 'registre national'],
    },
    ['national_register_number', 'rijksregisternummer'],
    (random) => {
      const born = birth(random)
      const head = `${shortYear(born)}${born.month}${born.day}${random.padded(1, 997, 3)}`
      const digits = head + String(97 - remainder(head, 97)).padStart(2, '0')
      return random.chance(0.6) ? digits.replace(/(..)(..)(..)(...)(..)/, '$1.$2.$3-$4.$5') : digits
    },
  ),
  pl_pesel: nationalId('pl_pesel', { en: ['PESEL'], pl: ['PESEL', 'numer PESEL'] }, ['pesel'], (random) => {
    const born = birth(random)
    const head = `${shortYear(born)}${born.month}${born.day}${random.digits(4)}`
    return head + String((10 - (weightedSum(head, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10)) % 10)
  }),
  se_personnummer: nationalId(
    'se_personnummer',
    { en: ['personnummer', 'Swedish personal number'] },
    ['personnummer'],
    (random) => {
      const born = birth(random)
      const head = `${shortYear(born)}${born.month}${born.day}${random.digits(3)}`
      const tail = head.slice(6) + luhnDigit(head)
      return `${random.chance(0.5) ? born.year.slice(0, 2) : ''}${head.slice(0, 6)}-${tail}`
    },
  ),
  no_fodselsnummer: nationalId(
    'no_fodselsnummer',
    { en: ['fødselsnummer', 'Norwegian birth number'] },
    ['fodselsnummer'],
    (random) =>
      untilFits(() => {
        const born = birth(random)
        const head = `${born.day}${born.month}${shortYear(born)}${random.padded(0, 499, 3)}`
        const first = (11 - (weightedSum(head, [3, 7, 6, 1, 8, 9, 4, 5, 2]) % 11)) % 11
        const second = (11 - (weightedSum(`${head}${first}`, [5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11)) % 11
        return first === 10 || second === 10 ? null : `${head}${first}${second}`
      }),
  ),
  fi_hetu: nationalId(
    'fi_hetu',
    { en: ['henkilötunnus', 'Finnish personal identity code'] },
    ['hetu', 'henkilotunnus'],
    (random) => {
      const born = birth(random)
      const digits = `${born.day}${born.month}${shortYear(born)}`
      const serial = random.padded(2, 899, 3)
      return `${digits}-${serial}${'0123456789ABCDEFHJKLMNPRSTUVWXY'.charAt(Number(digits + serial) % 31)}`
    },
    'strong',
  ),
  dk_cpr: nationalId('dk_cpr', { en: ['CPR number', 'CPR-nummer'] }, ['cpr'], (random) => {
    const born = birth(random, 1940, 1999)
    return `${born.day}${born.month}${shortYear(born)}-${random.fill('[0123]###')}`
  }),
  ch_ahv: nationalId(
    'ch_ahv',
    { en: ['AHV number', 'Swiss social security number'], de: ['AHV-Nummer', 'AHV-Nr.'], fr: ['numéro AVS'] },
    ['ahv', 'ahv_number'],
    (random) => {
      const head = `756${random.digits(9)}`
      const sum = weightedSum(head, [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3])
      const digits = head + String((10 - (sum % 10)) % 10)
      return random.chance(0.8) ? digits.replace(/(...)(....)(....)(..)/, '$1.$2.$3.$4') : digits
    },
    'strong',
  ),
  at_svnr: nationalId(
    'at_svnr',
    { en: ['Austrian social insurance number'], de: ['Sozialversicherungsnummer', 'SVNR'] },
    ['svnr'],
    (random) =>
      untilFits(() => {
        const [serial, born] = [random.fill('%##'), birth(random)]
        const date = `${born.day}${born.month}${shortYear(born)}`
        const check = (weightedSum(serial, [3, 7, 9]) + weightedSum(date, [5, 8, 4, 2, 1, 6])) % 11
        return check === 10 ? null : `${serial}${check}${random.pick(['', ' '])}${date}`
      }),
  ),
  ie_pps: nationalId('ie_pps', { en: ['PPS number', 'PPSN'] }, ['ppsn', 'pps_number'], (random) => {
    const digits = random.digits(7)
    const letter = 'WABCDEFGHIJKLMNOPQRSTUV'.charAt(weightedSum(digits, [8, 7, 6, 5, 4, 3, 2]) % 23)
    return digits + letter
  }),
  ro_cnp: nationalId('ro_cnp', { en: ['CNP', 'Romanian personal code'] }, ['cnp'], (random) => {
    const born = birth(random)
    const head = `${random.pick(['1', '2'])}${shortYear(born)}${born.month}${born.day}${random.padded(1, 46, 2)}${random.padded(1, 999, 3)}`
    const check = weightedSum(head, [2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11
    return head + String(check === 10 ? 1 : check)
  }),
  cz_rodne_cislo: nationalId(
    'cz_rodne_cislo',
    { en: ['rodné číslo', 'Czech birth number'] },
    ['rodne_cislo'],
    (random) =>
      untilFits(() => {
        const born = birth(random, 1954, 1999)
        const month = random.chance(0.5) ? born.month : String(Number(born.month) + 50)
        const digits = `${shortYear(born)}${month}${born.day}${random.digits(4)}`
        return remainder(digits, 11) === 0 ? `${digits.slice(0, 6)}/${digits.slice(6)}` : null
      }),
  ),
  ru_snils: nationalId('ru_snils', { en: ['SNILS', 'СНИЛС'] }, ['snils'], (random) => {
    const head = random.padded(2_000_000, 999_999_999, 9)
    const sum = weightedSum(head, [9, 8, 7, 6, 5, 4, 3, 2, 1]) % 101
    return `${head.replace(/(...)(...)(...)/, '$1-$2-$3')} ${String(sum === 100 ? 0 : sum).padStart(2, '0')}`
  }),
  tr_kimlik: nationalId(
    'tr_kimlik',
    { en: ['TC kimlik no', 'TC Kimlik', 'Turkish id number'] },
    ['tc_kimlik_no', 'tckn'],
    (random) => {
      const head = random.fill('%########')
      const odd = weightedSum(head, [1, 0, 1, 0, 1, 0, 1, 0, 1])
      const even = weightedSum(head, [0, 1, 0, 1, 0, 1, 0, 1, 0])
      const tenth = (((odd * 7 - even) % 10) + 10) % 10
      return `${head}${tenth}${(odd + even + tenth) % 10}`
    },
  ),
}

function codiceFiscale(random: SeededRandom): string {
  const born = birth(random)
  const letters = random.characters('BCDFGLMNPRSTVZ', 6)
  const month = 'ABCDEHLMPRST'.charAt(Number(born.month) - 1)
  const day = String(Number(born.day) + (random.chance(0.5) ? 40 : 0)).padStart(2, '0')
  const head = `${letters}${shortYear(born)}${month}${day}${random.pick(['A', 'D', 'F', 'G', 'H', 'L', 'Z'])}${random.padded(1, 999, 3)}`
  // Ministerial decree of 23 December 1976: letters and digits at odd places have values out of order.
  const odd = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]
  const rank = (character: string): number =>
    /\d/.test(character) ? Number(character) : character.charCodeAt(0) - 65
  const sum = [...head].reduce(
    (total, character, index) => total + (index % 2 === 0 ? (odd[rank(character)] ?? 0) : rank(character)),
    0,
  )
  return head + String.fromCharCode(65 + (sum % 26))
}
