import { randomUUID } from 'node:crypto'
import { and, eq, lte, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { auditRecords, creditEntries, usageEvents } from '../../../schema/governance.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../../src/ledger/audit-record.ts'
import {
  create,
  type Harness,
  type Organization,
  seedOrganization,
  someProvider,
  startManagement,
} from './harness.ts'
import { NOON, readAll, recordCalls } from './reading.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startManagement()
}, 60_000)
afterEach(() => {
  harness.ledgers.away = false
})
afterAll(() => harness.close())

/** A row of usage of an organization. */
async function usageOf(organizationId: string) {
  const [usage] = await harness.database
    .select()
    .from(usageEvents)
    .where(eq(usageEvents.organizationId, organizationId))
  if (!usage) throw new Error('the calls have no usage')
  return usage
}

describe('audit', () => {
  it('is filtered, paged and shown with the whole record', async () => {
    const own = await seedOrganization(harness)
    await recordCalls(harness, own, [
      { at: NOON, model: 'small' },
      { at: NOON, model: 'large', status: 403 },
      { at: NOON + 1, model: 'small', keyId: null },
    ])
    const found = async (query: string) =>
      (await harness.request('GET', `${own.base}/audit?${query}`)).json.data
    expect(await found('model=large')).toMatchObject([
      {
        kind: 'call',
        model: 'large',
        status: 403,
        record: { provider: 'acme', action: 'POST /v1/messages' },
      },
    ])
    expect(await found('status=403')).toHaveLength(1)
    expect(await found('surface=messages')).toHaveLength(2)
    expect(await found(`key_id=${own.key.id}`)).toHaveLength(2)
    expect(await found(`user_id=${own.user.id}`)).toHaveLength(2)
    expect(await found('from=2026-11-20T12:00:00.001Z&to=2026-11-20T13:00:00Z')).toHaveLength(1)
    const changes = await found('surface=management&limit=200')
    expect(changes.map(({ action }: { action: string }) => action)).toContain('grant.created')
    const calls = await found('to=2026-11-20T13:00:00Z')
    expect(await readAll(harness, `${own.base}/audit?to=2026-11-20T13:00:00Z`, 1)).toEqual(calls)
  })

  it('records who looked, and shows nothing when it cannot', async () => {
    const own = await seedOrganization(harness)
    await harness.request('GET', `${own.base}/audit?model=small`)
    expect(harness.ledgers.changes.at(-1)).toMatchObject({
      organizationId: own.organization.id,
      action: 'audit.viewed',
      detail: { filter: { model: 'small' }, limit: 50 },
    })
    harness.ledgers.away = true
    const answer = await harness.request('GET', `${own.base}/audit`)
    expect(answer).toMatchObject({
      status: 500,
      json: { message: expect.stringContaining('nothing is shown') },
    })
  })

  it('records one view of all pages, and another one of a cursor that is not of it', async () => {
    const own = await seedOrganization(harness)
    const other = await seedOrganization(harness)
    for (const each of [own, other]) {
      await recordCalls(
        harness,
        each,
        Array.from({ length: 12 }, (_, index) => ({ at: NOON + index })),
      )
    }
    const views = () =>
      harness.ledgers.changes.filter(
        ({ organizationId, action }) =>
          action === 'audit.viewed' &&
          [own, other].some(({ organization }) => organization.id === organizationId),
      )
    const read = async (query: string, base = own.base) => {
      const answer = await harness.request('GET', `${base}/audit?model=small&limit=1${query}`)
      expect(answer.status, answer.text).toBe(200)
      return answer.json
    }
    let cursor = ''
    const seen = new Set<string>()
    for (let page = 0; page < 10; page += 1) {
      const { data, next_cursor } = await read(cursor && `&cursor=${cursor}`)
      seen.add(data[0].id)
      cursor = next_cursor
    }
    expect(seen.size).toBe(10)
    expect(views()).toHaveLength(1)

    const [at, id, begunAt, mac] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const encoded = (content: unknown) => Buffer.from(JSON.stringify(content)).toString('base64url')
    const cursors = [
      encoded([at, id]),
      encoded([at, id, begunAt, mac.replace(/^./, 'g')]),
      encoded([at + 1, id, begunAt, mac]),
      encoded([at, id, begunAt + 1, mac]),
    ]
    for (const [index, forged] of cursors.entries()) {
      await read(`&cursor=${forged}`)
      expect(views(), forged).toHaveLength(index + 2)
      expect(views().at(-1)?.detail).toMatchObject({ further_page: true })
    }
    await read(`&cursor=${cursor}&status=200`)
    await read(`&cursor=${cursor}`, other.base)
    expect(views()).toHaveLength(7)
    // The view that a forged cursor begins goes on as any other.
    const { next_cursor } = await read(`&cursor=${encoded([at, id])}`)
    await read(`&cursor=${next_cursor}`)
    expect(views()).toHaveLength(8)
    for (const malformed of [encoded([at, id, begunAt]), encoded([at, id, 'x', mac]), 'x']) {
      const answer = await harness.request('GET', `${own.base}/audit?cursor=${malformed}`)
      expect(answer.status, answer.text).toBe(400)
    }
  })

  it('shows a record that was altered, whatever it is now', async () => {
    const own = await seedOrganization(harness)
    await harness.ledgers.of(own.organization.id).flush()
    const altered = { body: 'no JSON' }
    const first = and(eq(auditRecords.organizationId, own.organization.id), eq(auditRecords.sequence, 1))
    await harness.database.update(auditRecords).set(altered).where(first)
    const shown = await harness.request('GET', `${own.base}/audit`)
    expect(shown.json.data.at(-1)).toMatchObject({ sequence: 1, record: 'no JSON' })
  })

  it('shows the changes to the deployment apart', async () => {
    await create(harness, '/providers', someProvider())
    await harness.request('POST', '/ledger/flush')
    const shown = await harness.request('GET', '/audit?limit=200')
    expect(shown.json.data.length).toBeGreaterThan(0)
    for (const { record } of shown.json.data) expect(record.organizationId).toBe(DEPLOYMENT_ORGANIZATION_ID)
  })
})

