import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { UPLOADED_SECRETS } from '../../../scripts/deploy/secrets.ts'
import { parseSettings, readSettings, testedOrigin } from '../../../scripts/deploy/settings.ts'

const ROOT = join(import.meta.dirname, '../../..')
const ACCOUNT = '0123456789abcdef0123456789abcdef'
const settings = (members: Record<string, unknown> = {}) =>
  parseSettings({ stage: 'production', account: ACCOUNT, gateway: {}, ...members })

describe('deploy.json', () => {
  it('has an example that fits', () => {
    expect(readSettings(join(ROOT, 'deploy.example.json')).gateway.hosts).toEqual(['gateway.example.com'])
  })

  it('has defaults for everything but the account', () => {
    expect(settings()).toMatchObject({
      gateway: { name: 'headgate', workersDev: false },
      tools: { name: 'headgate-tools' },
      bucket: 'headgate-content',
      rollout: { steps: [10, 100], waitSeconds: 60 },
    })
  })

  it.each([
    [{ gateway: { variables: { ADMIN_TOKEN: 'x' } } }, 'gateway.variables.ADMIN_TOKEN: is a secret'],
    [
      { gateway: { variables: { BASE_ULR: 'x' } } },
      'gateway.variables.BASE_ULR: is no variable of the Worker',
    ],
    [{ account: 'acme' }, 'account: must be the id of an account'],
    [{ rollout: { steps: [10, 50] } }, 'rollout.steps: must end with 100'],
    [{ rollout: { steps: [50, 10, 100] } }, 'rollout.steps: must rise'],
    [{ gateway: { hosts: ['https://gateway.example.com'] } }, 'gateway.hosts.0: must be a host name'],
    [{ gateway: { name: 'a"b' } }, 'gateway.name: must be a name'],
    [{ secrets: {} }, 'Unrecognized key'],
    [{ smokeTest: { url: 'http://gateway.example.com' } }, 'smokeTest.url: must begin with https:'],
    [{ smokeTest: { url: 'HTTP://10.0.0.7:8787' } }, 'smokeTest.url: must begin with https:'],
    [{ smokeTest: { url: 'http://localhost@gateway.example.com' } }, 'smokeTest.url: must begin with https:'],
    [
      { gateway: { variables: { BASE_URL: 'http://gateway.example.com' } } },
      'gateway.variables.BASE_URL: must begin with https:',
    ],
  ])('refuses %j', (members, problem) => {
    expect(() => settings(members)).toThrow(problem)
  })

  it('says where the gateway is tested', () => {
    const hosts = { gateway: { hosts: ['a.example.com', 'b.example.com'] } }
    expect(testedOrigin(settings(hosts))).toBe('https://a.example.com')
    expect(testedOrigin(settings({ ...hosts, smokeTest: { url: 'https://c.example.com' } }))).toBe(
      'https://c.example.com',
    )
    expect(testedOrigin(settings())).toBe(null)
    for (const url of ['http://127.0.0.1:8787', 'http://localhost:8787', 'http://[::1]:8787']) {
      expect(testedOrigin(settings({ smokeTest: { url } }))).toBe(url)
    }
    // Not what the test calls.
    const variables = { BASE_URL: 'http://gateway.example.com' }
    expect(testedOrigin(settings({ gateway: { hosts: ['a.example.com'], variables } }))).toBe(
      'https://a.example.com',
    )
  })
})

describe('the secrets of a deployment', () => {
  it('are those of docs/configuration.md', () => {
    const text = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8')
    const named = [...text.matchAll(/`([A-Z_]+)` \(secret\)/g)].map(([, name]) => name)
    expect([...UPLOADED_SECRETS, 'LOCAL_SIGN_IN'].sort()).toEqual(named.sort())
  })
})
