import { beforeAll, describe, expect, it } from 'vitest'
import { hasAuditRecord } from '../../scripts/deploy/account.ts'
import { realClock } from '../../scripts/deploy/deploy-clock.ts'
import { runSmokeTest, type SmokeTestOptions, VERSION_HEADER } from '../../scripts/deploy/smoke-test.ts'
import { MovingClock } from '../harness/cloud/moving-clock.ts'
import { gateway } from '../harness/gateway.ts'
import { createRoutedModel, type RoutedModel } from '../harness/routed-model.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'

let tenant: Tenant
let model: RoutedModel

beforeAll(async () => {
  tenant = await createTenant(gateway())
  model = await createRoutedModel(gateway(), ['openai-compatible'])
})

/** Names the version, as Cloudflare's binding has the Worker do. Without Cloudflare, the Worker has none. */
const fetchOfVersion = (async (url: string, init: RequestInit) => {
  const answer = await fetch(url, init)
  const headers = new Headers(answer.headers)
  headers.set(VERSION_HEADER, 'a-version')
  return new Response(answer.body, { status: answer.status, headers })
}) as typeof fetch

/** The smoke test of a deployment, on the built Worker. */
const smokeTest = (options: Partial<SmokeTestOptions> = {}) => {
  const { baseUrl, adminToken, variables, standIns } = gateway()
  const address = {
    DATABASE_URL: variables.DATABASE_URL ?? '',
    DATABASE_FETCH_ENDPOINT: `${standIns.postgres}/sql`,
  }
  return runSmokeTest({
    origin: baseUrl,
    version: { script: 'headgate', id: 'a-version' },
    toolsVersion: null,
    adminToken,
    adminTokenPlace: 'the file',
    key: tenant.key,
    model: model.id,
    hasRecord: (requestId) => hasAuditRecord(address, requestId),
    patienceMs: 0,
    fetch: fetchOfVersion,
    clock: realClock,
    ...options,
  })
}

describe('the smoke test of a deployment', () => {
  it('passes on a gateway that works, and finds the audit record of its call', async () => {
    expect(await smokeTest()).toEqual([])
  })

  it('fails when no version answers to the override', async () => {
    expect(await smokeTest({ fetch })).toEqual(['/health was answered 200, and the answer names no version'])
  })

  it('names each call that fails, and no credential', async () => {
    const adminToken = 'wrong-administration-token'
    const key = `${tenant.key.slice(0, -4)}wrong`
    const problems = await smokeTest({ adminToken, key })
    expect(problems).toEqual([
      '/api/organizations was answered 401: ADMIN_TOKEN of the file is not that of the script',
      '/v1/models was answered 401',
      `a call of ${model.id} was answered 401`,
    ])
  })

  it('waits for services, and names those that do not answer', async () => {
    const clock = new MovingClock()
    const failing = (async (url: string, init: RequestInit) =>
      url.endsWith('/health/ready')
        ? Response.json({ status: 'unavailable', failed: ['postgres', 'content'] }, { status: 503 })
        : fetchOfVersion(url, init)) as typeof fetch
    expect(await smokeTest({ clock, key: undefined, fetch: failing })).toEqual([
      '/health/ready was answered 503: no answer from postgres, content',
    ])
    expect(clock.waits).toEqual([6_000, 6_000, 6_000, 6_000, 6_000])
  })

  it.each([
    [
      'a version that is not the wanted one',
      { 'x-headgate-tools-version': 'before' },
      {},
      'reached version before of',
    ],
    ['no version', {}, {}, 'names no version of'],
    ['no answer', {}, { degraded: ['tools'] }, ': no answer from'],
  ])('waits for the script of tools, and fails with %s of it', async (_, headers, more, text) => {
    const failing = (async (url: string, init: RequestInit) =>
      url.endsWith('/health/ready')
        ? Response.json({ status: 'ok', ...more }, { headers })
        : fetchOfVersion(url, init)) as typeof fetch
    const clock = new MovingClock()
    const problems = await smokeTest({ clock, key: undefined, toolsVersion: 'wanted', fetch: failing })
    expect(problems).toEqual([expect.stringContaining(`${text} the script of tools`)])
    expect(clock.waits).toHaveLength(5)
  })

  it('fails when the record of its call stays away', async () => {
    const problems = await smokeTest({ clock: new MovingClock(), hasRecord: async () => false })
    expect(problems).toEqual([
      expect.stringMatching(/^the audit record of request req_\S+ is not in Postgres$/),
    ])
  })

  it('waits for the record of its call while Postgres does not answer, and fails after 30 s', async () => {
    let failures = 2
    const unreliable = async (): Promise<boolean> => {
      if (failures-- > 0) throw new Error('the database does not answer')
      return true
    }
    const clock = new MovingClock()
    expect(await smokeTest({ clock, hasRecord: unreliable })).toEqual([])
    expect(clock.waits).toEqual([2_000, 2_000])
    failures = Number.POSITIVE_INFINITY
    expect(await smokeTest({ clock: new MovingClock(), hasRecord: unreliable })).toEqual([
      expect.stringMatching(/^the audit record of request req_\S+ cannot be read: Postgres does not answer$/),
    ])
  })

  it('fails when nothing listens', async () => {
    expect(await smokeTest({ origin: 'http://127.0.0.1:9' })).toEqual(['/health has no answer'])
  })
})
