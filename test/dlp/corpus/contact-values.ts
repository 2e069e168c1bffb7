import type { SeededRandom } from './seeded-random.ts'
import { ALPHABETS } from './seeded-random.ts'
import type { Names, SensitiveValue, ValueMaker, ValueMakers } from './values.ts'

/** Mail and network addresses, and addresses that carry a password. */

const WORDS = [
  'anchor',
  'basalt',
  'cobalt',
  'delta',
  'ember',
  'fjord',
  'granite',
  'harbor',
  'indigo',
  'juniper',
  'kestrel',
  'lantern',
  'meadow',
  'nimbus',
  'orchard',
  'pioneer',
  'quartz',
  'ridge',
  'summit',
  'timber',
  'umbra',
  'velvet',
  'willow',
  'zephyr',
] as const
const GIVEN = [
  'anna',
  'bruno',
  'chloe',
  'dmitri',
  'elena',
  'felix',
  'greta',
  'hugo',
  'ines',
  'jan',
  'kenji',
  'lucia',
  'maria',
  'noor',
  'oskar',
  'priya',
  'quentin',
  'rosa',
  'sven',
  'tomas',
] as const
const FAMILY = [
  'almeida',
  'becker',
  'costa',
  'dubois',
  'eriksen',
  'fischer',
  'garcia',
  'hoffmann',
  'ito',
  'jansen',
  'kowalski',
  'larsen',
  'moreau',
  'novak',
  'oconnor',
  'petrov',
  'rossi',
  'schmidt',
  'tanaka',
  'weber',
] as const
const ENDINGS = [
  'com',
  'org',
  'net',
  'io',
  'de',
  'fr',
  'es',
  'it',
  'nl',
  'pl',
  'co.uk',
  'com.br',
  'co.jp',
  'ch',
  'at',
  'se',
  'eu',
  'ca',
  'com.au',
  'cloud',
  'app',
  'tech',
  'in',
  'info',
  'biz',
] as const

function siteName(random: SeededRandom): string {
  const [first, second] = [random.pick(WORDS), random.pick(WORDS)]
  return random.pick([`${first}${second}`, `${first}-${second}`, `${first}${random.integer(1, 99)}`])
}

const site = (random: SeededRandom): string => `${siteName(random)}.${random.pick(ENDINGS)}`

const hostName = (random: SeededRandom): string =>
  random.pick(['', 'www.', 'api.', 'mail.', 'shop.', 'eu-west-1.', 'db01.prod.']) + site(random)

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

const EMAIL_NAMES: Names = {
  en: ['email', 'e-mail address', 'email address'],
  de: ['E-Mail', 'E-Mail-Adresse'],
  fr: ['e-mail', 'adresse électronique', 'courriel'],
  es: ['correo', 'correo electrónico'],
  it: ['e-mail', 'posta elettronica'],
  pt: ['e-mail', 'correio eletrónico'],
  nl: ['e-mailadres'],
  pl: ['adres e-mail'],
  ja: ['メールアドレス'],
  zh: ['邮箱'],
}

const email = (kind: string, local: (random: SeededRandom) => string, host = site): [string, ValueMaker] => [
  kind,
  (random) => ({
    type: 'email',
    kind,
    text: `${local(random)}@${host(random)}`,
    names: EMAIL_NAMES,
    keys: ['email', 'email_address', 'contactEmail', 'user'],
    needsName: false,
  }),
]

export const EMAILS: ValueMakers = Object.fromEntries([
  email('given.family', (random) => `${random.pick(GIVEN)}.${random.pick(FAMILY)}`),
  email(
    'initial',
    (random) => `${random.pick(GIVEN).charAt(0)}${random.pick(FAMILY)}${random.integer(1, 99)}`,
  ),
  email('capitals', (random) => `${capitalized(random.pick(GIVEN))}.${capitalized(random.pick(FAMILY))}`),
  email('tag', (random) => `${random.pick(GIVEN)}+${random.pick(WORDS)}`),
  email(
    'underscore',
    (random) => `${random.pick(GIVEN)}_${random.pick(FAMILY)}-${random.integer(1970, 2009)}`,
  ),
  email('short', (random) => random.characters(ALPHABETS.lower, 2)),
  email('apostrophe', (random) => `${random.pick(GIVEN)}.o'${random.pick(FAMILY)}`),
  email(
    'subdomain',
    (random) => random.pick(GIVEN),
    (random) => `mail.${random.pick(WORDS)}.${site(random)}`,
  ),
  email(
    'international',
    (random) => random.pick(['jörg', 'josé', 'zoë', 'łukasz']),
    (random) => random.pick(['bücher', 'münchen', 'café', 'żółw']) + random.pick(['.de', '.fr', '.com']),
  ),
])

const IP_NAMES: Names = {
  en: ['IP address', 'client IP', 'source address', 'host'],
  de: ['IP-Adresse'],
  fr: ['adresse IP'],
  es: ['dirección IP'],
  it: ['indirizzo IP'],
  pt: ['endereço IP'],
  nl: ['IP-adres'],
  pl: ['adres IP'],
}

const ip = (kind: string, write: (random: SeededRandom) => string): [string, ValueMaker] => [
  kind,
  (random) => ({
    type: 'ip',
    kind,
    text: write(random),
    names: IP_NAMES,
    keys: ['ip', 'remote_addr', 'clientIp', 'source_ip'],
    needsName: false,
  }),
]

