import type { CustomDetector } from '../../src/dlp/types.ts'

/** Texts made to keep a matcher busy: long runs of almost, beginnings without end, deep nesting. By length in units. */
export interface AdversarialText {
  name: string
  write: (units: number) => string
  custom?: CustomDetector
}

const repeated = (name: string, unit: string, end = ''): AdversarialText => ({
  name,
  write: (units) => unit.repeat(Math.ceil(units / unit.length)).slice(0, units) + end,
})

const customPattern = (name: string, pattern: string, unit: string): AdversarialText => ({
  ...repeated(name, unit, '!'),
  custom: { id: 'custom-pattern', kind: 'pattern', pattern, score: 1 },
})

function nestedJson(units: number): string {
  let text = '4111 1111 1111 1112'
  while (text.length < units) text = JSON.stringify({ a: text })
  return text.slice(0, units)
}

function nestedBase64(units: number): string {
  let text = 'card 4111 1111 1111 1112 '
  while (text.length < units) text = Buffer.from(text).toString('base64')
  return text.slice(0, units)
}

export const ADVERSARIAL_TEXTS: readonly AdversarialText[] = [
  repeated('digits', '4111111111111112'),
  repeated('digits of one kind', '0'),
  repeated('digits and spaces', '4111 1111 1111 1112 '),
  repeated('digits and hyphens', '1-'),
  repeated('digits and dots', '1.'),
  repeated('full-width digits', '４１１１'),
  repeated('plus signs and digits', '+1 212 '),
  repeated('parentheses', '((((1)'),
  repeated('letters', 'a'),
  repeated('capitals', 'DEUTDEFF'),
  repeated('capitals and digits', 'DE00XX00'),
  repeated('spaces', ' '),
  repeated('line breaks', '\n'),
  repeated('almost mail addresses', 'a@a.'),
  repeated('at signs', '@'),
  repeated('local part without end', 'a.b-c+'),
  repeated('almost domains', 'a.a-'),
  repeated('almost IPv6', '0:0:'),
  repeated('colons', ':'),
  repeated('addresses with users', 'http://a:b'),
  repeated('schemes', 'http://'),
  repeated('signed token, unfinished', 'eyJhbGci'),
  repeated('signed token, dots', 'eyJ.eyJ.'),
  repeated('private key, begun', '-----BEGIN PRIVATE KEY-----\n'),
  repeated('hyphens', '-'),
  repeated('vendor marks', 'sk-ghp_AKIAxoxb-'),
  repeated('secret names', 'password='),
  repeated('secret names, quoted', '"api_key": "'),
  repeated('base64 run', 'QUJDREVGR0hJSktMTU5P'),
  repeated('hexadecimal run', 'deadbeef01'),
  repeated('percent escapes', '%25'),
  repeated('percent signs', '%'),
  repeated('HTML entities', '&#38;'),
  repeated('HTML entities, unfinished', '&#'),
  repeated('backslashes', '\\'),
  repeated('escaped units', '\\u0034'),
  repeated('zero-width characters', '\u200b'),
  repeated('digits and zero-width characters', '4\u200b'),
  repeated('combining marks', 'e\u0301\u0301\u0301'),
  repeated('half surrogates', '\ud83d'),
  repeated('ligatures', '\ufdfa'),
  repeated('braces', '{"a":'),
  repeated('quotes', '"'),
  repeated('machine-readable filler', 'P<<'),
  repeated('host names of one label', 'http://a:b.'),
  { name: 'JSON in JSON', write: nestedJson },
  { name: 'base64 in base64', write: nestedBase64 },
  customPattern('custom (a+)+$', '(a+)+$', 'a'),
  customPattern('custom (a|aa)+$', '(a|aa)+$', 'a'),
  customPattern('custom (.*a){12}', '(.*a){12}b', 'a'),
  customPattern('custom a.{0,200}b', 'a.{0,200}b', 'a'),
]
