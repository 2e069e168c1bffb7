import type { Slices } from '../../lib/slices.ts'
import {
  CharacterSet, classAt, DASH, DIGIT, DOT, indexWithin, isAlphanumericAt, LOWER_LETTER, UPPER_LETTER,
} from '../detectors/characters.ts' // biome-ignore format: a list
import type { KeyForm } from '../detectors/detector.ts'
import {
  DOMAIN, hostRunEnd, IP_ADDRESS, IPV6_CHARACTERS, LONGEST_DOMAIN, readDomain, readIpv6, readUrlCredentials, URL_CREDENTIALS,
} from '../detectors/network.ts' // biome-ignore format: a list
import {
  hintsAtSecret, isRandom, JSON_WEB_TOKEN, LONGEST_HINT, LONGEST_SECRET, namesNoSecret, namingApart, namingInSentence, namingOf, namingOfColumn, readJsonWebToken, SECRET, SECRET_CONTEXT, scoreAssigned,
} from '../detectors/secrets.ts' // biome-ignore format: a list
import { readSpecialKey } from '../detectors/special-keys.ts'
import { pairAt } from './plan.ts'
import { reportMatch, type Scan } from './scan.ts'

const NAME_CHARACTERS = new CharacterSet('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.')
const LONGEST_NAME = 48
const LONGEST_QUOTED = 200

/** URLs with passwords, and IPv6 addresses. @returns where it stopped. */
export function scanColons(scan: Scan, from: number, _end: number, limit: number): number {
  const { text } = scan
  let last = from - 1
  for (;;) {
    let colon = indexWithin(text, ':', last + 1, limit)
    if (colon < 0) return Math.max(limit, last + 1)
    if (text.startsWith('//', colon + 1)) {
      scan.budget.pace(ADDRESS_STEPS)
      const found = scan.covers(URL_CREDENTIALS.id) ? readUrlCredentials(text, colon) : null
      reportMatch(scan, URL_CREDENTIALS, found)
      if (found !== null) colon = Math.max(colon, found.end - 1)
    } else if (colon >= scan.addressesEnd && scan.covers(IP_ADDRESS.id)) {
      const first = IPV6_CHARACTERS.runStart(text, colon, Math.max(scan.addressesEnd, colon - 5))
      scan.addressesEnd = IPV6_CHARACTERS.runEnd(text, colon, colon + 60)
      if (scan.addressesEnd - first >= 3) reportMatch(scan, IP_ADDRESS, readIpv6(text, first))
    }
    last = colon
  }
}

/** Steps of reading an address with its authority. */
const ADDRESS_STEPS = 512

/** Domain names. @returns where it stopped. */
export function scanNames(scan: Scan, from: number, end: number, limit: number): number {
  if (!scan.covers(DOMAIN.id)) return end
  const { text } = scan
  let index = from
  while (index < limit) {
    if (scan.isInLongName) {
      index = hostRunEnd(text, index, limit)
      scan.isInLongName = index === limit && index < end
      continue
    }
    // No name begins with a dot or a dash.
    const stop =
      (classAt(text, index) & (DOT | DASH)) === 0
        ? hostRunEnd(text, index, Math.min(end, index + LONGEST_DOMAIN + 1))
        : index
    if (stop === index) index++
    else if (stop - index > LONGEST_DOMAIN) {
      scan.isInLongName = true
      index = stop
    } else {
      if (text.slice(index, stop).includes('.')) {
        scan.budget.pace(NAME_STEPS)
        reportMatch(scan, DOMAIN, readDomain(text, index, stop))
      }
      index = stop
    }
  }
  return index
}

/** Steps of reading a name, beside its units. */
const NAME_STEPS = 64

/** Keys with a fixed beginning, and tokens of a form of their own, where a run of letters and digits starts. */
export function scanKeys(scan: Scan, start: number, runEnd: number): void {
  const { text, plan } = scan
  for (const { id, score, form } of plan.keys.get(pairAt(text, start)) ?? []) {
    if (!text.startsWith(form.prefix, start)) continue
    const bodyStart = start + form.prefix.length
    const end = bodyEnd(text, bodyStart, form)
    if (end < 0) continue
    const body = text.slice(bodyStart, end)
    if (isMonotonous(body) || form.validate?.(body) === false) continue
    scan.report(id, start, end, score)
  }
  if (text.startsWith('eyJ', start) && scan.covers(JSON_WEB_TOKEN.id)) scan.signedTokens.push(start)
  if (!plan.specialKeys) return
  const special = readSpecialKey(text, start, runEnd, scan.surroundings)
  if (special !== null) reportMatch(scan, special, special)
}

