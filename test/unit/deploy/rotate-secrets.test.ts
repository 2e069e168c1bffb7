import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import {
  finishRotations,
  nextRing,
  pendingRotations,
  rotateSecret,
} from '../../../scripts/deploy/rotate-secrets.ts'
import { generateSecret, placeholderSecrets, readSecrets } from '../../../scripts/deploy/secrets.ts'
import { parseConfiguration } from '../../../src/env.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-rotation-'))
afterAll(() => rmSync(folder, { recursive: true }))

const KEY = Buffer.alloc(32, 7)
const TEXT = KEY.toString('base64')

describe('the next form of a ring', () => {
  it.each([
    ['p1:a', `p1:a,p2:${TEXT}`],
    ['p1:a,p2:b', 'p2:b,p1:a'],
    ['p2:b, p1:a', `p2:b,p1:a,p3:${TEXT}`],
    ['p2:b,p1:a,p3:c', 'p3:c,p2:b,p1:a'],
    ['old:a', `old:a,old1:${TEXT}`],
    ['2026:a', `2026:a,k2027:${TEXT}`],
  ])('of %s', (ring, next) => {
    expect(nextRing(ring, KEY)).toBe(next)
  })
})

describe('the rotation of a generated secret', () => {
  const file = join(folder, 'secrets.json')
  const stored = () => JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  beforeEach(() => {
    rmSync(file, { force: true })
    const secrets = readSecrets({}, file)
    for (const name of ['ADMIN_TOKEN', 'KEY_PEPPERS', 'VAULT_KEYS']) generateSecret(name, file, secrets)
  })

  it('keeps the present value until it has ended, and uses the next one again after a cut', () => {
    const before = stored()
    const first = readSecrets({}, file)
    expect(rotateSecret('ADMIN_TOKEN', file, first)).toBeNull()
    const next = first.get('ADMIN_TOKEN')
    expect(next).not.toBe(before.ADMIN_TOKEN)
    expect(stored()).toMatchObject(before)
    expect([pendingRotations(file), statSync(file).mode & 0o777]).toEqual([['ADMIN_TOKEN'], 0o600])
    const second = readSecrets({}, file)
    expect(second.get('ADMIN_TOKEN')).toBe(before.ADMIN_TOKEN)
    rotateSecret('ADMIN_TOKEN', file, second)
    expect(second.get('ADMIN_TOKEN')).toBe(next)
    expect(second.redact(`${before.ADMIN_TOKEN} ${next}`)).toBe('[secret] [secret]')
    finishRotations(['ADMIN_TOKEN'], file)
    expect(stored()).toEqual({ ...before, ADMIN_TOKEN: next })
    expect(pendingRotations(file)).toEqual([])
  })

  it.each(['KEY_PEPPERS', 'VAULT_KEYS'])('of %s needs two, and loses no pair', (name) => {
    const before = stored()[name] ?? ''
    const texts = [1, 2].map(() => {
      const secrets = readSecrets({}, file)
      const advice = rotateSecret(name, file, secrets)
      finishRotations([name], file)
      return { advice, pairs: (stored()[name] ?? '').split(',') }
    })
    expect(texts[0]).toEqual({
      advice: expect.stringContaining('30 minutes'),
      pairs: [before, expect.any(String)],
    })
    expect(texts[1]).toEqual({ advice: null, pairs: texts[0]?.pairs.toReversed() })
    const redis = { UPSTASH_REDIS_REST_URL: 'https://x.upstash.io' }
    expect(() => parseConfiguration({ ...placeholderSecrets(), ...stored(), ...redis })).not.toThrow()
  })
})
