import type { Slices } from '../../lib/slices.ts'
import { decodeBase64 } from './base64.ts'
import {
  BASE64_ANY,
  CharacterSet,
  classAt,
  DIGIT,
  isAlphanumericAt,
  LOWER_LETTER,
  UPPER_LETTER,
  URL_SAFE,
} from './characters.ts'
import { contextPattern } from './context-words.ts'
import type { Match, ScoredDetector } from './detector.ts'
import { isPlaceholder } from './network.ts'

export const JSON_WEB_TOKEN: ScoredDetector = {
  id: 'jwt',
  category: 'secret',
  description: 'JSON web token (readable header)',
  baseScore: 0.97,
}
export const SECRET: ScoredDetector = {
  id: 'secret',
  category: 'secret',
  description: 'Password, token or key, told by the word before it and by its own randomness',
  baseScore: 0.8,
}
export const BASIC_CREDENTIALS: ScoredDetector = {
  id: 'basic_credentials',
  category: 'secret',
  description: 'User name and password in base 64 after "Basic"',
  baseScore: 0.95,
}

/** Units of a name before a token that a sign joins to it. */
const LONGEST_PREFIX = 64

/**
 * Reads a token whose `eyJ` is at `start`: two or three parts, the first a JSON object with `alg` (RFC 7515, 7519). All of
 * it is read, in slices: a part of it that was left out would get out.
 */
