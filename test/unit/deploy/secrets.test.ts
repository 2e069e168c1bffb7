import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  generateSecret,
  placeholderSecrets,
  readSecrets,
  SecretValues,
} from '../../../scripts/deploy/secrets.ts'
import { parseConfiguration } from '../../../src/env.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-secrets-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('secrets of a deployment', () => {
  it('are generated once, into a private file, and read from it by the next run', () => {
    const file = join(folder, 'once.json')
    const first = readSecrets({}, file)
    for (const name of ['ADMIN_TOKEN', 'KEY_PEPPERS', 'VAULT_KEYS']) generateSecret(name, file, first)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const second = readSecrets({}, file)
    for (const name of ['ADMIN_TOKEN', 'KEY_PEPPERS', 'VAULT_KEYS']) {
      generateSecret(name, file, second)
      expect([second.get(name), second.source(name)]).toEqual([first.get(name), 'file'])
    }
  })

  it('have the form that the Worker takes', () => {
    const file = join(folder, 'form.json')
    const secrets = readSecrets({}, file)
    for (const name of ['ADMIN_TOKEN', 'KEY_PEPPERS', 'VAULT_KEYS']) generateSecret(name, file, secrets)
    const values = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
    const redis = { UPSTASH_REDIS_REST_URL: 'https://x.upstash.io' }
    expect(() => parseConfiguration({ ...placeholderSecrets(), ...values, ...redis })).not.toThrow()
  })

  it('of the environment win over the file', () => {
    const file = join(folder, 'both.json')
    writeFileSync(file, '{"ADMIN_TOKEN": "of the file", "KEY_PEPPERS": "of the file"}')
    const secrets = readSecrets({ ADMIN_TOKEN: 'of the environment' }, file)
    expect([secrets.get('ADMIN_TOKEN'), secrets.get('KEY_PEPPERS')]).toEqual([
      'of the environment',
      'of the file',
    ])
  })

  it('of a damaged file are an error that does not quote it', () => {
    const file = join(folder, 'damaged.json')
    writeFileSync(file, '{"ADMIN_TOKEN": canary-value')
    expect(() => readSecrets({}, file)).toThrow(/damaged\.json is damaged: it must be/)
    expect(() => readSecrets({}, file)).not.toThrow(/canary/)
  })

  it('are removed from messages in every form', () => {
    const secrets = new SecretValues()
    secrets.add('DATABASE_URL', 'postgres://user:pass%40word@host/db', 'environment')
    secrets.add('VAULT_KEYS', 'v1:a+b/c="quoted"', 'file')
    const text =
      'postgres://user:pass%40word@host/db pass%40word v1:a+b/c="quoted" v1:a+b/c=\\"quoted\\" v1%3Aa%2Bb%2Fc%3D%22quoted%22'
    expect(secrets.redact(text)).toBe('[secret] [secret] [secret] [secret] [secret]')
  })
})