/**
 * Where the body of a key ends, with its padding; -1 if its length is none of the form's. A body that could go on ends
 * at its longest where a sign follows, as in `AIza..._old`.
 */
function bodyEnd(text: string, start: number, { body, shortest, longest }: KeyForm): number {
  const ran = body.runEnd(text, start, Math.min(text.length, start + longest + 3))
  const most = start + longest
  if (ran > most && !isAlphanumericAt(text, most)) return most
  let end = ran
  while (end > start && text[end - 1] === '.') end--
  while (text[end] === '=' && end < most + 2) end++
  const length = end - start
  return length < shortest || length > longest + 2 || body.hasAt(text, ran) ? -1 : end
}

/** Mostly one character, as documentation shows keys. */
function isMonotonous(body: string): boolean {
  const counts = new Map<string, number>()
  for (let index = 0; index < body.length; index++) {
    const character = body.charAt(index)
    const count = (counts.get(character) ?? 0) + 1
    if (count > body.length / 2) return true
    counts.set(character, count)
  }
  return false
}

/** Reads the signed tokens whose starts were found, which can be as long as a text. */
export function* scanSignedTokens(scan: Scan): Slices<void> {
  const { text, budget } = scan
  for (const start of scan.signedTokens.splice(0)) {
    const found = yield* readJsonWebToken(text, start)
    reportMatch(scan, JSON_WEB_TOKEN, found)
    budget.pace(found === null ? TOKEN_STEPS : TOKEN_STEPS + found.end - found.start)
    if (budget.endsSlice()) yield
  }
}

/** Steps of reading a signed token, beside its units. */
const TOKEN_STEPS = 64

/**
 * Values after names of secrets: `password=...`, `"token": "..."`. The scan goes on after a value, so that each part of a
 * run is scanned once.
 * @returns where it stopped.
 */
export function scanAssignment(scan: Scan, from: number, end: number, limit: number): number {
  if (!scan.covers(SECRET.id)) return end
  let index = from
  while (index < limit) {
    const sign = scan.text.charCodeAt(index)
    index = sign === 58 || sign === 61 ? assignmentAt(scan, index) : index + 1
  }
  return index
}

/** Steps of reading a name and its value, beside the units of the value. */
const VALUE_STEPS = 64

