import type { Slices } from '../../lib/slices.ts'
import {
  CharacterSet,
  classAt,
  gluedNameStart,
  isAlphanumericAt,
  isDigitAt,
  MACHINE_READABLE,
} from '../detectors/characters.ts'
import { openMatch } from '../detectors/custom/patterns.ts'
import { CARD, IBAN, readIban, startsIban } from '../detectors/financial.ts'
import { MACHINE_READABLE_ZONE } from '../detectors/government/passports.ts'
import { authorityEnd, IPV6_CHARACTERS, ipv6Start, URL_CREDENTIALS, urlStart } from '../detectors/network.ts'
import { announcesPhone, OPEN_EXTENSION, PHONE } from '../detectors/phone.ts'
import { BLOCK_START, PRIVATE_KEY, readPrivateKey } from '../detectors/private-keys.ts'
import { hintsAtSecret, SECRET } from '../detectors/secrets.ts'
import { openLines } from '../scan/nested.ts'
import { isOpenShape, readSpacedDigits } from '../scan/number-shapes.ts'
import type { Plan } from '../scan/plan.ts'

/**
 * The first unit of a reading from which more text could make a match. Each rule is the counterpart of a detector: the
 * incomplete forms that it could complete.
 */
export function* holdBackStart(text: string, plan: Plan): Slices<number> {
  let open = text.length
  const lower = (index: number): void => {
    if (index < open) open = index
  }
  if (plan.builtIn) {
    lower(yield* openRun(text))
    lower(yield* openLines(text))
    lower(openNumbers(text, plan))
    if (plan.minimum.has(PHONE.id)) lower(Math.min(openPhone(text, text.length), openExtension(text)))
    if (plan.minimum.has(IBAN.id)) lower(openIban(text))
    if (plan.minimum.has(PRIVATE_KEY.id)) lower(yield* openBlock(text))
    if (plan.minimum.has(MACHINE_READABLE_ZONE.id)) lower(openMachineReadable(text))
    if (plan.minimum.has(URL_CREDENTIALS.id)) lower(openUrl(text))
    if (plan.minimum.has(SECRET.id)) lower(openQuoted(text))
    const tail = text.slice(-LONGEST_WORD_FORM)
    for (const pattern of plan.openWords) {
      const match = pattern.exec(tail)
      if (match !== null) lower(text.length - tail.length + match.index)
    }
  }
  for (const custom of plan.custom) {
    if (custom.kind === 'dictionary') lower(yield* custom.dictionary.openFrom(text))
    else lower(openMatch(custom.pattern, text))
  }
  return open
}

const LONGEST_WORD_FORM = 40
const SLICE_UNITS = 64 * 1024

/** The last run without blanks, quotes or brackets: addresses, keys, names, encoded texts. */
function* openRun(text: string): Slices<number> {
  let start = text.length
  while (start > 0 && (classAt(text, start - 1) !== 0 || joinsLetters(text, start - 1))) {
    start--
    if ((text.length - start) % SLICE_UNITS === 0) yield
  }
  return yield* openPart(text, start)
}

/**
 * The part of a run before its last `:` or `=` can be released, as in a time or a parameter. It is held if the run is a
 * URL or an address of numbers, or mentions a secret.
 */
function* openPart(text: string, start: number): Slices<number> {
  const sign = yield* lastSign(text, start)
  if (sign <= start || sign + 1 - start > LONGEST_PART || /[/=:]/.test(text.charAt(sign + 1))) return start
  const part = text.slice(start, sign + 1).toLowerCase()
  if (part.includes('://') || /(?:^|\D)\d{8,10}:$/.test(part)) return start
  const before = text.slice(Math.max(0, start - 100), start).toLowerCase()
  if (hintsAtSecret(part) || hintsAtSecret(before)) return start
  const run = IPV6_CHARACTERS.runStart(text, sign, start)
  const address = ipv6Start(text, run)
  if (address > run && address <= sign) return address
  return address === start || !/[A-Za-z0-9_]/.test(text.charAt(address - 1)) ? address : sign + 1
}

/** The last `:` or `=` from `start` on, before the last unit; `start` if there is none. */
function* lastSign(text: string, start: number): Slices<number> {
  let sign = text.length - 2
  while (sign > start && text[sign] !== ':' && text[sign] !== '=') {
    sign--
    if ((text.length - sign) % SLICE_UNITS === 0) yield
  }
  return sign
}

/** Parts up to this length fit into the context that a stream keeps. */
const LONGEST_PART = 100

/** An apostrophe is part of an address only between letters, and more may follow one at the end. */
function joinsLetters(text: string, index: number): boolean {
  return text[index] === "'" && isAlphanumericAt(text, index - 1)
}

/** A number, the groups beside it that show whether it is cut out of a row, and what ends them. */
const LONGEST_NUMBER = 100

