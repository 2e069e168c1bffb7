import type { Label, Sample } from './corpus/labelled-text.ts'
import type { LabelType } from './corpus/values.ts'

/** Ways to spell a value so that a person or program still reads it, and a plain pattern does not. */

export interface SpellingVariant {
  name: string
  /** Types that can be spelled so and stay what they are. */
  types: readonly LabelType[]
  /** Writes a sample anew, with labels where the values now stand. */
  spell: (sample: Sample) => Sample
}

const NUMBERS: readonly LabelType[] = ['card', 'iban', 'us_ssn', 'us_itin', 'phone', 'national_id']
const TEXTS: readonly LabelType[] = [
  ...NUMBERS,
  'email',
  'ip',
  'url_credentials',
  'jwt',
  'vendor_key',
  'wallet',
]

/** Writes each unit of every value by `write`; the text around stays. */
function eachUnit(
  name: string,
  types: readonly LabelType[],
  write: (unit: string, index: number, value: string) => string,
): SpellingVariant {
  return {
    name,
    types,
    spell: (sample) =>
      rewrite(sample, (value) => [...value].map((unit, index) => write(unit, index, value)).join('')),
  }
}

function rewrite(sample: Sample, write: (value: string) => string): Sample {
  let text = ''
  let at = 0
  const labels = sample.labels.map((label): Label => {
    text += sample.text.slice(at, label.outerStart)
    const outerStart = text.length
    const outer = sample.text.slice(label.outerStart, label.outerEnd)
    text += write(outer)
    at = label.outerEnd
    // Each unit is written by itself, so what stands before the core is as long as it is when written alone.
    const start = outerStart + write(outer.slice(0, label.start - label.outerStart)).length
    const end = outerStart + write(outer.slice(0, label.end - label.outerStart)).length
    return { ...label, start, end, outerStart, outerEnd: text.length }
  })
  return { ...sample, text: text + sample.text.slice(at), labels }
}

/** Writes the whole text by `write`, unit by unit. */
function wholeText(
  name: string,
  types: readonly LabelType[],
  write: (text: string) => string,
  frame: readonly [string, string] = ['', ''],
): SpellingVariant {
  const spell = (sample: Sample): Sample => {
    const moved = (offset: number): number => frame[0].length + write(sample.text.slice(0, offset)).length
    const labels = sample.labels.map((label) => ({
      ...label,
      start: moved(label.start),
      end: moved(label.end),
      outerStart: moved(label.outerStart),
      outerEnd: moved(label.outerEnd),
    }))
    return { ...sample, text: frame[0] + write(sample.text) + frame[1], labels }
  }
  return { name, types, spell }
}

/** Puts the whole text into one encoded run, which a finding covers as a whole. */
function encodedRun(
  name: string,
  types: readonly LabelType[],
  encode: (text: string) => string,
): SpellingVariant {
  const spell = (sample: Sample): Sample => {
    const before = 'attachment: '
    const encoded = encode(sample.text)
    const place = { start: before.length, end: before.length + encoded.length }
    const labels = sample.labels.map((label) => ({
      ...label,
      ...place,
      outerStart: place.start,
      outerEnd: place.end,
    }))
    return { ...sample, text: `${before}${encoded}\n`, labels }
  }
  return { name, types, spell }
}

const isDigit = (unit: string): boolean => unit >= '0' && unit <= '9'
const isAscii = (unit: string): boolean => unit >= '!' && unit <= '~'
const shifted = (unit: string, by: number): string => String.fromCodePoint((unit.codePointAt(0) ?? 0) + by)
const escapedUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
const percent = (unit: string): string =>
  encodeURIComponent(unit) === unit
    ? `%${unit.charCodeAt(0).toString(16).toUpperCase()}`
    : encodeURIComponent(unit)
const inString = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Digits parted by something else than the usual hyphens and spaces, the value's own separators left out. */
function parted(
  name: string,
  separator: string,
  types: readonly LabelType[] = ['card', 'iban', 'us_ssn', 'us_itin'],
): SpellingVariant {
  const write = (value: string): string => {
    const bare = value.replace(/[\s-]/g, '')
    if (/^\d{9}$/.test(bare)) return [bare.slice(0, 3), bare.slice(3, 5), bare.slice(5)].join(separator)
    return bare.replace(/(.{4})(?=.)/g, `$1${separator}`)
  }
  return { name, types, spell: (sample) => rewrite(sample, write) }
}

export const SPELLING_VARIANTS: readonly SpellingVariant[] = [
  eachUnit('full-width digits', NUMBERS, (unit) => (isDigit(unit) ? shifted(unit, 0xfee0) : unit)),
  eachUnit('full-width characters', ['card', 'iban', 'email', 'ip'], (unit) =>
    isAscii(unit) ? shifted(unit, 0xfee0) : unit,
  ),
  eachUnit('mathematical digits', NUMBERS, (unit) => (isDigit(unit) ? shifted(unit, 0x1d7ce - 0x30) : unit)),
  eachUnit('zero-width space in each gap', TEXTS, (unit, index) => (index === 0 ? unit : `\u200b${unit}`)),
  eachUnit('mixed invisible characters', TEXTS, (unit, index) => {
    const invisible = ['\u200c', '\u200d', '\u2060', '\ufeff', '\u00ad'][index % 5] ?? ''
    return index % 3 === 1 ? invisible + unit : unit
  }),
  parted('no-break spaces', '\u00a0'),
  parted('dots', '.', ['card', 'us_ssn', 'us_itin']),
  parted('en dashes', '–', ['card', 'us_ssn', 'us_itin']),
  parted('double spaces', '  ', ['card', 'iban']),
  parted('line breaks', '\n', ['card', 'iban']),
  parted('tabs', '\t', ['card', 'iban']),
  parted('underscores', '_'),
  eachUnit('a space in each gap', ['card', 'iban'], (unit, index) =>
    index === 0 || unit === ' ' || unit === '-' ? unit : ` ${unit}`,
  ),
  eachUnit('percent-encoded marks', ['email', 'ip', 'url_credentials', 'phone', 'iban', 'card'], (unit) =>
    /[A-Za-z0-9]/.test(unit) ? unit : encodeURIComponent(unit),
  ),
  eachUnit('percent-encoded all', TEXTS, percent),
  eachUnit('HTML decimal entities', TEXTS, (unit) => `&#${unit.codePointAt(0)};`),
  eachUnit('HTML hexadecimal entities', TEXTS, (unit) => `&#x${(unit.codePointAt(0) ?? 0).toString(16)};`),
  eachUnit('HTML entity of the mark', ['email'], (unit) => (unit === '@' ? '&commat;' : unit)),
  eachUnit('JSON escapes', TEXTS, escapedUnit),
  wholeText('JSON in a string', TEXTS, inString, ['{"body":"', '"}']),
  wholeText('JSON in a string, twice', TEXTS, (text) => inString(inString(text)), [
    '{"a":"{\\"b\\":\\"',
    '\\"}"}',
  ]),
  encodedRun('base64', TEXTS, (text) => Buffer.from(text).toString('base64')),
  encodedRun('base64url', TEXTS, (text) => Buffer.from(text).toString('base64url')),
  encodedRun('base64 in lines', TEXTS, (text) =>
    Buffer.from(text)
      .toString('base64')
      .replace(/(.{76})(?=.)/g, '$1\n'),
  ),
  encodedRun('base64, twice', TEXTS, (text) =>
    Buffer.from(Buffer.from(text).toString('base64')).toString('base64'),
  ),
]
