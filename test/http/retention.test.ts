import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { runAdmin } from '../../scripts/admin/run-admin.ts'
import { readCrons } from '../../scripts/node/wrangler-settings.ts'
import { parseConfiguration } from '../../src/env.ts'
import { retentionSettings } from '../../src/wire/retention.ts'
import { query } from '../harness/gateway.ts'
import { databaseOf, monthsAgo, OLD_COST, storeRetention, writeOldCalls } from '../harness/old-records.ts'
import { auditEntries, flush } from '../harness/records.ts'
import { type StartedGateway, startGateway, WRANGLER_FILE } from '../harness/start-gateway.ts'
import { addMember, administrator } from '../harness/tenant.ts'

// A system of its own: the jobs remove rows of every organization of the database.
let address: StartedGateway
const folder = mkdtempSync(join(tmpdir(), 'headgate-retention-'))
const HOURLY = readCrons(WRANGLER_FILE).find((cron) => !cron.startsWith('*/')) ?? ''

beforeAll(async () => {
  address = await startGateway({ bundleDirectory: inject('bundleDirectory'), isBrief: true })
  for (const months of [3, 4, 5]) {
    const month = monthsAgo(months).toISOString().slice(0, 7)
    await sql(
      `SELECT add_month_partition(parent, '${month}-01') FROM unnest(ARRAY['audit_records', 'usage_events']) AS parent`,
    )
  }
}, 60_000)
afterAll(async () => {
  await address.stop()
  rmSync(folder, { recursive: true })
})

const sql = (text: string, parameters: unknown[] = []) => query(address, text, parameters)
const api = <Answer = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
  administrator(address).ask<Answer>(method, path, body)
/** The sweep of the hour. */
const sweep = async () => {
  // One that was swept this hour is not swept again.
  await sql('UPDATE organizations SET retention_swept_at = NULL')
  await address.workerd.runScheduled(HOURLY)
}

interface Aged {
  organizationId: string
  base: string
}

/** An organization whose chain began five months ago, and that is used now. */
async function agedOrganization(times: readonly Date[]): Promise<Aged> {
  const organizationId = randomUUID()
  await sql(`INSERT INTO organizations (id, name, slug) VALUES ($1, 'Aged', $2)`, [
    organizationId,
    `aged-${organizationId}`,
  ])
  await writeOldCalls(databaseOf(address), organizationId, times)
  const base = `/organizations/${organizationId}`
  await addMember(address, base)
  await flush(address, { base })
  return { organizationId, base }
}

const OLD = [monthsAgo(5), monthsAgo(5, 3), monthsAgo(4), monthsAgo(3), monthsAgo(3, 1)]

const sequencesOf = async ({ organizationId }: Aged) =>
  (
    await sql('SELECT sequence FROM audit_records WHERE organization_id = $1 ORDER BY sequence', [
      organizationId,
    ])
  ).map(({ sequence }) => Number(sequence))
const countOf = async (table: string, { organizationId }: Aged) =>
  Number((await sql(`SELECT count(*) AS n FROM ${table} WHERE organization_id = $1`, [organizationId]))[0]?.n)
const keep = (aged: Aged, settings: Record<string, number>) => api('PUT', `${aged.base}/retention`, settings)
/** Days after which a month of so many months before this one is removed, and the one after it is not. */
const daysOf = (months: number) => Math.ceil((Date.now() - monthsAgo(months - 1).getTime()) / 86_400_000)