const octets = (random: SeededRandom, ...head: number[]): string =>
  [...head, ...Array.from({ length: 4 - head.length }, () => random.integer(1, 254))].join('.')

const hextet = (random: SeededRandom): string => random.integer(1, 0xffff).toString(16)
const hextets = (random: SeededRandom, count: number): string =>
  Array.from({ length: count }, () => hextet(random)).join(':')

export const IP_ADDRESSES: ValueMakers = Object.fromEntries([
  ip('v4', (random) => octets(random, random.integer(11, 126))),
  ip('v4 public', (random) => octets(random, random.integer(128, 223))),
  ip('v4 private', (random) =>
    random.pick([octets(random, 10), octets(random, 192, 168), octets(random, 172, 20)]),
  ),
  ip('v6 full', (random) => `2001:${hextets(random, 7)}`),
  ip(
    'v6 padded',
    (random) => `2a02:${Array.from({ length: 7 }, () => hextet(random).padStart(4, '0')).join(':')}`,
  ),
  ip('v6 short', (random) => `2001:db8::${hextets(random, random.integer(1, 4))}`),
  ip('v6 local', (random) => `fe80::${hextets(random, 4)}`),
  ip('v6 capitals', (random) => `2A00:1450:${hextets(random, 2)}::${hextet(random)}`.toUpperCase()),
  ip('v6 mapped', (random) => `::ffff:${octets(random, 198)}`),
])

const DOMAIN_NAMES: Names = {
  en: ['domain', 'website', 'host name', 'site'],
  de: ['Domain', 'Webseite'],
  fr: ['domaine', 'site'],
  es: ['dominio', 'sitio web'],
  it: ['dominio', 'sito'],
  pt: ['domínio', 'site'],
  nl: ['domein', 'website'],
  pl: ['domena', 'strona'],
}

function domain(
  kind: string,
  write: (random: SeededRandom) => [before: string, host: string, after: string],
): [string, ValueMaker] {
  return [
    kind,
    (random) => {
      const [before, host, after] = write(random)
      return {
        type: 'domain',
        kind,
        text: before + host + after,
        core: { start: before.length, end: before.length + host.length },
        names: DOMAIN_NAMES,
        keys: ['domain', 'hostname', 'website', 'homepage'],
        needsName: false,
      }
    },
  ]
}

export const DOMAINS: ValueMakers = Object.fromEntries([
  domain('bare', (random) => ['', site(random), '']),
  domain('host', (random) => ['', hostName(random), '']),
  domain('capitals', (random) => [
    '',
    `${capitalized(random.pick(WORDS))}${capitalized(random.pick(WORDS))}.com`,
    '',
  ]),
  domain('punycode', (random) => [
    '',
    `xn--${random.pick(['bcher-kva', 'mnchen-3ya', 'caf-dma'])}.${random.pick(['de', 'com', 'eu'])}`,
    '',
  ]),
  domain('address', (random) => [
    'https://',
    hostName(random),
    `/${random.pick(WORDS)}?id=${random.integer(1, 9999)}`,
  ]),
  domain('address with port', (random) => ['http://', hostName(random), `:8443/${random.pick(WORDS)}/`]),
])

const URL_NAMES: Names = {
  en: ['connection string', 'database URL', 'repository address', 'URL'],
  de: ['Verbindungszeichenfolge', 'URL'],
  fr: ['chaîne de connexion', 'URL'],
  es: ['cadena de conexión', 'URL'],
}

function credentials(
  kind: string,
  write: (random: SeededRandom, password: string) => [string, string],
): [string, ValueMaker] {
  return [
    kind,
    (random): SensitiveValue => {
      const password = random.pick([
        random.characters(ALPHABETS.alphanumeric, random.integer(8, 20)),
        `${capitalized(random.pick(WORDS))}${random.pick(['!', '$', '_', '%21'])}${random.integer(10, 9999)}`,
      ])
      const [before, after] = write(random, password)
      return {
        type: 'url_credentials',
        kind,
        text: before + password + after,
        core: { start: before.length, end: before.length + password.length },
        names: URL_NAMES,
        keys: ['database_url', 'DATABASE_URL', 'connectionString', 'remote'],
        needsName: false,
      }
    },
  ]
}

export const URLS_WITH_CREDENTIALS: ValueMakers = Object.fromEntries([
  credentials('https', (random) => [
    `https://${random.pick(GIVEN)}:`,
    `@${hostName(random)}/${random.pick(WORDS)}.git`,
  ]),
  credentials('postgres', (random) => [
    `postgres://${random.pick(WORDS)}:`,
    `@${hostName(random)}:5432/${random.pick(WORDS)}`,
  ]),
  credentials('postgresql', (random) => [`postgresql://app:`, `@${octets(random, 10)}/main?sslmode=require`]),
  credentials('mysql', (random) => [`mysql://root:`, `@${hostName(random)}:3306/${random.pick(WORDS)}`]),
  credentials('mongodb', (random) => [
    `mongodb+srv://${random.pick(GIVEN)}:`,
    `@cluster0.${random.characters(ALPHABETS.lower, 5)}.mongodb.net/test`,
  ]),
  credentials('redis', (random) => ['redis://:', `@${hostName(random)}:6379/0`]),
  credentials('amqp', (random) => [`amqps://${random.pick(WORDS)}:`, `@${hostName(random)}/vhost`]),
  credentials('ftp', (random) => [`ftp://${random.pick(GIVEN)}:`, `@ftp.${site(random)}/in/`]),
])