/** Groups of digits at the end from which a form can still be completed. */
function openNumbers(text: string, plan: Plan): number {
  const from = Math.max(0, text.length - LONGEST_NUMBER)
  for (let start = from; start < text.length; start++) {
    if (!isDigitAt(text, start) || !startsDigits(text, start)) continue
    if (plan.numbers !== null && isOpenShape(plan.numbers, text, start)) return start
    if (readSpacedDigits(text, start)?.open && plan.minimum.has(CARD)) return start
  }
  return text.length
}

/** Whether a number can start at a digit: with a word, or after the letters of its name in the same word. */
const startsDigits = (text: string, start: number): boolean =>
  !isAlphanumericAt(text, start - 1) || gluedNameStart(text, start) >= 0

const PHONE_CHARACTERS = new CharacterSet('0123456789 \t.-_/()+')
/** Units of a phone number after a word or `+`, and of one that its form alone identifies. */
const LONGEST_PHONE = 36
const LONGEST_FORM = 20
const MOST_SEPARATORS = 3

/** The first unit before `end` from which only what phone numbers are written in follows up to there. */
function phoneRunStart(text: string, end: number): number {
  let start = end
  let separators = 0
  while (start > 0 && end - start < LONGEST_PHONE && PHONE_CHARACTERS.hasAt(text, start - 1)) {
    start--
    if (isDigitAt(text, start)) separators = 0
    else if (text[start] !== '(' && text[start] !== '+' && ++separators > MOST_SEPARATORS) break
  }
  return start
}

function openPhone(text: string, end: number): number {
  for (let start = phoneRunStart(text, end); start < end; start++) {
    if (!/[0-9(+]/.test(text.charAt(start)) || !startsPhone(text, start)) continue
    if (end - start <= LONGEST_FORM || text[start] === '+' || text.startsWith('00', start)) return start
    const before = text.slice(Math.max(0, start - 100), start).toLowerCase()
    if (announcesPhone(before)) return start
  }
  return end
}

/** Whether a phone number can start at a digit, `(` or `+`. */
const startsPhone = (text: string, start: number): boolean =>
  isDigitAt(text, start) ? startsDigits(text, start) : !isDigitAt(text, start - 1)

function openExtension(text: string): number {
  const tail = text.slice(-64)
  const match = OPEN_EXTENSION.exec(tail)
  if (match === null || match[0].length < 3) return text.length
  const end = text.length - tail.length + match.index + 1
  const start = openPhone(text, end)
  return text.slice(start, end).replace(/\D/g, '').length >= 7 ? start : text.length
}

const LONGEST_SPACED_IBAN = 136

function openIban(text: string): number {
  const from = Math.max(0, text.length - LONGEST_SPACED_IBAN)
  for (let start = from; start < text.length; start++) {
    if (!startsIban(text, start)) continue
    if (readIban(text, start) === 'open') return start
  }
  return text.length
}

function* openBlock(text: string): Slices<number> {
  for (let end = text.length; end > 0; end -= SLICE_UNITS) {
    const from = Math.max(0, end - SLICE_UNITS)
    const found = text.slice(from, end + BLOCK_START.length - 1).lastIndexOf(BLOCK_START)
    if (found >= 0) {
      const block = yield* readPrivateKey(text, from + found)
      return block?.open ? from + found : text.length
    }
    if (from > 0) yield
  }
  return text.length
}

/** A line, and the bracket of a tag that may follow it. */
const LONGEST_LINE = 46

function openMachineReadable(text: string): number {
  const start = MACHINE_READABLE.runStart(text, text.length, Math.max(0, text.length - LONGEST_LINE - 1))
  const run = text.slice(start)
  return run.length <= LONGEST_LINE && run.includes('<') && !isAlphanumericAt(text, start - 1)
    ? start
    : text.length
}

const LONGEST_OPEN_URL = 500

function openUrl(text: string): number {
  const from = Math.max(0, text.length - LONGEST_OPEN_URL)
  const colon = from + text.slice(from).lastIndexOf('://')
  if (colon < from || authorityEnd(text, colon + 3) < text.length) return text.length
  const start = urlStart(text, colon)
  return start < 0 ? text.length : start
}

const LONGEST_QUOTED = 200

/** A quoted value without blanks after `=` or `:` that has not been closed. */
function openQuoted(text: string): number {
  const tail = text.slice(-LONGEST_QUOTED)
  for (const quote of ['"', "'", '`']) {
    const found = tail.lastIndexOf(quote)
    const opening = text.length - tail.length + found
    if (found < 0 || /\s/.test(text.slice(opening))) continue
    if (
      /[:=>*][ \t]{0,3}(?:(?:bearer|token|basic|apikey) )?$/i.test(
        text.slice(Math.max(0, opening - 16), opening),
      )
    )
      return opening
  }
  return text.length
}
