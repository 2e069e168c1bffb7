import { describe, expect, it } from 'vitest'
import { parseConfiguration } from '../../src/env.ts'

const key = Buffer.alloc(32, 1).toString('base64')
const REQUIRED = {
  DATABASE_URL: 'postgres://user:password@host/database',
  UPSTASH_REDIS_REST_URL: 'https://name.upstash.io',
  UPSTASH_REDIS_REST_TOKEN: 'token',
  KEY_PEPPERS: `p1:${key}`,
  VAULT_KEYS: `v1:${key}`,
}
const parse = (variables: Record<string, string>) => parseConfiguration({ ...REQUIRED, ...variables })

describe('the provider of searches', () => {
  it('is local without a configuration', () => {
    expect(parse({})).toMatchObject({ SEARCH_PROVIDER: 'local', WEB_EGRESS_ALLOW: [] })
    expect(parse({ SEARCH_API_KEY: '', SEARCH_URL: '' }).SEARCH_URL).toBeUndefined()
  })

  it.each([
    [{ SEARCH_PROVIDER: 'brave', SEARCH_API_KEY: 'key' }],
    [{ SEARCH_PROVIDER: 'tavily', SEARCH_API_KEY: 'key', SEARCH_URL: 'https://a.example/' }],
    [{ SEARCH_PROVIDER: 'searxng', SEARCH_URL: 'http://127.0.0.1:8888' }],
  ])('is accepted with what it needs: %j', (variables) => {
    expect(parse(variables)).toMatchObject({ SEARCH_PROVIDER: variables.SEARCH_PROVIDER })
  })

  it.each([
    [{ SEARCH_PROVIDER: 'brave' }, 'SEARCH_API_KEY is not set, and the search provider brave needs it'],
    [{ SEARCH_PROVIDER: 'tavily', SEARCH_API_KEY: '' }, 'SEARCH_API_KEY is not set'],
    [{ SEARCH_PROVIDER: 'searxng', SEARCH_API_KEY: 'canary' }, 'SEARCH_URL is not set'],
    [{ SEARCH_PROVIDER: 'other' }, 'SEARCH_PROVIDER'],
    [{ SEARCH_URL: 'ftp://a.example/' }, 'SEARCH_URL'],
    [{ SEARCH_URL: 'https://user:canary@a.example/' }, 'SEARCH_URL must not have a credential'],
  ])('is refused without it: %j', (variables, message) => {
    expect(() => parse(variables)).toThrow(message)
    expect(() => parse(variables)).not.toThrow('canary')
  })
})
