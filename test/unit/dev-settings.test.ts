import { describe, expect, it } from 'vitest'
import { readPort, stackPlan } from '../../scripts/dev-plan.ts'
import { stackCommands } from '../../scripts/local/stack.ts'
import { createLocalSecrets } from '../../scripts/local-secrets.ts'
import { workerVariables } from '../../scripts/worker-variables.ts'
import { parseConfiguration } from '../../src/env.ts'

const secrets = createLocalSecrets()
const services = {
  baseUrl: 'http://127.0.0.1:8787',
  postgres: 'http://127.0.0.1:1001',
  redis: 'http://127.0.0.1:1002',
  qstash: 'http://127.0.0.1:1003',
  modelUpstream: 'http://127.0.0.1:1004',
}
const variables = (environment: NodeJS.ProcessEnv = {}) => workerVariables(environment, secrets, services)
const plan = (environment: NodeJS.ProcessEnv = {}) => stackPlan(environment, secrets, '/folder')

describe('PORT', () => {
  it('is 8787 unless it is set', () => {
    expect(readPort({})).toBe(8787)
    expect(readPort({ PORT: '' })).toBe(8787)
    expect(readPort({ PORT: '1' })).toBe(1)
    expect(readPort({ PORT: '65534' })).toBe(65_534)
  })

  it.each(['abc', '0', '65535', '70000', '80.5', '-1', '1e3', '0x50', ' 80'])('is not %j', (port) => {
    expect(() => readPort({ PORT: port })).toThrow(/^PORT takes a number from 1 to 65534/)
  })
})

describe('the stand-ins to start', () => {
  it('are all of them without a real service', () => {
    expect(Object.keys(plan())).toEqual([
      'postgres',
      'redis',
      'qstash',
      'modelUpstream',
      'contentStore',
      'control',
    ])
    expect(plan()).toMatchObject({ postgres: { folder: '/folder/postgres' }, control: false })
  })

  it.each([
    ['postgres', { DATABASE_URL: 'postgres://user:password@ep-x.eu-central-1.aws.neon.tech/db' }],
    ['postgres', { DATABASE_URL: 'postgres://user@host/db', DATABASE_FETCH_ENDPOINT: 'http://host/sql' }],
    ['redis', { UPSTASH_REDIS_REST_URL: 'https://x.upstash.io', UPSTASH_REDIS_REST_TOKEN: 'token' }],
    ['qstash', { QSTASH_TOKEN: 't', QSTASH_CURRENT_SIGNING_KEY: 'c', QSTASH_NEXT_SIGNING_KEY: 'n' }],
    ['modelUpstream', { OPENAI_API_KEY: 'a', ANTHROPIC_API_KEY: 'b' }],
  ])('leave out %s for %j', (name, environment) => {
    expect(Object.keys(plan(environment))).not.toContain(name)
    expect(Object.keys(plan(environment))).toHaveLength(5)
  })

  it('keep the scripted upstream while one of the two providers is not real', () => {
    expect(plan({ OPENAI_API_KEY: 'a' })).toHaveProperty('modelUpstream')
    expect(plan({ ANTHROPIC_API_KEY: 'a' })).toHaveProperty('modelUpstream')
  })

  it('put the stand-in before a PostgreSQL that speaks no HTTP, its password on no command line', () => {
    const url = 'postgres://user:password@127.0.0.1:5432/db'
    const ports = { postgres: 1, redis: 2, qstash: 3, modelUpstream: 4, contentStore: 5 }
    expect(plan({ DATABASE_URL: url }).postgres).toEqual({ url })
    const { postgres, qstash } = stackCommands(plan({ DATABASE_URL: url }), ports)
    expect(postgres?.arguments.join(' ')).not.toContain('password')
    expect(postgres?.environment).toEqual({ REAL_DATABASE_URL: url })
    expect(qstash?.arguments.join(' ')).not.toContain(secrets.qstashToken)
  })

  it.each([
    [
      { UPSTASH_REDIS_REST_URL: 'http://x' },
      'UPSTASH_REDIS_REST_TOKEN must be set together with UPSTASH_REDIS_REST_URL',
    ],
    [
      { UPSTASH_REDIS_REST_TOKEN: 'x' },
      'UPSTASH_REDIS_REST_URL must be set together with UPSTASH_REDIS_REST_TOKEN',
    ],
    [
      { QSTASH_TOKEN: 'x' },
      'QSTASH_CURRENT_SIGNING_KEY and QSTASH_NEXT_SIGNING_KEY must be set together with QSTASH_TOKEN',
    ],
    [
      { QSTASH_URL: 'http://x', QSTASH_CURRENT_SIGNING_KEY: 'c', QSTASH_NEXT_SIGNING_KEY: 'n' },
      'QSTASH_TOKEN must be set together with QSTASH_CURRENT_SIGNING_KEY and QSTASH_NEXT_SIGNING_KEY and QSTASH_URL',
    ],
    [{ DATABASE_URL: 'canary nonsense' }, 'DATABASE_URL must be a postgres:// connection string'],
  ])('%j is half a service', (environment, message) => {
    expect(() => plan(environment)).toThrow(new Error(message))
  })
})

