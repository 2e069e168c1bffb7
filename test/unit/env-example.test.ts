import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configurationSchema, parseConfiguration } from '../../src/env.ts'

const ROOT = join(import.meta.dirname, '../..')
const EXAMPLE = readFileSync(join(ROOT, '.env.example'), 'utf8')
const CONFIGURATION_PAGE = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8')

/** Variables that only the scripts read. */
const SCRIPT_VARIABLES = [
  'PORT',
  'HEADGATE_FOLDER',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_BASE_URL',
  'HEADGATE_URL',
  'HEADGATE_ORGANIZATION',
  'PROVIDER_CREDENTIAL',
  'CONNECTION_CREDENTIAL',
]

const workerVariables = Object.keys(configurationSchema.shape)
const expected = [...workerVariables, ...SCRIPT_VARIABLES].sort()

/** Name and value of every line `# NAME=value`. */
const entries = [...EXAMPLE.matchAll(/^#? ?([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(([, name = '', value = '']) => ({
  name,
  value,
}))

describe('.env.example', () => {
  it('has every variable once and no other', () => {
    expect(entries.map(({ name }) => name).sort()).toEqual(expected)
  })

  it('sets nothing', () => {
    expect(EXAMPLE.split('\n').filter((line) => line !== '' && !line.startsWith('#'))).toEqual([])
  })

  it('shows the defaults that the schema has', () => {
    const key = Buffer.alloc(32, 1).toString('base64')
    const defaults: Record<string, unknown> = parseConfiguration({
      DATABASE_URL: 'postgres://user:password@host/database',
      UPSTASH_REDIS_REST_URL: 'https://name.upstash.io',
      UPSTASH_REDIS_REST_TOKEN: 'token',
      KEY_PEPPERS: `p1:${key}`,
      VAULT_KEYS: `v1:${key}`,
    })
    const numbers = Object.entries(defaults).filter(([, value]) => typeof value === 'number')
    expect(numbers.length).toBeGreaterThan(10)
    for (const [name, value] of numbers) {
      expect(entries).toContainEqual({ name, value: String(value) })
    }
  })
})

describe('docs/configuration.md', () => {
  it('has a row for every variable', () => {
    const rows = CONFIGURATION_PAGE.matchAll(/^\|([^|]*`[A-Z][^|]*)\|/gm)
    const named = [...rows].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([A-Z][A-Z0-9_]*)`/g)].map(([, name = '']) => name),
    )
    expect(named).toEqual(expect.arrayContaining(expected))
    expect(named.filter((name) => !expected.includes(name))).toEqual([])
  })
})