/** A gateway before which `before` runs once, when a path is first asked for. */
async function interrupted(path: string, before: () => Promise<void>) {
  let isOver = false
  const server = createServer(async ({ url = '', method, headers }, response) => {
    if (!isOver && url.includes(path)) {
      isOver = true
      await before()
    }
    const authorization = String(headers.authorization)
    const answer = await fetch(address.baseUrl + url, { method: String(method), headers: { authorization } })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}

async function admin(words: string[], environment: NodeJS.ProcessEnv = {}) {
  const lines: string[] = []
  const code = await runAdmin(words, {
    environment: { HEADGATE_URL: address.baseUrl, ADMIN_TOKEN: address.adminToken, ...environment },
    readInput: async () => '',
    print: (line) => lines.push(line),
    complain: (line) => lines.push(line),
  })
  return { code, lines, output: lines.join('\n') }
}
const verify = ({ organizationId }: Aged) => admin(['audit', 'verify', '--organization', organizationId])
const expectIntact = async (aged: Aged) => expect((await verify(aged)).output).toMatch(/\nintact$/)

describe('the settings of retention', () => {
  it('are those of the deployment until they are set, and are audited', async () => {
    const aged = await agedOrganization([])
    const defaults = { audit_records: 0, usage_events: 0, responses: 0, runs: 90, connect_sessions: 30 }
    const none = {
      audit_records: null,
      usage_events: null,
      responses: null,
      runs: null,
      connect_sessions: null,
    }
    expect(await api('GET', `${aged.base}/retention`)).toEqual({ ...none, defaults })
    expect(await keep(aged, { runs: 7 })).toEqual({ ...none, runs: 7, defaults })
    expect(await api('GET', `${aged.base}/retention`)).toEqual({ ...none, runs: 7, defaults })
    const [entry] = await auditEntries(address, aged)
    expect(entry).toMatchObject({ action: 'retention.replaced', record: { detail: { ...none, runs: 7 } } })
  })

  it('are set by a command', async () => {
    const aged = await agedOrganization([])
    const of = ['--organization', aged.organizationId]
    const set = await admin(['retention', 'set', ...of, '--audit-records', '400', '--runs', '7'])
    expect(set, set.output).toMatchObject({ code: 0 })
    expect(await api('GET', `${aged.base}/retention`)).toMatchObject({
      audit_records: 400,
      runs: 7,
      responses: null,
    })
  })

  it.each([-1, 1.5, 40_000, '7'])('refuse %s days', async (runs) => {
    const aged = await agedOrganization([])
    const answer = await administrator(address).call('PUT', `${aged.base}/retention`, { runs })
    expect(answer.status).toBe(400)
  })
})

describe('the sweep of retention', () => {
  it('shortens a chain by whole months, and verification begins where it is left', async () => {
    const aged = await agedOrganization(OLD)
    const other = await agedOrganization(OLD)
    const before = await sequencesOf(aged)
    const { balance } = await api(`GET`, `${aged.base}/credits`)
    await keep(aged, { audit_records: daysOf(4) })
    await sweep()

    // The records of the months 5 and 4 are gone, and what has happened since is there.
    const left = await sequencesOf(aged)
    expect(left.slice(0, before.length - 3)).toEqual(before.slice(3))
    expect(await sequencesOf(other)).toEqual(before)
    expect(await countOf('calls', aged)).toBe(2)
    expect(await countOf('usage_events', aged)).toBe(5)
    expect(await countOf('credit_entries', aged)).toBe(5)
    expect((await api('GET', `${aged.base}/credits`)).balance).toBe(balance)

    const { output } = await verify(aged)
    expect(output).toContain('records 4 to')
    expect(output).toContain('(retention has removed those before 4)')
    expect(output).toMatch(/\nintact$/)
    await expectIntact(other)
    const entries = await auditEntries(address, aged)
    expect(entries.find(({ action }) => action === 'audit_records.pruned')?.record).toMatchObject({
      detail: { from_sequence: 1, to_sequence: 3 },
    })

    // A second sweep has nothing to do.
    await flush(address, aged)
    const settled = await sequencesOf(aged)
    await sweep()
    expect(await sequencesOf(aged)).toEqual(settled)
  })

  it('leaves the last record of a chain, however old it is, and the chain goes on from it', async () => {
    const organizationId = randomUUID()
    const idle = { organizationId, base: `/organizations/${organizationId}` }
    await sql(`INSERT INTO organizations (id, name, slug) VALUES ($1, 'Idle', $2)`, [
      organizationId,
      `idle-${organizationId}`,
    ])
    const { KEY_PEPPERS } = parseConfiguration(address.variables)
    const settings = retentionSettings.parse({ audit_records: 1 })
    await storeRetention(databaseOf(address), KEY_PEPPERS, organizationId, settings)
    await writeOldCalls(databaseOf(address), organizationId, OLD)
    await sweep()
    await flush(address, idle)
    // What was pruned is the last record now.
    expect(await sequencesOf(idle)).toEqual([5, 6])
    await addMember(address, idle.base)
    await flush(address, idle)
    expect((await sequencesOf(idle)).slice(0, 3)).toEqual([5, 6, 7])
    const { balance } = await api('GET', `${idle.base}/credits`)
    expect(balance).toBe(-5 * OLD_COST)
    await expectIntact(idle)
  })

  it('removes usage after its own time, and lists of calls with the records', async () => {
    const aged = await agedOrganization(OLD)
    await keep(aged, { usage_events: daysOf(4) })
    await sweep()
    expect(await countOf('usage_events', aged)).toBe(2)
    expect(await countOf('calls', aged)).toBe(5)
    expect((await sequencesOf(aged))[0]).toBe(1)
    await expectIntact(aged)
  })

  it('keeps an export that can be verified offline', async () => {
    const aged = await agedOrganization(OLD)
    await keep(aged, { audit_records: daysOf(3), usage_events: daysOf(5) })
    await sweep()
    const file = join(folder, `${aged.organizationId}.jsonl`)
    const exported = await admin(['audit', 'export', '--organization', aged.organizationId])
    writeFileSync(file, exported.lines.filter((line) => line.startsWith('{')).join('\n'))
    const { KEY_PEPPERS } = address.variables
    const verified = await admin(['audit', 'verify', '--file', file], { KEY_PEPPERS })
    expect(verified.output).toMatch(/retention has removed those before 6[\s\S]*\nintact$/)
    const tampered = exported.lines
      .filter((line) => line.startsWith('{'))
      .join('\n')
      .replace('"before":"20', '"before":"19')
    writeFileSync(file, tampered)
    expect((await admin(['audit', 'verify', '--file', file], { KEY_PEPPERS })).output).toMatch(
      /forged[\s\S]*BROKEN$/,
    )
  })

  it('ends an export whose records are removed meanwhile', async () => {
    const aged = await agedOrganization(OLD)
    await keep(aged, { audit_records: daysOf(3) })
    const proxy = await interrupted('/audit/export/records', sweep)
    const exported = await admin(['audit', 'export', '--organization', aged.organizationId], {
      HEADGATE_URL: proxy.url,
    })
    proxy.close()
    expect(exported).toMatchObject({
      code: 1,
      output: expect.stringMatching(/removed records during the export[\s\S]*again/),
    })
    expect(exported.output).not.toContain('"type":"end"')
  })

  it('drops the months that no organization has to keep, and leaves a call that was open over their end', async () => {
    const open = await agedOrganization([monthsAgo(5), monthsAgo(4), monthsAgo(5, 2), monthsAgo(2)])
    const aged = await agedOrganization(OLD)
    // Those of the deployment, where they were set before.
    for (const { id } of await sql('SELECT id FROM organizations WHERE retention IS NOT NULL')) {
      await api('PUT', `/organizations/${id}/retention`, {})
    }
    await address.restartWorkerd({
      AUDIT_RETENTION_DAYS: String(daysOf(5)),
      USAGE_RETENTION_DAYS: String(daysOf(5)),
    })
    const name = (table: string) => `${table}_${monthsAgo(5).toISOString().slice(0, 7).replace('-', '_')}`
    const exists = async (table: string) =>
      (await sql('SELECT to_regclass($1) IS NOT NULL AS there', [name(table)]))[0]?.there
    expect([await exists('audit_records'), await exists('usage_events')]).toEqual([true, true])
    await sweep()

    expect([await exists('audit_records'), await exists('usage_events')]).toEqual([false, false])
    // Record 3 is of the month that was dropped, and follows one that is kept.
    expect((await sequencesOf(open)).slice(0, 3)).toEqual([2, 3, 4])
    expect((await sequencesOf(aged))[0]).toBe(3)
    await expectIntact(open)
    await expectIntact(aged)
    expect((await admin(['audit', 'verify'])).output).toMatch(/\nintact$/)
  })
})

describe('what retention has removed', () => {
  const tamperings: Array<[what: string, tamper: (aged: Aged) => Promise<unknown>, fault: RegExp]> = [
    [
      'a statement that says more than it did',
      ({ organizationId }) =>
        sql(
          `UPDATE prunings SET statement = replace(statement, '"sequence":3', '"sequence":4') WHERE organization_id = $1`,
          [organizationId],
        ),
      /pruning_forged/,
    ],
    [
      'a statement that is deleted',
      ({ organizationId }) => sql('DELETE FROM prunings WHERE organization_id = $1', [organizationId]),
      /first broken record: 1 \(missing/,
    ],
    [
      'a statement of another organization',
      async ({ organizationId }) => {
        const other = await agedOrganization(OLD)
        await keep(other, { audit_records: daysOf(3) })
        await sweep()
        await sql(
          `UPDATE prunings SET statement = other.statement, mac = other.mac FROM prunings AS other
           WHERE prunings.organization_id = $1 AND other.organization_id = $2 AND other.kind = 'records'`,
          [organizationId, other.organizationId],
        )
      },
      /pruning_forged/,
    ],
    [
      'records that are deleted without a statement',
      ({ organizationId }) =>
        sql('DELETE FROM audit_records WHERE organization_id = $1 AND sequence = 4', [organizationId]),
      /first broken record: 4 \(missing/,
    ],
    [
      'a row of the lists that is deleted, of a record that is kept',
      ({ organizationId }) =>
        sql(`DELETE FROM calls WHERE organization_id = $1 AND id LIKE '%\\_4'`, [organizationId]),
      /call_missing/,
    ],
    [
      'credits of a pruned record that are changed',
      ({ organizationId }) =>
        sql(`UPDATE credit_entries SET amount = 1000 WHERE organization_id = $1 AND id LIKE '%\\_1'`, [
          organizationId,
        ]),
      /pruned_credits_differ/,
    ],
    [
      'a grant that is forged among those of pruned records',
      ({ organizationId }) =>
        sql(
          `INSERT INTO credit_entries (id, organization_id, kind, shard, amount, reason, at)
             VALUES ('forged', $1, 'grant', 0, 1000000, 'forged', $2)`,
          [organizationId, monthsAgo(5)],
        ),
      /pruned_credits_differ/,
    ],
  ]
  it.each(tamperings)('shows %s', async (_, tamper, fault) => {
    const aged = await agedOrganization(OLD)
    await keep(aged, { audit_records: daysOf(4) })
    await sweep()
    await expectIntact(aged)
    await tamper(aged)
    const { output } = await verify(aged)
    expect(output).toMatch(fault)
    expect(output).toMatch(/\nBROKEN$/)
  })

  it('is nothing by settings that were changed in the database', async () => {
    const aged = await agedOrganization(OLD)
    await keep(aged, { audit_records: 0 })
    await sql(
      `UPDATE organizations SET retention = retention || '{"audit_records": 1, "usage_events": "soon"}' WHERE id = $1`,
      [aged.organizationId],
    )
    const other = await agedOrganization(OLD)
    await keep(other, { audit_records: daysOf(4) })
    await sweep()
    expect((await sequencesOf(aged))[0]).toBe(1)
    expect((await sequencesOf(other))[0]).toBe(4)
    const answer = await administrator(address).call('GET', `${aged.base}/retention`)
    expect([answer.status, JSON.stringify(answer)]).toEqual([500, expect.stringContaining('set again')])
    await keep(aged, { audit_records: daysOf(4) })
    await sweep()
    expect((await sequencesOf(aged))[0]).toBe(4)
    await expectIntact(aged)
  })

  it.each([2, 3])('is nothing of a chain whose record %s is not what it was', async (sequence) => {
    const aged = await agedOrganization(OLD)
    await sql(
      `UPDATE audit_records SET body = replace(body, '"cost":${OLD_COST}', '"cost":1')
       WHERE organization_id = $1 AND sequence = $2`,
      [aged.organizationId, sequence],
    )
    await keep(aged, { audit_records: daysOf(4) })
    await sweep()
    expect((await sequencesOf(aged))[0]).toBe(1)
    expect((await verify(aged)).output).toContain(`record: ${sequence} (altered`)
  })
})
