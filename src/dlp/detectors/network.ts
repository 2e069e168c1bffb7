import { ACCENTED, CharacterSet, classAt, isAlphanumericAt, isDigitAt } from './characters.ts'
import type { Match, ScoredDetector } from './detector.ts'
import { isDoubtfulEnding, isReservedDomain, isTopLevelDomain } from './top-level-domains.ts'

export const EMAIL: ScoredDetector = {
  id: 'email',
  category: 'contact',
  description: 'Email address',
  baseScore: 0.95,
}
export const DOMAIN: ScoredDetector = {
  id: 'domain',
  category: 'network',
  description: 'Domain name under a known top-level domain',
  baseScore: 0.75,
}
export const IP_ADDRESS: ScoredDetector = {
  id: 'ip_address',
  category: 'network',
  description: 'IPv4 or IPv6 address',
  baseScore: 0.9,
}
export const URL_CREDENTIALS: ScoredDetector = {
  id: 'url_credentials',
  category: 'secret',
  description: 'URL with a password in it',
  baseScore: 0.96,
}

const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const ALPHANUMERIC = `${LOWER}${LOWER.toUpperCase()}0123456789`
const LOCAL_PART = new CharacterSet(`${ALPHANUMERIC}._%+-~!#$*'`)
const LABELS = new CharacterSet(`${ALPHANUMERIC}.-`)
const LONGEST_LOCAL_PART = 64
export const LONGEST_DOMAIN = 253

const isLocalAt = (text: string, index: number): boolean => {
  if (text[index] === "'") return isAlphanumericAt(text, index - 1) && isAlphanumericAt(text, index + 1)
  return LOCAL_PART.hasAt(text, index) || classAt(text, index) === ACCENTED
}

/** Reads the address around the `@` at `at`. Lengths: RFC 5321, 4.5.3.1. */
export function readEmail(text: string, at: number): Match | null {
  let start = at
  while (start > 0 && at - start <= LONGEST_LOCAL_PART && isLocalAt(text, start - 1)) start--
  if (at - start > LONGEST_LOCAL_PART) return null
  while (
    start < at &&
    !isAlphanumericAt(text, start) &&
    text[start] !== '_' &&
    classAt(text, start) !== ACCENTED
  )
    start++
  if (start === at || text[at - 1] === '.' || text.slice(start, at).includes('..')) return null
  const whole = hostEnd(text, at + 1)
  if (whole < 0) return null
  const end = addressEnd(text, at + 1, whole)
  const ending = lastLabel(text, at + 1, end)
  // git@host:path is how ssh names a repository.
  if (text[end] === ':' && text.slice(start, at) === 'git') return null
  if (isTopLevelDomain(ending)) return { start, end, score: EMAIL.baseScore }
  if (isReservedDomain(ending)) return { start, end, score: 0.75 }
  return /^[a-z]{2,}$/.test(ending) ? { start, end, score: 0.4 } : null
}

/** Endings that are left out after the top-level domain of an address. */
const MOST_ENDINGS = 4

/**
 * Where the host of an address ends before what adjoins it: `.txt` of a file, `-1` of a copy, or the word after it
 * (`example.comPhone`). @returns `end` if the host ends in a domain, or no part of it does
 */
function addressEnd(text: string, start: number, end: number): number {
  if (isAddressEnding(lastLabel(text, start, end))) return end
  let shorter = end
  for (let attempt = 0; attempt < MOST_ENDINGS; attempt++) {
    const label = text.lastIndexOf('.', shorter - 1) + 1
    if (label <= start) return end
    const domain = /^[a-z]{2,}(?=[A-Z-])/.exec(text.slice(label, shorter))?.[0]
    if (domain !== undefined && isTopLevelDomain(domain)) return label + domain.length
    shorter = label - 1
    const ending = lastLabel(text, start, shorter)
    const dot = text.lastIndexOf('.', shorter - 1)
    if (dot > start && isAddressEnding(ending)) return shorter
  }
  return end
}

const isAddressEnding = (label: string): boolean => isTopLevelDomain(label) || isReservedDomain(label)

