import { describe, expect, it } from 'vitest'
import { parseConfiguration } from '../../src/env.ts'

const key = Buffer.alloc(32, 1).toString('base64')
const TOKEN = 'a-token-of-at-least-32-characters'
const MEMBER = '00000000-0000-4000-8000-000000000001/00000000-0000-4000-8000-000000000002'

const parsed = (LOCAL_SIGN_IN: string, BASE_URL?: string) =>
  parseConfiguration({
    DATABASE_URL: 'postgres://user:password@host/database',
    UPSTASH_REDIS_REST_URL: 'https://name.upstash.io',
    UPSTASH_REDIS_REST_TOKEN: 'token',
    KEY_PEPPERS: `p1:${key}`,
    VAULT_KEYS: `v1:${key}`,
    LOCAL_SIGN_IN,
    ...(BASE_URL !== undefined && { BASE_URL }),
  }).LOCAL_SIGN_IN

describe('LOCAL_SIGN_IN', () => {
  it.each(['http://localhost:8787', 'http://127.0.0.1:8787', 'http://[::1]:1'])(
    'is taken with %s',
    (base) => {
      const [organizationId, userId] = MEMBER.split('/')
      expect(parsed(`${TOKEN},${MEMBER}`, base)).toEqual({
        token: TOKEN,
        members: [{ organizationId, userId }],
      })
      expect(parsed('', base)).toBeUndefined()
    },
  )

  it.each([
    undefined,
    'https://gateway.example.com',
    'http://gateway.example.com',
    'https://localhost:8787',
    'http://localhost.example.com',
    'http://127.0.0.1.example.com',
    'http://localhost@example.com',
    'http://192.168.0.1',
    'http://0.0.0.0:8787',
  ])('is refused with %s', (base) => {
    expect(() => parsed(`${TOKEN},${MEMBER}`, base)).toThrow('LOCAL_SIGN_IN is refused')
  })

  it.each([TOKEN, `short,${MEMBER}`, `${TOKEN},x`, `${TOKEN},${MEMBER},`, `${TOKEN},${MEMBER},x/y`])(
    'is not %s',
    (value) => {
      expect(() => parsed(value, 'http://localhost:8787')).toThrow('LOCAL_SIGN_IN must be')
    },
  )
})
