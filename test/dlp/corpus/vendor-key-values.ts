import { crc32 } from 'node:zlib'
import type { SeededRandom } from './seeded-random.ts'
import { ALPHABETS } from './seeded-random.ts'
import type { Names, SensitiveValue, ValueMakers } from './values.ts'

/** Keys as their vendors' documentation shows them. Marks are joined at run time, so that no scanner takes this file for a leak. */

const { alphanumeric, base64url, hexadecimal, upper, lower, digits, upperAlphanumeric } = ALPHABETS
const BASE62 = digits + upper + lower

type Part = string | readonly [alphabet: string, count: number]

/** Pattern of a vendor's keys: literal marks, and runs of an alphabet. */
const parts =
  (...list: readonly Part[]) =>
  (random: SeededRandom): string =>
    list.map((part) => (typeof part === 'string' ? part : random.characters(...part))).join('')

/** GitHub's blog on its token formats: 30 random characters and a CRC-32 of them in base 62, six wide. */
const githubToken =
  (mark: string) =>
  (random: SeededRandom): string => {
    const body = random.characters(alphanumeric, 30)
    let check = ''
    for (let rest = crc32(body), count = 0; count < 6; count++, rest = Math.floor(rest / 62)) {
      check = BASE62.charAt(rest % 62) + check
    }
    return `${mark}_${body}${check}`
  }

const WRITERS: Record<string, (random: SeededRandom) => string> = {
  aws_access_key: parts('AK', 'IA', ['ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16]),
  aws_session_key: parts('AS', 'IA', ['ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16]),
  github_personal: githubToken('ghp'),
  github_server: githubToken('ghs'),
  github_oauth: githubToken('gho'),
  github_fine_grained: parts('github', '_pat_', [alphanumeric, 22], '_', [alphanumeric, 59]),
  gitlab_personal: parts('gl', 'pat-', [base64url, 20]),
  slack_bot: parts('xo', 'xb-', [digits, 12], '-', [digits, 12], '-', [alphanumeric, 24]),
  slack_user: parts('xo', 'xp-', [digits, 12], '-', [digits, 12], '-', [digits, 12], '-', [hexadecimal, 32]),
  slack_webhook: parts(
    'https://hooks.',
    'slack.com/services/T',
    [upperAlphanumeric, 8],
    '/B',
    [upperAlphanumeric, 10],
    '/',
    [alphanumeric, 24],
  ),
  stripe_secret: parts('sk', '_live_', [alphanumeric, 24]),
  stripe_long: parts('sk', '_live_51', [alphanumeric, 97]),
  stripe_restricted: parts('rk', '_live_', [alphanumeric, 24]),
  openai_legacy: parts('s', 'k-', [alphanumeric, 20], 'T3Blbk', 'FJ', [alphanumeric, 20]),
  openai_project: parts('sk-', 'proj-', [base64url, 74], 'T3Blbk', 'FJ', [base64url, 73], ['abcdef', 1]),
  anthropic: parts('sk-', 'ant-api03-', [base64url, 93], 'AA'),
  google_api: parts('AI', 'za', [base64url, 34], [alphanumeric, 1]),
  google_client_secret: parts('GOC', 'SPX-', [base64url, 27], [alphanumeric, 1]),
  sendgrid: parts('S', 'G.', [base64url, 22], '.', [base64url, 42], [alphanumeric, 1]),
  twilio_key: parts('S', 'K', [hexadecimal, 32]),
  npm: parts('np', 'm_', [alphanumeric, 36]),
  pypi: parts('py', 'pi-AgEIcHlwaS5vcmc', [base64url, 80], [alphanumeric, 1]),
  digitalocean: parts('do', 'p_v1_', [hexadecimal, 64]),
  hugging_face: parts('h', 'f_', [upper + lower, 34]),
  shopify: parts('shp', 'at_', [hexadecimal, 32]),
  telegram_bot: parts(['123456789', 1], [digits, 9], ':', 'AA', [base64url, 32], [alphanumeric, 1]),
  mailgun: parts('ke', 'y-', [hexadecimal, 32]),
  discord_bot: parts(
    'MT',
    [alphanumeric, 24],
    '.',
    'G',
    [alphanumeric, 5],
    '.',
    [base64url, 37],
    [alphanumeric, 1],
  ),
  linear: parts('lin', '_api_', [alphanumeric, 40]),
  notion: parts('nt', 'n_', [digits, 11], [alphanumeric, 35]),
  databricks: parts('da', 'pi', [hexadecimal, 32]),
  doppler: parts('dp', '.pt.', [alphanumeric, 43]),
  grafana: parts('gl', 'sa_', [alphanumeric, 32], '_', [hexadecimal, 8]),
  new_relic: parts('NR', 'AK-', [upperAlphanumeric, 27]),
  postman: parts('PM', 'AK-', [hexadecimal, 24], '-', [hexadecimal, 34]),
  square: parts('sq0', 'atp-', [base64url, 21], [alphanumeric, 1]),
  figma: parts('fi', 'gd_', [base64url, 39], [alphanumeric, 1]),
  azure_storage: (random) =>
    `DefaultEndpointsProtocol=https;AccountName=${random.characters(lower, 10)};AccountKey=${Buffer.from(random.bytes(64)).toString('base64')}`,
  docker: parts('dck', 'r_pat_', [base64url, 26], [alphanumeric, 1]),
  vault: parts('hv', 's.', [base64url, 90], [alphanumeric, 1]),
  groq: parts('gs', 'k_', [alphanumeric, 52]),
  xai: parts('x', 'ai-', [alphanumeric, 80]),
  replicate: parts('r', '8_', [alphanumeric, 37]),
  perplexity: parts('pp', 'lx-', [alphanumeric, 48]),
  airtable: parts('pa', 't', [alphanumeric, 14], '.', [hexadecimal, 64]),
  supabase: parts('sb', 'p_', [hexadecimal, 40]),
}

const NAMES: Names = {
  en: ['key', 'API key', 'token', 'credential'],
  de: ['API-Schlüssel'],
  fr: ["clé d'API"],
  es: ['clave de API'],
}

/** If the vendor marks the beginning of the key only, the account's name before it need not be covered. */
function coreOf(kind: string, text: string): SensitiveValue['core'] {
  if (kind === 'azure_storage') return { start: text.indexOf('AccountKey=') + 11, end: text.length }
  if (kind === 'slack_webhook') return { start: text.indexOf('/services/') + 10, end: text.length }
  return undefined
}

export const VENDOR_KEYS: ValueMakers = Object.fromEntries(
  Object.entries(WRITERS).map(([kind, write]) => [
    kind,
    (random: SeededRandom): SensitiveValue => {
      const text = write(random)
      const core = coreOf(kind, text)
      return {
        type: 'vendor_key',
        kind,
        text,
        ...(core && { core }),
        names: NAMES,
        keys: ['api_key', 'token', 'key', 'credential'],
        needsName: false,
      }
    },
  ]),
)
