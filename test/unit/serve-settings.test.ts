import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Backoff } from '../../scripts/node/backoff.ts'
import { checkKeys } from '../../scripts/serve/backup/manifest.ts'
import { clientAddress, readRanges } from '../../scripts/serve/client-address.ts'
import { databaseConnection } from '../../scripts/serve/database-connection.ts'
import {
  fingerprints,
  readNodeSettings,
  readToolsSettings,
  SettingsError,
} from '../../scripts/serve/settings.ts'
import { nodeSecrets } from '../harness/serve-node.ts'

const whole = (): Record<string, string> => ({
  ...nodeSecrets(),
  DATABASE_URL: 'postgres://u:p@db.example.com/gate?sslmode=verify-full',
  REDIS_URL: 'rediss://:p@redis.example.com:6380',
  CONTENT: '/srv/content',
  DATA_DIR: '/srv/data',
  BASE_URL: 'https://gate.example.com',
})

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    readNodeSettings(environment)
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.problems
    throw error
  }
}

describe('settings of a node', () => {
  it('are read, with the limits that are left out', () => {
    expect(readNodeSettings(whole())).toMatchObject({
      host: '127.0.0.1',
      port: 8787,
      stopLimitMs: 30_000,
      poolSize: 20,
      migrates: true,
      toolsAddress: null,
      content: { folder: '/srv/content' },
      database: { ssl: { rejectUnauthorized: true } },
    })
  })

  it('name each variable that is missing', () => {
    const names = problemsOf({}).map((problem) => problem.replace(' is not set', ''))
    expect(names).toEqual([
      'DATABASE_URL',
      'REDIS_URL',
      'CONTENT',
      'BASE_URL',
      'DATA_DIR',
      'ADMIN_TOKEN',
      'KEY_PEPPERS',
      'VAULT_KEYS',
    ])
  })

  const repeated = `p1:${Buffer.alloc(32, 7).toString('base64')}`
  it.each([
    ['ADMIN_TOKEN', 'short', 'ADMIN_TOKEN is weak: make 32 random characters or more'],
    ['ADMIN_TOKEN', 'a'.repeat(40), 'ADMIN_TOKEN is weak: make 32 random characters or more'],
    ['KEY_PEPPERS', repeated, 'KEY_PEPPERS is weak: make each key of 32 random bytes'],
    ['VAULT_KEYS', 'v1:c2hvcnQ=', 'VAULT_KEYS must be id:base64 pairs of 32-byte keys, current first'],
    ['BASE_URL', 'http://gate.example.com', 'BASE_URL must be an https:// origin, or http on loopback'],
    ['REDIS_URL', 'http://redis', 'REDIS_URL must be a redis:// or rediss:// URL'],
    ['CONTENT', 'content', 'CONTENT must be the path of a folder, or s3://bucket/prefix'],
    ['CONTENT', 's3://content/a/../b', 'CONTENT must have no . or .. in its prefix'],
    ['CONTENT', 's3://content/..', 'CONTENT must have no . or .. in its prefix'],
    ['DATA_DIR', 'data', 'DATA_DIR must be an absolute path'],
    ['DATA_DIR', `/${'d'.repeat(90)}`, 'DATA_DIR must not be longer than 80 bytes: it has Unix sockets'],
    ['TRUSTED_PROXIES', 'proxy', 'TRUSTED_PROXIES must be addresses or ranges such as 10.0.0.0/8'],
    ['QSTASH_TOKEN', 'x', 'QSTASH_TOKEN is not for npm run serve; remove it'],
    ['LOCAL_SIGN_IN', 'x', 'LOCAL_SIGN_IN is not for npm run serve; remove it'],
    ['SEARCH_PROVIDER', 'brave', 'SEARCH_API_KEY is not set, and the search provider brave needs it'],
    ['CONTENT', 's3://content', 'AWS_ACCESS_KEY_ID is not set, and CONTENT in S3 needs it'],
    ['USER_RATE_LIMIT', '0', 'USER_RATE_LIMIT Too small: expected number to be >=1'],
  ])('refuse %s as %s', (name, value, problem) => {
    expect(problemsOf({ ...whole(), [name]: value })).toContain(problem)
  })

  it('refuse one key for two purposes', () => {
    const { KEY_PEPPERS = '' } = whole()
    expect(problemsOf({ ...whole(), KEY_PEPPERS, VAULT_KEYS: KEY_PEPPERS })).toEqual([
      'VAULT_KEYS has a key of KEY_PEPPERS',
    ])
  })

  it('come from files too', () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-settings-'))
    try {
      const { ADMIN_TOKEN = '', ...others } = whole()
      writeFileSync(join(folder, 'token'), `${ADMIN_TOKEN}\n`)
      const settings = readNodeSettings({ ...others, ADMIN_TOKEN_FILE: join(folder, 'token') })
      expect(settings.variables.ADMIN_TOKEN).toBe(ADMIN_TOKEN)
      expect(problemsOf({ ...others, ADMIN_TOKEN_FILE: join(folder, 'none') })).toContain(
        'ADMIN_TOKEN_FILE names a file that cannot be read',
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('are refused by the command without a value of them', () => {
    const wrong = { ...whole(), ADMIN_TOKEN: 'weak-and-secret', REDIS_URL: 'secret-address' }
    const script = join(import.meta.dirname, '../../scripts/serve.ts')
    const { status, stdout, stderr } = spawnSync(process.execPath, [script], {
      env: { PATH: process.env.PATH, ...wrong },
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([1, ''])
    const reasons = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).reason as string)
    expect(reasons.map((reason) => reason.split(' ', 1)[0])).toEqual(['REDIS_URL', 'ADMIN_TOKEN'])
    for (const value of Object.values(wrong)) expect(stdout).not.toContain(value)
  })

  it('of the tools alone need no secret', () => {
    expect(readToolsSettings({ DATA_DIR: '/srv/tools' })).toMatchObject({ port: 8788, host: '127.0.0.1' })
    expect(() => readToolsSettings({})).toThrow('DATA_DIR is not set')
  })
})

describe('the connection to the database', () => {
  const url = (host: string, query = '') => `postgres://u:p@${host}/gate${query}`
  it.each([
    [url('127.0.0.1'), false],
    [url('localhost:6432'), false],
    [url('db.example.com', '?sslmode=disable'), false],
    [url('db.example.com', '?sslmode=require'), { rejectUnauthorized: true }],
    [url('db.example.com', '?sslmode=verify-full&application_name=x'), { rejectUnauthorized: true }],
    [url('db.example.com', '?sslmode=no-verify'), { rejectUnauthorized: false }],
  ])('of %s', (text, ssl) => {
    const connection = databaseConnection(text)
    expect(connection.ssl).toEqual(ssl)
    expect(connection.connectionString).not.toContain('sslmode')
  })

  it.each([
    [url('db.example.com'), 'needs sslmode=verify-full'],
    [url('postgres'), 'needs sslmode=verify-full'],
    [url('127.0.0.1.example.com'), 'needs sslmode=verify-full'],
    [url('db.example.com', '?sslmode=prefer'), 'has an sslmode other than'],
    [
      url('db.example.com', '?sslmode=verify-ca&sslrootcert=/none'),
      'a certificate or key file that cannot be read',
    ],
    ['mysql://x', 'must be a postgres://'],
  ])('refuses %s', (text, reason) => {
    expect(() => databaseConnection(text)).toThrow(reason)
  })
})

describe('the address of a client', () => {
  const trusted = readRanges('10.0.0.0/8, ::1, 192.0.2.7')
  it.each([
    ['203.0.113.1', undefined, '203.0.113.1'],
    // A header of whoever is not a trusted proxy counts for nothing.
    ['203.0.113.1', '198.51.100.1', '203.0.113.1'],
    ['10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '192.0.2.66, 198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '192.0.2.66, 198.51.100.1, 10.9.9.9', '198.51.100.1'],
    ['::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['::1', '2001:db8::1', '2001:db8::1'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', 'unknown, 10.1.1.1', '10.1.1.1'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['192.0.2.7', '10.0.0.9', '10.0.0.9'],
    [undefined, '198.51.100.1', null],
  ])('of a connection from %s with %s is %s', (peer, forwardedFor, address) => {
    expect(clientAddress(peer, forwardedFor, trusted)).toBe(address)
  })
})

describe('keys of a backup', () => {
  const [one, other] = [nodeSecrets(), nodeSecrets()]
  const keys = ({ KEY_PEPPERS = '', VAULT_KEYS = '' }: Record<string, string>) => ({
    KEY_PEPPERS: fingerprints(KEY_PEPPERS),
    VAULT_KEYS: fingerprints(VAULT_KEYS),
  })

  it('have to be set, and more may be', () => {
    const rotated = { ...one, VAULT_KEYS: `${other.VAULT_KEYS?.replace('v1', 'v2')},${one.VAULT_KEYS}` }
    expect(() => checkKeys(keys(one), keys(rotated))).not.toThrow()
    expect(() => checkKeys(keys(rotated), keys(one))).toThrow('VAULT_KEYS lacks the key v2')
    expect(() => checkKeys(keys(one), keys(other))).toThrow(
      'the key p1 of KEY_PEPPERS is not that of the backup',
    )
  })
})

it('restarts wait longer each time, up to ten seconds, and shortly after a long run', () => {
  const backoff = new Backoff()
  const waits = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((second) => backoff.next(second * 1_000))
  expect(waits).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000])
  expect(backoff.next(100_000)).toBe(200)
})
