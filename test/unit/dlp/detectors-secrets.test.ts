import { describe, expect, it } from 'vitest'
import { VENDOR_KEYS } from '../../../src/dlp/detectors/vendor-keys.ts'
import { found, profileOf } from './finding.ts'

const only = (detector: string) => (text: string) => found(text, profileOf([detector]))

/** A body for a key of a form: characters of its set, as many as it needs. */
function bodyFor(form: (typeof VENDOR_KEYS)[number]['forms'][number]): string | null {
  const alphabet = [...'a9b8c7d6e5f4A0G1H2J3K'].filter((character) => form.body.hasAt(character, 0)).join('')
  const body = alphabet.repeat(Math.ceil(form.shortest / alphabet.length)).slice(0, form.shortest)
  return form.validate && !form.validate(body) ? null : body
}

describe('keys of vendors', () => {
  const keys = VENDOR_KEYS.flatMap(({ id, forms }) =>
    forms.flatMap((form) => {
      const body = bodyFor(form)
      return body === null ? [] : [[id, form.prefix, body] as const]
    }),
  )

  it.each(keys)('%s: %s', (id, prefix, body) => {
    expect(only(id)(`set ${prefix}${body} there`)).toEqual([`${id}: ${prefix}${body}`])
    // Half of a key is none.
    expect(only(id)(`set ${prefix}${body.slice(0, body.length / 3)} there`)).toEqual([])
    // Neither is what only shows where one stands.
    expect(only(id)(`set ${prefix}${'x'.repeat(body.length)} there`)).toEqual([])
  })

  it.each([
    ['aws_access_key', 'AKIAIOSFODNN7EXAMPLE'],
    ['telegram_token', '123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw2'],
    ['mailchimp_key', '0123456789abcdef0123456789abcdef-us6'],
    ['azure_client_secret', 'abC8Q~0123456789abcdefghijABCDEFGHIJ1234'],
    ['telegram_token', '5633778125:AA0Mg5nQPvtOqURsrDGyCSj43XqeIsA0jyg'],
    ['mailgun_api_key', '070d3586f79ae0cbedc3a76bf0dbeeef-b953f0ce-ac2ca94f'],
    ['azure_service_key', `${'aB3dE6gH9jK1mN4pQ7sT0'.repeat(4).slice(0, 76)}AZDO0aB1`],
    ['salesforce_token', `00D5g000008abcD!AQ${'aB3.dE6_'.repeat(10)}`],
    ['tavily_key', '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'],
    ['password_hash', '$2b$12$TItPfc0uSzXzLaFrWTEMAiikS0nM/oJl6cpUI5bDu6P/1otib5xMB'],
    ['sendgrid_key', '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'],
    ['airtable_token', `patAbCdEfGhIjKlMn.${'0123456789abcdef'.repeat(4)}`],
  ])('%s: %s', (id, key) => {
    expect(only(id)(`key=${key};`)).toEqual([`${id}: ${key}`])
  })

  it('a secret key of AWS near a word of AWS', () => {
    const key = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
    expect(only('aws_secret_key')(`aws_secret_access_key = ${key}`)).toEqual([`aws_secret_key: ${key}`])
    expect(only('aws_secret_key')(`checksum ${key}`)).toEqual([])
  })
})

describe('names that stand apart from their values', () => {
  const password = 'Tr0ub4dor3x'

  it.each([
    ['a variable of a container', `- name: DB_PASSWORD\n  value: ${password}`],
    ['the same in JSON', `{\n  "name": "DB_PASSWORD",\n  "value": "${password}"\n}`],
    ['an element', `<db.password>${password}</db.password>`],
    ['an attribute', `<add key="DbPassword" value="${password}" />`],
    ['a variable of Terraform', `variable "db_password" {\n  type = string\n  default = "${password}"\n}`],
    ['an option', `start --db-password ${password} --verbose`],
    ['a line of a Dockerfile', `ENV DB_PASSWORD ${password}`],
    ['a row of a table', `| password | ${password} |`],
    ['an arrow', `password → ${password}`],
    ['a short name', `pw: ${password}`],
    ['SQL', `CREATE USER app IDENTIFIED BY '${password}'`],
    ['Arabic', `كلمة المرور: ${password}`],
  ])('%s', (_, text) => expect(only('secret')(text)).toEqual([`secret: ${password}`]))

  it('on a command line, with the name of the user', () => {
    expect(only('secret')(`curl -u deploy:${password} https://a.example`)).toEqual([
      `secret: deploy:${password}`,
    ])
  })

  it.each([
    '- name: LOG_LEVEL\n  value: debug2024x',
    '<token>identifier</token>',
    'deploy --environment production-eu-west-1',
    '| token | count |',
    'run --next-token 5T1MtPcxK2s03WeVD2eTEn1tNtEnAo',
    "{ vault_id: 'vlt_011CZkZDLs7fYzm1hXNPeRjv', credential: null }",
  ])('not %j', (text) => expect(only('secret')(text)).toEqual([]))
})

const TOKEN =
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c'