/** @returns the index to go on from */
function assignmentAt(scan: Scan, sign: number): number {
  const { text } = scan
  let nameEnd = sign
  while (nameEnd > 0 && sign - nameEnd < 3 && /[\s"'\])`*]/.test(text.charAt(nameEnd - 1))) nameEnd--
  const nameStart = nameStartOf(text, nameEnd)
  const naming =
    nameEnd - nameStart < 2 || !mentionsSecrets(scan) ? null : namingOf(text.slice(nameStart, nameEnd))
  if (naming === null) return sign + 1
  const { start, end } = valueAt(text, openingOf(text, sign + 1))
  scan.budget.pace(VALUE_STEPS + end - start)
  const score = scoreAssigned(text.slice(start, end), naming, text.charAt(end))
  if (score > 0) scan.report(SECRET.id, start, end, score)
  return Math.max(sign + 1, end)
}

/** Names in scripts without case or spaces (密码) count as well. */
function nameStartOf(text: string, end: number): number {
  let start = end
  const limit = Math.max(0, end - LONGEST_NAME)
  while (start > limit && (NAME_CHARACTERS.hasAt(text, start - 1) || text.charCodeAt(start - 1) >= 0x80))
    start--
  return start
}

/** Skips what stands between a name's sign and its value: `=`, `>`, blanks, `**`, `Bearer`. */
function openingOf(text: string, index: number): number {
  let opening = index
  while (opening - index < 2 && /[=>:*]/.test(text.charAt(opening))) opening++
  const blanks = opening
  while (opening - blanks < 3 && /[ \t]/.test(text.charAt(opening))) opening++
  const scheme = /^(?:(?:bearer|token|basic|apikey|ssws|geniekey|bot) |<\w{1,10}>|[是为は])/i.exec(
    text.slice(opening, opening + 12),
  )
  return opening + (scheme?.[0].length ?? 0)
}

/**
 * A value in quotes goes to the closing one; any other to the next blank, quote, bracket or parameter. More than the
 * longest value is not read: the scan goes on there.
 */
function valueAt(text: string, opening: number): { start: number; end: number } {
  const quote = text.charAt(opening)
  if (quote === '"' || quote === "'" || quote === '`') {
    const rest = text.slice(opening + 1, opening + 1 + LONGEST_QUOTED)
    const length = rest.indexOf(quote)
    if (length >= 0 && !/\s/.test(rest.slice(0, length))) {
      return { start: opening + 1, end: opening + 1 + length }
    }
  }
  const start = /["'`]/.test(quote) ? opening + 1 : opening
  const limit = start + LONGEST_SECRET + 1
  let end = start
  while (end < limit && classAt(text, end) !== 0 && !isParameterAt(text, end)) end++
  while (end > start && /[.,:;\\]/.test(text.charAt(end - 1))) end--
  return { start, end }
}

const PARAMETER = /&\w{1,40}=/y

/** Whether the next parameter of a form or a URL begins at an index. */
function isParameterAt(text: string, index: number): boolean {
  if (text[index] !== '&') return false
  PARAMETER.lastIndex = index
  return PARAMETER.test(text)
}

/** Random texts near words for secrets. */
export function scanToken(scan: Scan, start: number, end: number, classes: number): void {
  const { text } = scan
  if (!scan.covers(SECRET.id)) return
  if ((classes & DIGIT) === 0 && (classes & (LOWER_LETTER | UPPER_LETTER)) !== (LOWER_LETTER | UPPER_LETTER))
    return
  if ((classes & ~DIGIT) === 0) return
  const tokenStart = OPENING_MARKS.runEnd(text, start, end)
  scanLooseSecret(scan, tokenStart, CLOSING_MARKS.runStart(text, end, tokenStart))
}

/** Marks around a token that are not of it. */
export const OPENING_MARKS = new CharacterSet(':=*')
export const CLOSING_MARKS = new CharacterSet('.,:;')

/** Keys and tokens as machines write them. */
const LOOSE_SECRET = /^(?![0-9a-fA-F-]+$)[A-Za-z0-9+/_.~-]{20,}={0,2}$/
/** Names of requests, runs and other things that are public, as vendors write them. */
const IDENTIFIER =
  /^(?:req|msg|chatcmpl|resp|run|thread|asst|file|evt|cus|pi|ch|in|sub|price|prod|call|toolu|trace|span|batch|job|task|user|org|proj|acct|txn|ord|session|conv|step|item|rs|fc|sha\d{1,3})[_-]/

/** Whether the text has any word for secrets; searched once. */
function mentionsSecrets(scan: Scan): boolean {
  scan.mentionsSecrets ??= hintsAtSecret(scan.text)
  return scan.mentionsSecrets
}

/** Searches a text for words for secrets, a long one in parts that overlap by more than such a word. */
export function* lookForHints(scan: Scan): Slices<void> {
  const { text } = scan
  for (let at = 0; scan.mentionsSecrets === undefined && at < text.length; at += HINT_PART) {
    if (hintsAtSecret(text.slice(at, at + HINT_PART + LONGEST_HINT))) scan.mentionsSecrets = true
    if (at + HINT_PART < text.length) yield
  }
  scan.mentionsSecrets ??= false
}

const HINT_PART = 64 * 1024

function scanLooseSecret(scan: Scan, start: number, end: number): void {
  if (end - start > 4096 || !scan.hints.mayBeIn(scan.surroundings.windowStart(start), start)) return
  const token = scan.text.slice(start, end)
  if (/^[A-Za-z][A-Za-z0-9+.-]{1,20}:\/\//.test(token)) return
  const before = scan.surroundings.before(start)
  if (!hintsAtSecret(before)) return
  const apart = namingApart(before)
  const naming = apart ?? namingInSentence(before) ?? namingOfColumn(before)
  const announced = scoreAssigned(token, naming, scan.text.charAt(end), apart === null)
  if (announced > 0) {
    scan.report(SECRET.id, start, end, announced)
    return
  }
  if (!LOOSE_SECRET.test(token) || IDENTIFIER.test(token) || !isRandom(token)) return
  if (namesNoSecret(before)) return
  if (SECRET_CONTEXT.test(before)) scan.report(SECRET.id, start, end, 0.6)
}
