import { LETTERS_AND_DIGITS, LOWER_HEXADECIMAL, URL_SAFE } from './characters.ts'
import { contextPattern, type Surroundings } from './context.ts'
import type { DetectorDescription } from './detector.ts'

const row = (id: string, description: string): DetectorDescription => ({
  id,
  category: 'secret',
  description,
  baseScore: 0.95,
})

/** Keys that their middle or a word tells, not their beginning. */
export const SPECIAL_KEYS = {
  telegram: row('telegram_token', 'Telegram bot token'),
  discord: row('discord_token', 'Discord bot token or webhook'),
  mailchimp: row('mailchimp_key', 'Mailchimp key'),
  azureClient: row('azure_client_secret', 'Azure (Entra) client secret'),
  awsSecret: row('aws_secret_key', 'AWS secret access key, near a word that names it'),
} as const

interface Special {
  id: string
  start: number
  end: number
  score: number
}

const AWS = new RegExp(
  `${contextPattern(['aws', 'amazon', 'secret access key', 'secret key']).source}|akia[a-z2-7]{16}`,
)

/** Looks at what starts with a run of letters and digits at `start`, in a run without blanks that ends at `runEnd`. */
export function readSpecialKey(
  text: string,
  start: number,
  runEnd: number,
  surroundings: Surroundings,
): Special | null {
  const wordEnd = LETTERS_AND_DIGITS.runEnd(text, start)
  const length = wordEnd - start
  const found = (detector: DetectorDescription, end: number): Special => ({
    id: detector.id,
    start,
    end,
    score: 0.95,
  })
  if (length >= 8 && length <= 10 && text[wordEnd] === ':' && /^\d+$/.test(text.slice(start, wordEnd))) {
    const end = URL_SAFE.runEnd(text, wordEnd + 1, Math.min(text.length, wordEnd + 48))
    return end - wordEnd === 36 ? found(SPECIAL_KEYS.telegram, end) : null
  }
  if (length === 7 && text.startsWith('discord', start)) return readDiscordWebhook(text, start)
  if (length === 32 && text.startsWith('-us', wordEnd) && LOWER_HEXADECIMAL.runEnd(text, start) === wordEnd) {
    const end = LETTERS_AND_DIGITS.runEnd(text, wordEnd + 1)
    return /^us\d{1,2}$/.test(text.slice(wordEnd + 1, end)) ? found(SPECIAL_KEYS.mailchimp, end) : null
  }
  if (/[MNO]/.test(text.charAt(start))) {
    const discord = readDiscordToken(text, start)
    if (discord !== null) return discord
  }
  const azure = readAzureClientSecret(text, start)
  return azure ?? (runEnd - start < 40 ? null : readAwsSecret(text, start, surroundings))
}

/** The bot's number in base 64, a time, and a signature. */
function readDiscordToken(text: string, start: number): Special | null {
  const first = URL_SAFE.runEnd(text, start, Math.min(text.length, start + 30))
  if (first - start < 23 || first - start > 28 || text[first] !== '.') return null
  const second = URL_SAFE.runEnd(text, first + 1)
  if (second - first < 6 || second - first > 8 || text[second] !== '.') return null
  const end = URL_SAFE.runEnd(text, second + 1, Math.min(text.length, second + 64))
  return end - second >= 28 && end - second <= 44
    ? { id: SPECIAL_KEYS.discord.id, start, end, score: 0.95 }
    : null
}

const WEBHOOK = /discord(?:app)?\.com\/api\/webhooks\/\d{17,20}\/[A-Za-z0-9_-]{60,80}/y

function readDiscordWebhook(text: string, start: number): Special | null {
  WEBHOOK.lastIndex = start
  return WEBHOOK.test(text)
    ? { id: SPECIAL_KEYS.discord.id, start, end: WEBHOOK.lastIndex, score: 0.95 }
    : null
}

/** Three characters, a digit, `Q~`, and 31 to 34 more. */
function readAzureClientSecret(text: string, start: number): Special | null {
  if (!text.startsWith('Q~', start + 4)) return null
  const match = /^[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])/.exec(
    text.slice(start, start + 60),
  )
  return match === null
    ? null
    : { id: SPECIAL_KEYS.azureClient.id, start, end: start + match[0].length, score: 0.95 }
}

/** Forty characters of base 64 after a word of Amazon's. */
function readAwsSecret(text: string, start: number, surroundings: Surroundings): Special | null {
  if (/[A-Za-z0-9+/]/.test(text.charAt(start - 1))) return null
  const match = /^[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])/.exec(text.slice(start, start + 42))
  if (match === null || !/[a-z]/.test(match[0]) || !/[A-Z]/.test(match[0]) || !/\d/.test(match[0]))
    return null
  if (!AWS.test(surroundings.before(start))) return null
  return { id: SPECIAL_KEYS.awsSecret.id, start, end: start + 40, score: 0.95 }
}