describe('tokens and keys', () => {
  it('a JSON web token', () => {
    expect(only('jwt')(`Bearer ${TOKEN}.`)).toEqual([`jwt: ${TOKEN}`])
    expect(only('jwt')('eyJub3QiOiJhIHRva2VuIn0.eyJhIjoxfQ.abc')).toEqual([])
    expect(only('jwt')(TOKEN.slice(0, 36))).toEqual([])
  })

  it('basic credentials', () => {
    expect(only('basic_credentials')('Authorization: Basic dXNlcjpwYXNzd29yZA==')).toEqual([
      'basic_credentials: dXNlcjpwYXNzd29yZA==',
    ])
    expect(only('basic_credentials')('Basic mathematics')).toEqual([])
  })

  const line = 'MIIEowIBAAKCAQEA1234567890abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL'
  it.each([
    ['RSA', `-----BEGIN RSA PRIVATE KEY-----\n${line}\n${line}\nabc=\n-----END RSA PRIVATE KEY-----`],
    [
      'an encrypted one',
      `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00AA\n\n${line}\n-----END RSA PRIVATE KEY-----`,
    ],
    ['OpenSSH', `-----BEGIN OPENSSH PRIVATE KEY-----\r\n${line}\r\n-----END OPENSSH PRIVATE KEY-----`],
    [
      'PGP',
      `-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n${line}\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----`,
    ],
    ['written-out line ends', `-----BEGIN PRIVATE KEY-----\\n${line}\\n-----END PRIVATE KEY-----`],
    ['cut off', `-----BEGIN PRIVATE KEY-----\n${line}\n${line}`],
  ])('a private key: %s', (_, block) => {
    expect(only('private_key')(`key: "${block}"\n\nThanks`)).toEqual([`private_key: ${block}`])
  })

  it.each([
    `-----BEGIN PUBLIC KEY-----\n${line}\n-----END PUBLIC KEY-----`,
    '-----BEGIN PRIVATE KEY----- is the first line of such a file',
    '-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----',
  ])('no private key: %s', (text) => expect(only('private_key')(text)).toEqual([]))
})

describe('secrets after words that name them', () => {
  it.each([
    ['password: ', 'hunter2!'], ['"password": "', 'a(b)c,d1'], ['DB_PASSWORD=', 'Tr0ub4dor&3'], ['api_key = "', '9f8a7b6c5d4e3f2a1b0c9d8e'],
    ['client_secret: ', 'Zx9-kLm_42pQ7rT'], ['Authorization: Bearer ', 'abcDEF123456ghiJKL7890'], ['?token=', 'abcdef0123456789abcdef'],
    ['the password is ', 'Tr0ub4dor&3'], ['密码：', 'Abc12345!'], ['Kennwort lautet ', 'Sommer2024!'], ['key=', 'kJ8sd7fG6hJ5kL4mN3bV2cX1'],
    ['id;password;active\n1;', 'jgYKG^v^iq!?A19=s2_C'],
  ])('%s%s', (words, value) => {
    const end = words.endsWith('"') ? '"' : ''
    expect(only('secret')(`${words}${value}${end}`)).toEqual([`secret: ${value}`])
  }) // biome-ignore format: a list

  it.each([
    'password: required', 'token: string', 'password = os.environ["DB_PASSWORD"]', 'token = getToken()', 'apiKey: process.env.API_KEY',
    'password: <your password>', `password=\${PASSWORD}`, 'password: ********', 'max_tokens: 4096', 'next_page_token=abc123def456ghi7',
    'public_key: abcdef0123456789abcd', 'key: value', 'primary key: user_id', 'sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'commit d41d8cd98f00b204e9800998ecf8427e', 'id 550e8400-e29b-41d4-a716-446655440000', 'the key is on the table', 'secret: true', 'Your password must have 8 characters',
  ])('not %s', (text) => expect(only('secret')(text)).toEqual([])) // biome-ignore format: a list
})

describe('wallets', () => {
  it.each([
    ['bitcoin_address', '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa'], ['bitcoin_address', '3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy'],
    ['bitcoin_address', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'],
    ['bitcoin_address', 'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0'],
    ['ethereum_address', '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'], ['ethereum_address', '0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359'],
    ['litecoin_address', 'LM2WMpR1Rp6j3Sa59cMXMs1SPzj9eXpGc1'], ['dogecoin_address', 'DH5yaieqoZN36fDVciNyRueRGvGLR3mr7L'],
    ['tron_address', 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'], ['ripple_address', 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh'],
    ['stellar_address', 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7'],
    ['wallet_private_key', '5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ'],
  ])('%s: %s', (id, address) => {
    expect(only(id)(`to ${address}!`)).toEqual([`${id}: ${address}`])
    // Another last character breaks the checksum, where there is one.
    const last = address.endsWith('2') ? '3' : '2'
    const lower = /^0x[0-9a-f]+$/.test(address)
    if (!lower) expect(only(id)(`to ${address.slice(0, -1)}${last}!`)).toEqual([])
  }) // biome-ignore format: a list

  it('Solana only near a word for it', () => {
    const address = '7EqQdEULxWcraVx3mXKFjc84LhCkMGZCkRuDpvcMwJeK'
    expect(only('solana_address')(`wallet: ${address}`)).toEqual([`solana_address: ${address}`])
    expect(only('solana_address')(`digest ${address}`)).toEqual([])
  })
})