const isHostLetterAt = (text: string, index: number): boolean =>
  isAlphanumericAt(text, index) || classAt(text, index) === ACCENTED

/** The end of the run of letters, digits, dots and dashes that starts at `start`. It stops after one unit too many. */
export function hostRunEnd(text: string, start: number, limit = start + LONGEST_DOMAIN + 1): number {
  let end = start
  while (end < limit && (LABELS.hasAt(text, end) || classAt(text, end) === ACCENTED)) end++
  return end
}

/** The end of a name of two labels or more that starts at `start`, or -1. */
function hostEnd(text: string, start: number): number {
  let end = hostRunEnd(text, start)
  if (end - start > LONGEST_DOMAIN) return -1
  while (end > start && !isHostLetterAt(text, end - 1)) end--
  const name = text.slice(start, end)
  const dot = name.lastIndexOf('.')
  const wellFormed = dot > 0 && isHostLetterAt(text, start) && !/\.\.|\.-|-\./.test(name)
  return wellFormed ? end : -1
}

const lastLabel = (text: string, start: number, end: number): string =>
  text.slice(text.lastIndexOf('.', end - 1) + 1 || start, end).toLowerCase()

/** Names before a dot in code. */
const CODE_RECEIVER =
  /^(?:this|self|cls|user|users|console|log|logger|process|object|obj|item|items|row|rows|data|node|event|evt|req|res|request|response|ctx|context|props|state|module|window|document|math|string|array|list|map|set|config|options|opts|params|args|result|results|value|values|key|keys|input|output|index|main|test|tests|app|client|server|session|model|file|files|path|job|task|thread|conn|db|err|error|field|form|table|column|query|params|parent|child|entry|element|target|source|record|message|msg|body|header|headers|settings|env|os|sys|io|np|pd|re|json|time|datetime|e|i|g|a|b|c|x|y|n|t|s)$/

/**
 * Reads a domain name in a run of letters, digits, dots and dashes that starts at `start`.
 */