describe('verification', () => {
  const verify = async (of: Organization, query = '') =>
    (await harness.request('GET', `${of.base}/audit/verify${query}`)).json

  async function tenantWithCalls(): Promise<Organization> {
    const own = await seedOrganization(harness)
    await recordCalls(harness, own, [{ at: NOON }, { at: NOON }, { at: NOON }])
    return own
  }

  it('walks a chain page by page', async () => {
    const own = await tenantWithCalls()
    const { sequence } = (await harness.request('GET', `${own.base}/audit/chains`)).json.data[0]
    expect(sequence).toBeGreaterThan(6)
    expect(await verify(own)).toMatchObject({
      ok: true,
      verified: sequence,
      has_more: false,
      first_broken: null,
    })
    let after = 0
    for (let more = true; more; ) {
      const page = await verify(own, `?limit=2&after_sequence=${after}`)
      expect(page).toMatchObject({ ok: true, after_sequence: after, first_broken: null })
      expect(page.to_sequence).toBeGreaterThan(after)
      after = page.to_sequence
      more = page.has_more
    }
    expect(after).toBe(sequence)
    expect(await verify(own, `?after_sequence=${sequence}`)).toMatchObject({ ok: true, verified: 0 })
    expect(await verify(own, `?after_sequence=${sequence + 5}`)).toMatchObject({
      ok: false,
      first_broken: { sequence: sequence + 5, reason: 'missing' },
    })
    expect(await verify(own, '?shard=7')).toMatchObject({ ok: true, verified: 0 })
  })

  it('names the first broken record', async () => {
    const where = (of: Organization, sequence: number) =>
      and(eq(auditRecords.organizationId, of.organization.id), eq(auditRecords.sequence, sequence))
    const altered = await tenantWithCalls()
    await harness.database.update(auditRecords).set({ status: 500 }).where(where(altered, 4))
    expect(await verify(altered)).toMatchObject({
      ok: false,
      verified: 3,
      first_broken: { sequence: 4, reason: 'columns_differ' },
    })
    const deleted = await tenantWithCalls()
    await harness.database.delete(auditRecords).where(where(deleted, 2))
    expect(await verify(deleted)).toMatchObject({
      ok: false,
      first_broken: { sequence: 2, reason: 'missing' },
    })
    const byDeployment = await harness.request(
      'GET',
      `/audit/verify?organization_id=${deleted.organization.id}`,
    )
    expect(byDeployment.json).toMatchObject({ ok: false, organization_id: deleted.organization.id })
  })

  it('looks into the deployment itself, and into checkpoints', async () => {
    await create(harness, '/providers', someProvider())
    await harness.request('POST', '/ledger/flush')
    const deployment = await harness.request('GET', '/audit/verify')
    expect(deployment.json).toMatchObject({ ok: true, organization_id: DEPLOYMENT_ORGANIZATION_ID })
    const own = await tenantWithCalls()
    const checkpoint = await create(harness, '/audit/checkpoints', undefined)
    expect(checkpoint.chains).toBeGreaterThan(1)
    expect(harness.ledgers.changes.slice(-2)).toMatchObject([
      { action: 'audit_checkpoint.created' },
      { action: 'audit_checkpoint.stored', detail: { checkpoint_id: checkpoint.id } },
    ])
    const check = async () => (await harness.request('GET', '/audit/checkpoints/verify')).json
    expect(await check()).toMatchObject({ ok: true, checkpoints: 1 })
    const { sequence } = (await harness.request('GET', `${own.base}/audit/chains`)).json.data[0]
    const last = and(
      eq(auditRecords.organizationId, own.organization.id),
      eq(auditRecords.sequence, sequence),
    )
    await harness.database.delete(auditRecords).where(last)
    expect(await check()).toMatchObject({ ok: false, first_broken: { reason: 'chain_differs' } })
  })

  it('finds rows without a record over pages of any length', async () => {
    const own = await tenantWithCalls()
    const organizationId = own.organization.id
    const usage = await usageOf(organizationId)
    const forged = ['call_a', 'call_b'].map((callId) => ({ ...usage, callId, at: new Date(0) }))
    await harness.database.insert(usageEvents).values(forged)
    const entry = { organizationId, reason: 'x', amount: 5, at: new Date(0) }
    await harness.database.insert(creditEntries).values([
      { ...entry, kind: 'grant', id: 'a grant' },
      { ...entry, kind: 'transfer', id: '1:1:sent' },
    ])
    for (const limit of [1, 2, 1_000]) {
      const path = `/audit/unrecorded?organization_id=${organizationId}`
      const found: Array<{ name: string }> = await readAll(harness, path, limit)
      expect(found.map(({ name }) => name)).toEqual([
        'call_a',
        'call_b',
        'grant a grant',
        'transfer 1:1:sent',
      ])
    }
    const all = await readAll(harness, '/audit/unrecorded', 1_000)
    expect(all.filter((row) => row.organization_id === organizationId)).toHaveLength(4)
  })

  it('goes on behind a row of usage that retention removes between two pages', async () => {
    const own = await tenantWithCalls()
    const organizationId = own.organization.id
    const usage = await usageOf(organizationId)
    const times = ['epoch', '2001-02-03 04:05:06.000001+00', '2001-02-03 04:05:06.000002+00', 'infinity']
    const forged = times.map((at, index) => ({
      ...usage,
      callId: `call_${index}`,
      at: sql`${at}::timestamptz`,
    }))
    await harness.database.insert(usageEvents).values(forged)
    const page = `/audit/unrecorded?organization_id=${organizationId}&limit=1`
    const found = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { status, json } = await harness.request('GET', cursor ? `${page}&cursor=${cursor}` : page)
      expect(status).toBe(200)
      for (const { name } of json.data) {
        found.push(name)
        await harness.database.delete(usageEvents).where(eq(usageEvents.callId, name))
      }
      cursor = json.next_cursor
    }
    expect(found).toEqual(['call_0', 'call_1', 'call_2', 'call_3'])
  })

  it.each([
    '2026-02-30 00:00:00',
    '2026-13-01 00:00:00',
    '0000-01-01 00:00:00',
    '294277-01-01 00:00:00',
    'no time',
  ])('takes no cursor with the time %s', async (at) => {
    const after = { organizationId: randomUUID(), at, callId: 'call_1' }
    const cursor = Buffer.from(JSON.stringify({ table: 'usage_events', after })).toString('base64url')
    const answer = await harness.request('GET', `/audit/unrecorded?cursor=${cursor}`)
    expect([answer.status, answer.json.message]).toEqual([400, expect.stringContaining('cursor')])
  })

  it.each([
    '2024-02-29 23:59:59.999999',
    '0001-02-29 00:00:00 BC',
    '4713-01-01 00:00:00 BC',
    '294276-12-31 00:00:00',
    '-infinity',
  ])('takes a cursor with the time %s, which a row can have', async (at) => {
    const after = { organizationId: randomUUID(), at, callId: 'call_1' }
    const cursor = Buffer.from(JSON.stringify({ table: 'usage_events', after })).toString('base64url')
    expect((await harness.request('GET', `/audit/unrecorded?cursor=${cursor}`)).status).toBe(200)
  })

  it('does not verify behind a record that is not there', async () => {
    const { id } = (await seedOrganization(harness)).organization
    expect(
      (await harness.request('GET', `/audit/verify?organization_id=${id}&after_sequence=99`)).json,
    ).toMatchObject({ ok: false })
  })

  it('reads long bodies in pages that fit into memory', async () => {
    const own = await tenantWithCalls()
    await harness.database
      .update(auditRecords)
      .set({ body: sql`repeat('x', 5000000)` })
      .where(and(eq(auditRecords.organizationId, own.organization.id), lte(auditRecords.sequence, 2)))
    const { sequence } = (await harness.request('GET', `${own.base}/audit/chains`)).json.data[0]
    const pages = []
    for (let after = 0, more = true; more; ) {
      const page = await verify(own, `?limit=1000&after_sequence=${after}`)
      pages.push(page)
      after = page.to_sequence
      more = page.has_more
    }
    expect(pages.map(({ to_sequence: to }) => to)).toEqual([1, sequence])
    expect(pages.map(({ faults }) => faults[0].reason)).toEqual(['altered', 'altered'])
  })

  it('continues behind a fault, and counts the records before it', async () => {
    const own = await tenantWithCalls()
    const { sequence } = (await harness.request('GET', `${own.base}/audit/chains`)).json.data[0]
    const where = (id: number) =>
      and(eq(auditRecords.organizationId, own.organization.id), eq(auditRecords.sequence, id))
    await harness.database.update(auditRecords).set({ status: 500 }).where(where(2))
    await harness.database.delete(auditRecords).where(where(4))
    const { verified, to_sequence: to, faults } = await verify(own)
    expect({ verified, to }).toEqual({ verified: 1, to: sequence })
    expect(faults).toMatchObject([
      { sequence: 2, reason: 'columns_differ' },
      { sequence: 4, reason: 'missing' },
    ])
  })

  it('needs no usage to be there', async () => {
    const own = await seedOrganization(harness)
    await harness.request('POST', `${own.base}/ledger/flush`)
    const rows = harness.database.select().from(usageEvents)
    expect(await rows.where(eq(usageEvents.organizationId, own.organization.id))).toEqual([])
    expect(await verify(own)).toMatchObject({ ok: true })
  })
})