describe('the Worker’s variables', () => {
  it('are complete without any environment', () => {
    const configuration = parseConfiguration(variables())
    // As in production.
    expect(configuration.LIMITS_TIMEOUT_MS).toBe(300)
    expect(configuration).toMatchObject({
      BASE_URL: 'http://127.0.0.1:8787',
      LLM_HOST: ['llm.headgate.localhost'],
      DATABASE_FETCH_ENDPOINT: 'http://127.0.0.1:1001/sql',
      UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1002',
      QSTASH_URL: 'http://127.0.0.1:1003',
      EGRESS_ALLOW: ['127.0.0.1:1004'],
    })
    expect(configuration.NATIVE_STREAM_HOSTS).toContain('127.0.0.1')
    expect(configuration.NATIVE_STREAM_HOSTS).toContain('api.openai.com')
  })

  it('take what the environment sets, and nothing that the Worker does not read', () => {
    const set = variables({
      ORGANIZATION_RATE_LIMIT: '5',
      LLM_HOST: 'llm.example',
      HOME: '/root',
      OPENAI_API_KEY: 'x',
    })
    expect(set).toMatchObject({ ORGANIZATION_RATE_LIMIT: '5', LLM_HOST: 'llm.example' })
    expect(Object.keys(set)).not.toContain('HOME')
    expect(Object.keys(set)).not.toContain('OPENAI_API_KEY')
    expect(variables({ BASE_URL: '' }).BASE_URL).toBe('http://127.0.0.1:8787')
  })

  it('let through a provider on loopback, and no other private address', () => {
    const allow = (environment: NodeJS.ProcessEnv) => variables(environment).EGRESS_ALLOW?.split(',')
    expect(
      allow({ OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1', ANTHROPIC_BASE_URL: 'http://localhost' }),
    ).toEqual(['127.0.0.1:1004', '127.0.0.1:11434', 'localhost:80'])
    expect(allow({ OPENAI_BASE_URL: 'http://[::1]:9/v1' })).toContain('[::1]:9')
    expect(allow({ OPENAI_BASE_URL: 'http://192.168.1.5/v1' })).toEqual(['127.0.0.1:1004'])
    expect(allow({ OPENAI_BASE_URL: 'http://127.0.0.1.example.com/v1' })).toEqual(['127.0.0.1:1004'])
    expect(allow({ EGRESS_ALLOW: '10.0.0.1:80, 127.0.0.1:1004' })).toEqual(['10.0.0.1:80', '127.0.0.1:1004'])
  })

  it.each([
    [{ ORGANIZATION_RATE_LIMIT: 'lots' }, /^Invalid configuration: ORGANIZATION_RATE_LIMIT /],
    [{ ORGANIZATION_RATE_LIMIT: '0' }, /^Invalid configuration: ORGANIZATION_RATE_LIMIT /],
    [{ IDENTITY_CACHE_MS: '60000' }, /^Invalid configuration: IDENTITY_CACHE_MS /],
    [{ KEY_PEPPERS: 'canary' }, /^Invalid configuration: KEY_PEPPERS must be id:base64 pairs/],
    [{ ADMIN_TOKEN: 'canary' }, /^Invalid configuration: ADMIN_TOKEN must have at least 16 characters$/],
    [{ QSTASH_DEV: 'canary' }, /^Invalid configuration: QSTASH_DEV is refused/],
    [{ BASE_URL: 'canary' }, /^Invalid configuration: BASE_URL /],
    [
      { DATABASE_URL: 'mysql://user:canary@host/d' },
      /^Invalid configuration: DATABASE_URL must be a postgres/,
    ],
  ])('refuse %j by name, without its value', (environment, message) => {
    expect(() => variables(environment)).toThrow(message)
    expect(() => variables(environment)).not.toThrow(/canary/)
  })
})

describe('CORS_ORIGINS', () => {
  const origins = (CORS_ORIGINS?: string) =>
    parseConfiguration({ ...variables(), ...(CORS_ORIGINS === undefined ? {} : { CORS_ORIGINS }) })
      .CORS_ORIGINS

  it('is none by default', () => {
    for (const text of [undefined, '', ' , ']) expect(origins(text)).toEqual([])
  })

  it('takes origins, with or without a slash at their end', () => {
    expect(origins('https://app.example, http://localhost:3000/')).toEqual([
      'https://app.example',
      'http://localhost:3000',
    ])
  })

  it.each(['*', 'null', 'app.example', 'https://app.example/path', 'https://APP.example', 'file:///x'])(
    'refuses %s',
    (text) => {
      expect(() => origins(text)).toThrow('CORS_ORIGINS must be origins, such as https://app.example')
    },
  )
})