export function readDomain(text: string, start: number, end: number): Match | null {
  const whole = hostEnd(text, start)
  if (whole < 0 || whole > end || whole - start < 4) return null
  const isNamed = SITE.test(text.slice(Math.max(0, start - 24), start))
  const stop = isNamed ? addressEnd(text, start, whole) : whole
  const name = text.slice(start, stop)
  const labels = name.split('.')
  const ending = (labels.at(-1) ?? '').toLowerCase()
  if (!isTopLevelDomain(ending) || labels.some((label) => label.length > 63)) return null
  if (text.startsWith('://', start - 3) || /^www\./i.test(name))
    return { start, end: stop, score: DOMAIN.baseScore + 0.1 }
  const attached = /[\w@\\/.$-]/.test(text.charAt(start - 1)) || /[(=[_\\]/.test(text.charAt(stop))
  const last = labels.at(-1) ?? ''
  const oddCase = last !== ending && name !== name.toUpperCase()
  if ((attached && !isNamed) || oddCase || /^\d+$/.test(labels.at(-2) ?? '') || FRAMEWORK.test(name))
    return null
  const score = scoreName(labels, ending) + (isNamed ? 0.2 : 0)
  return { start, end: stop, score }
}

/** Names of products that look like domains. */
const FRAMEWORK = /^(?:asp|vb|ado|ml|paint)\.net$/i
/** Words before a domain. */
const SITE =
  /(?:web ?sites?|site|domain|host(?:name)?|visit|url|www|homepage|webseite|sitio|sito|dominio)[ "'=:_/-]{1,4}$/i

function scoreName(labels: readonly string[], ending: string): number {
  const [first = ''] = labels
  if (!isDoubtfulEnding(ending)) {
    return labels.length === 2 && ending !== 'com' && CODE_RECEIVER.test(first) ? 0.4 : DOMAIN.baseScore
  }
  // Names in code have no dashes.
  if (first.includes('-') && MEMBER.test(ending)) return 0.55
  if (labels.length > 2 && !CODE_RECEIVER.test(first)) return MEMBER.test(ending) ? 0.4 : 0.55
  return isLikelyName(first) && !FILE_ENDING.test(ending) && !MEMBER.test(ending) ? 0.55 : 0.3
}

/** Endings of files. */
const FILE_ENDING = /^(?:py|rs|sh|pl|md|zip|mov|so|cc|ps|java|js|ts|cv)$/
/** Members of objects in code. */
const MEMBER =
  /^(?:id|name|call|data|date|day|next|select|style|click|format|filter|map|group|test|read|now|how|new|one|email|video|audio|page|link|host|search|parts)$/

const isLikelyName = (label: string): boolean =>
  label.length >= 5 && label === label.toLowerCase() && !CODE_RECEIVER.test(label)

const NOT_AN_ADDRESS =
  /(?:version|ver|release|rev|revision|build|firmware|chapter|section|(?:^|[^a-z])v|driver|oid|update|patch|hotfix|clause|figure|fig|table|§|appendix|kernel|sdk|api|python|node|ios|android|chrome|chromium|firefox|safari|mozilla|edge|oracle|\.net|dotnet|jdk|jre|mysql|postgres)[ /:="'([]{0,4}-?$/
const UPGRADE = /(?:up|down)grad(?:e|ed|ing)(?: from [\d.]{1,15})?(?: to| from)? $/

/** Reads dotted quads where a run of digits starts. */
export function readIpv4(text: string, start: number): Match | null {
  let index = start
  for (let octet = 0; octet < 4; octet++) {
    let value = 0
    const first = index
    while (index - first < 3 && text.charCodeAt(index) >= 48 && text.charCodeAt(index) <= 57) {
      value = value * 10 + text.charCodeAt(index++) - 48
    }
    const length = index - first
    if (length === 0 || value > 255 || (length > 1 && text[first] === '0')) return null
    if (octet < 3 && text[index++] !== '.') return null
  }
  if (isDigitAt(text, index) || isDigitAt(text, start - 1)) return null
  if ((text[index] === '.' && isDigitAt(text, index + 1)) || text[start - 1] === '.') return null
  const before = text.slice(Math.max(0, start - 40), start).toLowerCase()
  if (isJoined(text, start, index) && !NAMED_ADDRESS.test(before.slice(-24))) return null
  return NOT_AN_ADDRESS.test(before.slice(-16)) || (before.includes('grad') && UPGRADE.test(before))
    ? null
    : { start, end: index, score: IP_ADDRESS.baseScore }
}

/** Words right before an address. Without one, numbers that another token adjoins are a version or a build. */
const NAMED_ADDRESS =
  /(?:^|[^a-z])(?:ips?|ipv4|(?:ip[ _-]?)?addr(?:ess)?|adresse|direcci[oó]n)[ _=:#"'-]{0,4}$/

/** Whether a letter, or a sign and a token, adjoins an address on either side. */
function isJoined(text: string, start: number, end: number): boolean {
  if (/[A-Za-z_]/.test(text.charAt(start - 1)) || /[A-Za-z_]/.test(text.charAt(end))) return true
  if (text[start - 1] === '-' && isAlphanumericAt(text, start - 2)) return true
  return /[.-]/.test(text.charAt(end)) && isAlphanumericAt(text, end + 1)
}

export const IPV6_CHARACTERS = new CharacterSet('0123456789abcdefABCDEF:.')
const LONGEST_IPV6 = 45

/** Reads the address whose run of hexadecimal digits, colons and dots starts at `start` (RFC 4291, 2.2). */
export function readIpv6(text: string, runStart: number): Match | null {
  const start = ipv6Start(text, runStart)
  let end = IPV6_CHARACTERS.runEnd(text, start, start + LONGEST_IPV6 + 2)
  while (end > start && (text[end - 1] === '.' || (text[end - 1] === ':' && text[end - 2] !== ':'))) end--
  if (end - start > LONGEST_IPV6 || isAlphanumericAt(text, end)) return null
  if (start === runStart && /[A-Za-z0-9:]/.test(text.charAt(start - 1))) return null
  const address = text.slice(start, end)
  const isTied = text[end] === '_' || /[_.@-]/.test(text.charAt(start - 1))
  if (isTied && address.split(':').length < LEAST_GROUPS) return null
  return isIpv6(address) ? { start, end, score: IP_ADDRESS.baseScore } : null
}

/** Where an address starts in its run: after the colon of its name, as in `addr:2001:db8::1`. */
export const ipv6Start = (text: string, runStart: number): number =>
  text[runStart] === ':' && text[runStart + 1] !== ':' ? runStart + 1 : runStart

/** Groups of an address that a sign ties to another token; fewer are names in code or times. */
const LEAST_GROUPS = 4

function isIpv6(address: string): boolean {
  const halves = address.split('::')
  if (halves.length > 2) return false
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')))
  let count = groups.length
  const last = groups.at(-1) ?? ''
  if (last.includes('.')) {
    if (readIpv4(last, 0)?.end !== last.length) return false
    groups.pop()
    count++
  }
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return false
  if (halves.length === 1) return count === 8 && /\d/.test(address)
  return count >= 1 && count <= 7 && /\d/.test(address) && address.length > 3 - Number(address === '::1')
}

const SCHEME = new CharacterSet(`${ALPHANUMERIC}+.-`)
const LONGEST_AUTHORITY = 400
/** Maximum length of a URL after its host, which takes a millisecond or two; the other detectors read the rest. */
const LONGEST_TAIL = 1024 * 1024
const URL_TAIL = new CharacterSet(`${ALPHANUMERIC}-._~:/?#@!$&*+=%`)
/** Marks that end a sentence or close a bracket are not of the URL before them. */
const CLOSING_MARKS = new CharacterSet('.,:;!?)')
const ENDS_AUTHORITY = /[\s"'<>`/?#\\{}|^]/

/**
 * Reads the URL whose `://` is at `colon`, if its authority holds a password (RFC 3986, 3.2.1).
 * @returns the URL with its path and query, since databases and signed links have secrets there too
 */
export function readUrlCredentials(text: string, colon: number): Match | null {
  const start = urlStart(text, colon)
  if (start < 0) return null
  const authority = colon + 3
  const authorityStop = authorityEnd(text, authority)
  const inside = text.slice(authority, authorityStop)
  const at = authority + inside.lastIndexOf('@')
  const separator = authority + inside.indexOf(':')
  if (at < authority || separator < authority || separator > at) return null
  const password = text.slice(separator + 1, at)
  if (password.length === 0 || isPlaceholder(password) || !/^[A-Za-z0-9[_]/.test(text.slice(at + 1)))
    return null
  const tailEnd = URL_TAIL.runEnd(text, authorityStop, authorityStop + LONGEST_TAIL)
  const end = CLOSING_MARKS.runStart(text, tailEnd, at + 2)
  return { start, end, score: URL_CREDENTIALS.baseScore }
}

/** Where the scheme before the `:` at `colon` starts, or -1. */
export function urlStart(text: string, colon: number): number {
  let start = SCHEME.runStart(text, colon, Math.max(0, colon - 24))
  while (start < colon && !/[a-z]/i.test(text.charAt(start))) start++
  return colon - start < 2 || colon - start > 22 ? -1 : start
}

/** The end of the authority that starts at `start`, at most 400 units after it. */
export function authorityEnd(text: string, start: number): number {
  const limit = Math.min(text.length, start + LONGEST_AUTHORITY)
  let end = start
  while (end < limit && !ENDS_AUTHORITY.test(text.charAt(end))) end++
  return end
}

/** Whether a value is a placeholder for a secret, such as `<your-password>`. */
export function isPlaceholder(value: string): boolean {
  if (/^(?:\*+|x+|\.+|-+|_+|#+|\?+)$/i.test(value)) return true
  if (/^[$%<[{(]/.test(value) && /[}\])>%]$|^\$[A-Za-z_]/.test(value)) return true
  return /^(?:your|my|the|some|insert|enter|replace|change)[-_ ]?(?:\w{0,10}[-_ ])?(?:password|passwd|pass|secret|token|key|api|here|me)|^(?:redacted|placeholder|hidden|masked|removed)$/i.test(
    value,
  )
}