export function* readJsonWebToken(text: string, start: number): Slices<Match | null> {
  // A bounded number of starts in each run: what adjoins a token is short, and each start reads the run.
  const runStart = URL_SAFE.runStart(text, start, Math.max(0, start - LONGEST_PREFIX - 1))
  if (isAlphanumericAt(text, start - 1) || start - runStart > LONGEST_PREFIX) return null
  const headerEnd = yield* URL_SAFE.runEndInSlices(text, start)
  if (text[headerEnd] !== '.' || headerEnd - start < 12) return null
  const payloadEnd = yield* URL_SAFE.runEndInSlices(text, headerEnd + 1)
  if (payloadEnd - headerEnd < 8) return null
  const header = decodeBase64(text.slice(start, Math.min(headerEnd, start + 4000)))
  if (header === null || !/^\{[\s\S]*"(?:alg|enc|typ)"/.test(header)) return null
  let end = payloadEnd
  for (let part = 0; part < 3 && text[end] === '.'; part++) {
    const partEnd = yield* URL_SAFE.runEndInSlices(text, end + 1)
    if (partEnd === end + 1 && part > 0) break
    end = partEnd
  }
  if (text[end - 1] === '.' && /\s/.test(text.charAt(end) || ' ') && end === payloadEnd + 1) end--
  return { start, end, score: JSON_WEB_TOKEN.baseScore }
}

const NAMES_OF_SECRETS =
  /(?:password|passwd|passwort|pwd|passphrase|passcode|kennwort|contrasena|contraseña|mdp|motdepasse|senha|secret|secretkey|secretkeybase|apikey|apisecret|accesskey|accesskeyid|secretaccesskey|accountkey|storagekey|token|authkey|authorization|privatekey|clientsecret|credential|credentials|signingkey|encryptionkey|masterkey|sharedkey|servicekey|sessionkey|licensekey|deploykey|hmackey|jwtsecret|webhooksecret|sastoken|pass|auth|apikeyvalue|密码|パスワード|비밀번호)$/
const NOT_SECRETS =
  /(?:next|page|continuation|pagination|cursor|max|(?<!ad)min|num|total|prompt|input|output|completion|(?<!ac)count|stop|pad|eos|bos|unk|public|tokentype|sync|idempotency|design|csstoken)(?:token|key)s?$|publickey$|tokens$|bypass$|compass$/
const WEAK_NAMES = /(?:^|[^a-z])(?:key|bearer|sig|signature|apitoken|nonce)$/

/** Part of every word that names a secret. */
const HINTS =
  /pass|pw|curl|identified|key|token|secret|auth|cred|kennwort|contrase|clave|mdp|mot|senha|palavra|wachtwoord|has[lł]o|l[oö]senord|parola|şifre|كلمة|סיסמ|schl|cl[eé] |chave|chiave|sig|nonce|bearer|pin|aws|connection|пароль|密|口令|パス|キー|비밀/i

/** Whether a field is named after no secret, such as `next_page_token` or `vault_id`. */
export function namesNoSecret(before: string): boolean {
  const name = /([a-z0-9_-]{3,48})(?:["']?\s{0,3}[:=]\s{0,3}["']?|(?<=\s--[a-z-]{3,48}) )$/.exec(before)?.[1]
  if (name !== undefined && /(?:^|_)id$/.test(name)) return true
  return name !== undefined && NOT_SECRETS.test(name.replace(/[_-]/g, ''))
}

/** Whether a text has any word of secrets. */
export const hintsAtSecret = (words: string): boolean => HINTS.test(words)

/** No hint has more characters. */
export const LONGEST_HINT = 16
const EACH_HINT = new RegExp(HINTS.source, 'gi')

/** Finds hints in ranges of a text, each starting no earlier than the one before it. */
export class SecretHints {
  readonly #text: string
  /** The last hint that was found. */
  #start = 0
  #end = 0
  /** No other hint starts before this index. */
  #searched = 0

  constructor(text: string) {
    this.#text = text
  }

  /** @returns false if there is none: the first hint that ends after `from` starts at `end` or later. */
  mayBeIn(from: number, end: number): boolean {
    while (this.#end <= from) {
      const at = Math.max(this.#searched, this.#end)
      if (at >= end) return false
      EACH_HINT.lastIndex = 0
      // The search does not extend to the end of the text, which may be long.
      const match = EACH_HINT.exec(this.#text.slice(at, end + LONGEST_HINT))
      if (match === null || at + match.index >= end) {
        this.#searched = end
        return false
      }
      this.#start = at + match.index
      this.#end = at + EACH_HINT.lastIndex
    }
    return this.#start < end
  }
}

type Naming = 'password' | 'secret' | 'key' | null

/** The kind of secret that the name before a `:` or `=` gives the value after it. */
export function namingOf(name: string): Naming {
  const lower = name.toLowerCase()
  if (!HINTS.test(lower)) return null
  const compact = lower.replace(/[^a-z0-9\u0080-\uffff]/g, '')
  if (NOT_SECRETS.test(compact)) return null
  if (
    /(?:passw|passphrase|passcode|pwd$|kennwort|contrase|mdp$|motdepasse$|senha$|^pass$|密码|パスワード|비밀번호)/.test(
      compact,
    )
  )
    return 'password'
  if (/(?:^|[^a-z])pw$/.test(lower)) return 'password'
  if (NAMES_OF_SECRETS.test(compact)) return 'secret'
  return WEAK_NAMES.test(lower) || /key$/.test(compact) ? 'key' : null
}

const counts = new Uint16Array(128)

/** Shannon entropy of a text in bits a character, over its first 1024 characters. */
function entropyOf(text: string): number {
  counts.fill(0)
  const length = Math.min(text.length, 1024)
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index) & 127
    counts[code] = (counts[code] ?? 0) + 1
  }
  let bits = 0
  for (const count of counts) if (count > 0) bits -= (count / length) * Math.log2(count / length)
  return bits
}

function classesOf(text: string): number {
  let classes = 0
  for (let index = 0; index < text.length; index++) classes |= classAt(text, index)
  return classes
}

const COMMON_WORDS =
  /^(?:required|optional|string|number|boolean|null|undefined|none|true|false|example|default|required|invalid|incorrect|expired|missing|password|secret|token|bearer|basic|unknown|empty|disabled|enabled|authorization|protected|confidential|forgotten)$/i
/** A name that is called or indexed, as in `token = nextToken(`. */
const NAME_IN_CODE = /^[$\w]+(?:(?:\.|::|->)[$\w]+)*$/
const VARIABLE = /^\$[A-Za-z_][\w.:>$/[\]-]*$/
const CODE_PATH = /^[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)+$/

export const LONGEST_SECRET = 1024

/** The score of a value after a name or word for a secret; 0 if it is none. @param spoken for a word of a sentence */
export function scoreAssigned(value: string, naming: Naming, follower: string, spoken = false): number {
  if (naming === null || value.length < 6 || value.length > LONGEST_SECRET || isPlaceholder(value)) return 0
  if (
    COMMON_WORDS.test(value) ||
    ((follower === '(' || follower === '[') && NAME_IN_CODE.test(value) && !isRandom(value)) ||
    /^[<{]|^[%$][({]|^https?:\/\//.test(value) ||
    VARIABLE.test(value)
  )
    return 0
  if (/^[*_]*v?\d+(?:[.:/,-]\d+)+[*_]*$/.test(value)) return 0
  const classes = classesOf(value)
  const kinds =
    Number((classes & LOWER_LETTER) !== 0) +
    Number((classes & UPPER_LETTER) !== 0) +
    Number((classes & DIGIT) !== 0) +
    Number((classes & ~(LOWER_LETTER | UPPER_LETTER | DIGIT)) !== 0)
  if (CODE_PATH.test(value) && (classes & DIGIT) === 0) return 0
  const digits = (classes & DIGIT) !== 0
  if (naming === 'password') {
    if (/^\d+$/.test(value)) return value.length >= 6 ? 0.6 : 0
    if (kinds >= 2 && (digits || /[!#$%&*?^~@]/.test(value)) && value.length >= 6) return SECRET.baseScore
    return value.length >= 16 && entropyOf(value) > 3 ? 0.6 : 0
  }
  const random = isRandom(value)
  if (naming === 'secret')
    // `secret default/app-token-ecf4e` names a secret and is none.
    return random || (digits && kinds >= 2 && value.length >= 10 && !(spoken && isWordy(value)))
      ? SECRET.baseScore
      : 0
  return random && value.length >= 20 ? 0.65 : 0
}

/** Whether a text looks random rather than written. */
export function isRandom(text: string): boolean {
  if (text.length < 16) return false
  const classes = classesOf(text)
  if ((classes & DIGIT) === 0 && (classes & (LOWER_LETTER | UPPER_LETTER)) !== (LOWER_LETTER | UPPER_LETTER))
    return false
  if (/^[0-9.,:/-]+$/.test(text)) return false
  const hexadecimal = /^[0-9a-fA-F-]+$/.test(text)
  if ((/[-_./]/.test(text) && isWordy(text)) || isCamelCase(text)) return false
  const most = Math.log2(Math.min(text.length, hexadecimal ? 16 : 64))
  return (
    entropyOf(text) > most * (hexadecimal ? 0.72 : 0.74) && (classes & (LOWER_LETTER | UPPER_LETTER)) !== 0
  )
}

/**
 * Words joined by their capitals, as in code (`IdentityTokenProvider`). In random text every second character is of
 * another class than the one before it.
 */
function isCamelCase(text: string): boolean {
  const parts = text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g) ?? []
  const digits = text.replace(/\D/g, '').length
  return /[a-z]/.test(text) && digits * 6 <= text.length && parts.length * 3.5 <= text.length
}

/** Words joined by dashes and the like, as in the name of a file. */
function isWordy(text: string): boolean {
  const parts = text.split(/[-_./]/)
  const words = parts.filter((part) => /^[A-Za-z]?[a-z]*\d{0,2}$|^[A-Z]+$|^\d{1,4}$/.test(part))
  return words.length > parts.length * 0.6
}

const PASSWORD_WORDS =
  'passwords?|passwd|passwort|pwd?|passphrase|passcode|kennwort|contrase[nñ]a|clave|mot de passe|senha|palavra-passe|wachtwoord|has[lł]o|l[oö]senord|parola|pin|пароль|密码|口令|パスワード|비밀번호|şifre|كلمة (?:المرور|السر)|סיסמה'
const SECRET_WORDS =
  'secrets?|tokens?|bearer|credentials?|(?:api|access|secret|private|auth|signing|encryption)[ _-]?(?:access[ _-]?)?(?:keys?|tokens?|secret)|api[ -]?schl[uü]ssel|schl[uü]ssel|clave de api|cl[eé] (?:d.)?api|cl[eé] secr[eè]te|chave|chiave|密钥|キー'
/** Up to two of them stand between the name of a secret and the secret. */
const LINKS =
  'is|was|are|to|of|for|as|set to|changed to|reset to|now|value|ist|lautet|lauten|als|est|es|a|al|por|con|per|on file|für|in|für \\w{1,20}|for \\w{1,20}|é|è|είναι|är|jest|to jest|это|是|为|は'

/** Words right before a value in a sentence: "the password is ...", "use token ...". */
const SPOKEN = new RegExp(
  `(?:^|[^a-z_-])(?:(${PASSWORD_WORDS})|(${SECRET_WORDS})|(key))(?: (?:${LINKS})| ?[是为は]){0,2}\\s{0,2}[:=|→]?\\s{0,2}(?:<\\w{1,10}>)?["'\`([{<«»„「『|*]{0,2}$`,
)

/** The kind that the header of a column gives a value, in a table of `,` `;` `|` or tabs. `before` is lower case. */
export function namingOfColumn(before: string): Naming {
  const separator = before.replace(/["'(<[{]$/, '').slice(-1)
  if (!/[,;\t|]/.test(separator)) return null
  const lines = before.split('\n')
  const header = lines.at(-2)?.split(separator) ?? []
  const cells = (lines.at(-1) ?? '').split(separator)
  return header.length < cells.length ? null : namingOf(header[cells.length - 1]?.replace(/["\s]/g, '') ?? '')
}

/** Keys that are no secrets. */
const OTHER_KEYS =
  /(?:public|primary|foreign|sort|partition|answer|idempotency)[ _-]?keys?[^a-z]{0,4}(?:is )?[^a-z]{0,3}$/

/** A name that is separate from its value: `<password>...`, `name: DB_PASSWORD, value: ...`, `variable "x" { default = ...`. */
const NAMED_APART =
  /(?:<([a-z][a-z0-9_.:-]{1,47})>|\b(?:name|key)["']?\s{0,2}[:=]\s{0,2}["']?([a-z0-9_.:-]{2,48})["']?\s{0,2},?\s{1,12}["']?value["']?\s{0,2}[:=]\s{0,2}["']?|\bvariable "([a-z0-9_-]{2,48})" \{\s{1,8}(?:type\s{1,4}= string\s{1,8})?default\s{1,4}= "|(?:^|\s)--([a-z][a-z-]{1,40})[ =]["']?|\b(?:env|setx|export) ([a-z0-9_]{2,48}) ["']?)$/

/** Options of commands that take a password. */
const ON_COMMAND_LINE =
  /\bcurl(?:\s[^\n]{0,90})?\s(?:-u|--user)[ =]?["']?$|\bsshpass -p ?["']?$|\bidentified (?:with \w{1,30} )?by ["']?$/

/** The kind that a separate name, or a command, gives a value. `before` is lower case. */
export function namingApart(before: string): Naming {
  if (ON_COMMAND_LINE.test(before)) return 'password'
  const match = NAMED_APART.exec(before)
  return match === null ? null : namingOf(match.slice(1).find((name) => name !== undefined) ?? '')
}

/** The kind that a sentence's words give a value. `before` is lower case. */
export function namingInSentence(before: string): Naming {
  const match = SPOKEN.exec(before)
  if (match === null || OTHER_KEYS.test(before)) return null
  if (match[1] !== undefined) return 'password'
  return match[2] === undefined ? 'key' : 'secret'
}

/** Words before a random token that make it a likely secret. */
export const SECRET_CONTEXT = contextPattern(
  'password, passwd, pwd, secret, token, api key, apikey, access key, secret key, private key, ' +
    'credential, credentials, bearer, authorization, auth, signing key, encryption key, ' +
    'client secret, webhook secret, x api key, aws secret, account key, connection string',
)

const PADDING = new CharacterSet('=')

/** Reads the base 64 of a Basic authorization that starts at `start` (RFC 7617), all of it, in slices. */
export function* readBasicCredentials(text: string, start: number): Slices<Match | null> {
  const contentEnd = yield* BASE64_ANY.runEndInSlices(text, start)
  const end = yield* PADDING.runEndInSlices(text, contentEnd)
  const decoded = end - start >= 6 ? decodeBase64(text.slice(start, Math.min(end, start + 1024))) : null
  if (decoded === null || !/^[\x20-\x7e]*:[\x20-\x7e]+$/.test(decoded)) return null
  return { start, end, score: BASIC_CREDENTIALS.baseScore }
}
