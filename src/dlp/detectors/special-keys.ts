import { isAlphanumericAt, LETTERS_AND_DIGITS, LOWER_HEXADECIMAL, URL_SAFE } from './characters.ts'
import { contextPattern, type Surroundings } from './context-words.ts'
import type { DetectorDescription, Match } from './detector.ts'

const row = (id: string, description: string): DetectorDescription => ({
  id,
  category: 'secret',
  description,
})

/** Keys that are recognised by their middle or by a word before them, not by a prefix. */
export const SPECIAL_KEYS = {
  telegram: row('telegram_token', 'Telegram bot token'),
  discord: row('discord_token', 'Discord bot token or webhook'),
  passwordHash: row('password_hash', 'Hash of a password (bcrypt, crypt)'),
  mailgun: row('mailgun_api_key', 'Mailgun API key of the newer form'),
  azureService: row('azure_service_key', 'Azure key with a mark of its service'),
  mailchimp: row('mailchimp_key', 'Mailchimp key'),
  azureClient: row('azure_client_secret', 'Azure (Entra) client secret'),
  awsSecret: row('aws_secret_key', 'AWS secret access key, near a word that names it'),
} as const

/** A match with the detector that it is of. */
type Special = Match & { id: string }

const special = ({ id }: DetectorDescription, start: number, end: number): Special => ({
  id,
  start,
  end,
  score: 0.95,
})

const AWS = new RegExp(
  `${contextPattern('aws, amazon, secret access key, secret key').source}|akia[a-z2-7]{16}`,
)

/** Longer words are all treated alike. */
const LONGEST_WORD = 100

/** Reads the key that starts with a run of letters and digits at `start`, in a run without blanks that ends at `runEnd`. */
export function readSpecialKey(
  text: string,
  start: number,
  runEnd: number,
  surroundings: Surroundings,
): Special | null {
  const wordEnd = LETTERS_AND_DIGITS.runEnd(text, start, Math.min(text.length, start + LONGEST_WORD))
  const length = wordEnd - start
  if (length >= 8 && length <= 13 && text[wordEnd] === ':') return readTelegramToken(text, start, wordEnd)
  if (length === 7 && text.startsWith('discord', start)) return readDiscordWebhook(text, start)
  if (text[start - 1] === '$') {
    PASSWORD_HASH.lastIndex = start
    if (PASSWORD_HASH.test(text))
      return special(SPECIAL_KEYS.passwordHash, start - 1, PASSWORD_HASH.lastIndex)
  }
  if (length === 84 && isAzureKey(text, start)) return special(SPECIAL_KEYS.azureService, start, wordEnd)
  if (length === 32 && MAILGUN_ENDING.test(text.slice(wordEnd, wordEnd + 19))) {
    return LOWER_HEXADECIMAL.runEnd(text, start) === wordEnd
      ? special(SPECIAL_KEYS.mailgun, start, wordEnd + 18)
      : null
  }
  if (length === 32 && text.startsWith('-us', wordEnd) && LOWER_HEXADECIMAL.runEnd(text, start) === wordEnd) {
    const end = LETTERS_AND_DIGITS.runEnd(text, wordEnd + 1, wordEnd + 6)
    return /^us\d{1,2}$/.test(text.slice(wordEnd + 1, end))
      ? special(SPECIAL_KEYS.mailchimp, start, end)
      : null
  }
  if (/[MNO]/.test(text.charAt(start))) {
    const discord = readDiscordToken(text, start)
    if (discord !== null) return discord
  }
  const azure = readAzureClientSecret(text, start)
  return azure ?? (runEnd - start < 40 ? null : readAwsSecret(text, start, surroundings))
}

/** Hashes of passwords after their `$`: bcrypt, MD5, SHA-256 and SHA-512 of crypt(3), and Apache's. */
const PASSWORD_HASH =
  /(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|6\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{86}|5\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22})(?![/A-Za-z0-9])/y

const MAILGUN_ENDING = /^-[0-9a-f]{8}-[0-9a-f]{8}(?![A-Za-z0-9])/

/** Marks of Microsoft's identifiable keys, at their places among 84 characters. */
const isAzureKey = (text: string, start: number): boolean =>
  text.startsWith('JQQJ99', start + 52) || text.startsWith('AZDO', start + 76)

/** The bot's number, which its URLs put `bot` before, and 35 characters. */
function readTelegramToken(text: string, start: number, colon: number): Special | null {
  const number = text.startsWith('bot', start) ? start + 3 : start
  if (!/^\d{8,10}$/.test(text.slice(number, colon))) return null
  const end = colon + 36
  const isWhole = URL_SAFE.runEnd(text, colon + 1, end) === end && !isAlphanumericAt(text, end)
  return isWhole ? special(SPECIAL_KEYS.telegram, number, end) : null
}

/** The bot's number in base 64, a time, and a signature. */
function readDiscordToken(text: string, start: number): Special | null {
  const first = URL_SAFE.runEnd(text, start, Math.min(text.length, start + 30))
  if (first - start < 23 || first - start > 28 || text[first] !== '.') return null
  const second = URL_SAFE.runEnd(text, first + 1, first + 10)
  if (second - first < 6 || second - first > 8 || text[second] !== '.') return null
  const end = URL_SAFE.runEnd(text, second + 1, Math.min(text.length, second + 64))
  return end - second >= 28 && end - second <= 44 ? special(SPECIAL_KEYS.discord, start, end) : null
}

const WEBHOOK = /discord(?:app)?\.com\/api\/webhooks\/\d{17,20}\/[A-Za-z0-9_-]{60,80}/y

function readDiscordWebhook(text: string, start: number): Special | null {
  WEBHOOK.lastIndex = start
  return WEBHOOK.test(text) ? special(SPECIAL_KEYS.discord, start, WEBHOOK.lastIndex) : null
}

/** Three characters, a digit, `Q~`, and 31 to 34 more. */
function readAzureClientSecret(text: string, start: number): Special | null {
  if (!text.startsWith('Q~', start + 4)) return null
  const match = /^[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9~])/.exec(
    text.slice(start, start + 60),
  )
  return match === null ? null : special(SPECIAL_KEYS.azureClient, start, start + match[0].length)
}

/** Forty characters of base 64 after a word of Amazon's. */
function readAwsSecret(text: string, start: number, surroundings: Surroundings): Special | null {
  if (/[A-Za-z0-9+/]/.test(text.charAt(start - 1))) return null
  const match = /^[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])/.exec(text.slice(start, start + 42))
  if (match === null || !/[a-z]/.test(match[0]) || !/[A-Z]/.test(match[0]) || !/\d/.test(match[0]))
    return null
  if (!AWS.test(surroundings.before(start))) return null
  return special(SPECIAL_KEYS.awsSecret, start, start + 40)
}
