import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dumpDatabase, type Harness, seedTenant, startManagement, type Tenant } from './harness.ts'

let harness: Harness
let tenant: Tenant
let other: Tenant

beforeAll(async () => {
  harness = await startManagement()
  tenant = await seedTenant(harness)
  other = await seedTenant(harness)
}, 60_000)
afterAll(() => harness.close())

const put = (body: object) => harness.request('PUT', `${tenant.base}/tools`, body)

describe('rules for tools', () => {
  it('name what the organization has', async () => {
    const off = [
      { subject_type: 'group', subject_id: tenant.group.id, tools: ['shell'] },
      { subject_type: 'user', subject_id: tenant.user.id, tools: ['files'] },
      { subject_type: 'key', subject_id: tenant.key.id, tools: ['browser'] },
    ]
    const approvals = [
      { integration: tenant.integration.slug, calls: 'effects' },
      { integration: '*', calls: 'all' },
    ]
    expect(await put({ off, approvals })).toMatchObject({ status: 200, json: { off, approvals } })
  })

  it('are refused for what is not there, by which they would never hold', async () => {
    const before = await dumpDatabase(harness.database)
    for (const [subject, id] of [
      ['group', other.group.id],
      ['group', 'no-uuid'],
      ['user', other.user.id],
      ['user', tenant.group.id],
      ['key', other.key.id],
      ['key', 'no-such-key'],
    ]) {
      const off = [
        { subject_type: 'organization', tools: ['shell'] },
        { subject_type: subject, subject_id: id, tools: ['shell'] },
      ]
      expect(await put({ off })).toMatchObject({
        status: 422,
        json: { message: `off.1.subject_id: there is no ${subject} ${id}` },
      })
    }
    for (const integration of [other.integration.slug, tenant.integration.id, 'no-such-service']) {
      expect(await put({ approvals: [{ integration, calls: 'all' }] })).toMatchObject({
        status: 422,
        json: {
          message: `approvals.0.integration: there is no ${integration} among the integrations, which are named by their slug`,
        },
      })
    }
    expect(await dumpDatabase(harness.database)).toBe(before)
  })
})
