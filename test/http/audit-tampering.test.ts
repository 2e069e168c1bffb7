import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runAdmin } from '../../scripts/admin/run-admin.ts'
import { gateway, query } from '../harness/gateway.ts'
import { callKind, callModel } from '../harness/model-calls.ts'
import { settledCredits } from '../harness/records.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-audit-'))
/** Keys of the tables, and how a forged row is known. */
const TABLES = {
  audit_records: { key: 'shard, sequence', forged: "id LIKE 'forged%'" },
  credit_entries: { key: 'kind, id', forged: "reason = 'forged'" },
  usage_events: { key: 'call_id', forged: "call_id LIKE 'forged%'" },
}
let tenant: Tenant
/** Name of the copies of a table's rows. */
let kept: (table: string) => string

const sql = (text: string, parameters: unknown[] = []) => query(gateway(), text, parameters)
const flush = () => administrator(gateway()).ask('POST', `${tenant.base}/ledger/flush`)
const owned = () => `organization_id = '${tenant.organizationId}'`

beforeAll(async () => {
  tenant = await createTenant(gateway(), { organization: { ledger_shards: 4 } })
  const users = await Promise.all(Array.from({ length: 5 }, () => addMember(gateway(), tenant.base)))
  const keys = await Promise.all(users.map((userId) => addKey(gateway(), tenant.base, userId)))
  const answers = await Promise.all(
    keys.map(({ key }) => callModel(gateway(), callKind('chat'), { key, text: 'hello' })),
  )
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  await settledCredits(gateway(), tenant)
  const suffix = tenant.organizationId.replaceAll('-', '')
  kept = (table) => `${table}_${suffix}`
  for (const table of Object.keys(TABLES)) await sql(`CREATE TABLE ${kept(table)} (LIKE ${table})`)
}, 60_000)

beforeEach(async () => {
  await flush()
  for (const table of Object.keys(TABLES)) {
    await sql(`DELETE FROM ${kept(table)}`)
    await sql(`INSERT INTO ${kept(table)} SELECT * FROM ${table} WHERE ${owned()}`)
  }
})

/** Undoes what a test has changed, and leaves what its exports have recorded. The database belongs to other tests, too. */
afterEach(async () => {
  for (const [table, { key, forged }] of Object.entries(TABLES)) {
    await sql(
      `DELETE FROM ${table} WHERE ${owned()} AND ((${key}) IN (SELECT ${key} FROM ${kept(table)}) OR ${forged})`,
    )
    await sql(`INSERT INTO ${table} SELECT * FROM ${kept(table)}`)
  }
})

afterAll(async () => {
  rmSync(folder, { recursive: true })
  for (const table of Object.keys(TABLES)) await sql(`DROP TABLE ${kept(table)}`)
})

async function admin(words: string[], environment: NodeJS.ProcessEnv) {
  const [lines, errors]: [string[], string[]] = [[], []]
  const code = await runAdmin(words, {
    environment,
    readInput: async () => '',
    print: (line) => lines.push(line),
    complain: (line) => errors.push(line),
  })
  return { code, lines, output: lines.join('\n'), errors: errors.join('\n') }
}

const online = (...words: string[]) =>
  admin([...words, '--organization', tenant.organizationId], {
    HEADGATE_URL: gateway().baseUrl,
    ADMIN_TOKEN: gateway().adminToken,
  })

const verify = () => online('audit', 'verify')

async function exported(): Promise<string[]> {
  const run = await online('audit', 'export')
  expect(run, run.errors).toMatchObject({ code: 0 })
  return run.lines
}

function verifyFile(lines: string[], environment: NodeJS.ProcessEnv = peppers()) {
  const file = join(folder, 'export.jsonl')
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''))
  return admin(['audit', 'verify', '--file', file], environment)
}

const peppers = () => ({ KEY_PEPPERS: gateway().variables.KEY_PEPPERS })

const deleteChain = () => sql(`DELETE FROM audit_records WHERE ${owned()} AND shard = 0`)

/** A record of a call that was never made, which follows another one. */
async function forgeRecord(shard: number, sequence: number): Promise<void> {
  const [real] = await sql(`SELECT * FROM audit_records WHERE ${owned()} AND kind = 'call' LIMIT 1`)
  const before = `SELECT hash FROM audit_records WHERE ${owned()} AND shard = $1 AND sequence = $2`
  const [previous] = await sql(before, [shard, sequence - 1])
  const previousHash = String(previous?.hash ?? '0'.repeat(64))
  const id = `forged_${shard}_${sequence}`
  const record = { ...JSON.parse(String(real?.body)), id, shard, sequence, cost: 0, usage: null }
  const body = JSON.stringify(record)
  const hash = createHash('sha256')
    .update(previousHash + body)
    .digest('hex')
  await sql(
    `INSERT INTO audit_records SELECT organization_id, $1, $2, $3, kind, at, request_id, user_id, key_id, surface,
       action, model_id, status, 0, $4, $5, $6 FROM audit_records WHERE ${owned()} AND id = $7`,
    [shard, sequence, id, body, previousHash, hash, real?.id],
  )
}

/** The call id of one of the usage rows. */
const usageRow = (number: number) =>
  `(SELECT call_id FROM usage_events WHERE ${owned()} ORDER BY call_id OFFSET ${number} LIMIT 1)`

/** The id of an entry of a kind that no test deletes. */
const creditRow = (kind: string) =>
  `(SELECT min(id) FROM credit_entries WHERE ${owned()} AND kind = '${kind}' AND id <> ${usageRow(2)})`

const setUsage = (change: string) => sql(`UPDATE usage_events SET ${change} WHERE call_id = ${usageRow(0)}`)
const setCredit = (kind: string, change: string) =>
  sql(`UPDATE credit_entries SET ${change} WHERE ${owned()} AND kind = '${kind}' AND id = ${creditRow(kind)}`)

const lastOf = `(SELECT max(sequence) FROM audit_records WHERE organization_id = $1 AND shard = 0)`
const deleteLast = () =>
  sql(`DELETE FROM audit_records WHERE organization_id = $1 AND shard = 0 AND sequence = ${lastOf}`, [
    tenant.organizationId,
  ])
const lastSequence = async () => {
  const [row] = await sql(`SELECT ${lastOf} AS last`, [tenant.organizationId])
  return Number(row?.last)
}

type Tampering = [what: string, tamper: () => Promise<unknown>, faults: RegExp[]]

const tamperings: Tampering[] = [
  [
    'changed columns of usage and credits',
    async () => {
      await setUsage("cost = cost - 1, input_tokens = 0, at = at + interval '1 microsecond'")
      await setCredit('grant', 'amount = amount + 5')
      await setCredit('settlement', 'amount = 0, shard = 9')
      await setCredit('transfer', 'amount = 0')
    },
    [
      /usage_differs: at, inputTokens, cost of call_\S+ in usage_events/,
      /credit_differs: amount of grant_/,
      /credit_differs: shard, amount of call_|credit_differs: amount, shard of call_/,
      /credit_differs: amount of \d:\d+:/,
    ],
  ],
  [
    'deleted and added rows of usage and credits',
    async () => {
      await sql(`DELETE FROM credit_entries WHERE ${owned()} AND id = ${usageRow(2)}`)
      await sql(`INSERT INTO credit_entries (id, organization_id, kind, shard, amount, reason, at)
        SELECT 'forged_grant', organization_id, kind, shard, 1000, 'forged', at FROM credit_entries WHERE ${owned()} AND kind = 'grant'`)
      await sql(`INSERT INTO credit_entries (id, organization_id, kind, shard, amount, reason, at)
        SELECT id, organization_id, 'settlement', shard, 1000, 'forged', at FROM credit_entries
        WHERE ${owned()} AND kind = 'grant' AND reason <> 'forged'`)
      await sql(`INSERT INTO usage_events SELECT 'forged_call', organization_id, user_id, key_id, model_id, provider,
        surface, at, 0, 0, 0, 0, 0, 0, provenance, 0 FROM usage_events WHERE call_id = ${usageRow(0)}`)
      await sql(`DELETE FROM usage_events WHERE call_id = ${usageRow(1)}`)
    },
    [
      /credit_missing: credit_entries has no row of call_/,
      /usage_missing: usage_events has no row of call_/,
      /credit_entries \(unrecorded: no record of grant forged_grant\)/,
      /credit_entries \(unrecorded: no record of settlement grant_/,
      /usage_events \(unrecorded: no record of forged_call\)/,
    ],
  ],
  [
    'forged records in another shard, before the first and after the last one',
    async () => {
      await forgeRecord(5, 1)
      await forgeRecord(0, -3)
      await forgeRecord(0, (await lastSequence()) + 1)
    },
    [
      /shard 5: record 1 \(unknown_shard: /,
      /shard 0: record -3 \(unknown_record: a chain begins at record 1\)/,
      // An export appends a record itself: the ledger then has another one in this place.
      /shard 0.*record:? \d+ \((unknown_record: the last record of the ledger is |head_differs: |unlinked: )/,
    ],
  ],
  ['a deleted last record', deleteLast, [/shard 0.*record:? \d+ \((head_differs|missing): /]],
  [
    'a last record that was replaced by another one',
    async () => {
      const last = await lastSequence()
      await deleteLast()
      await forgeRecord(0, last)
    },
    // The ledger may have written a further record meanwhile, which does not follow the forged one.
    [/shard 0.*record:? \d+ \((head_differs|unlinked): /],
  ],
]

describe('audit verify, and audit verify --file of an export', () => {
  it('find an organization with four shards intact', async () => {
    const run = await verify()
    expect(run, run.output).toMatchObject({ code: 0, errors: '' })
    expect(run.lines.at(-1)).toBe('intact')
    const file = await verifyFile(await exported())
    expect(file, file.output).toMatchObject({ code: 0, errors: '' })
    expect(file.lines.at(-1)).toBe('intact')
    const shards = (lines: string[]) =>
      lines.filter((line) => /^ok .* shard \d+: records 1 to/.test(line)).length
    expect(shards(run.lines)).toBeGreaterThan(1)
    expect(shards(file.lines)).toBe(shards(run.lines))
  })

  it('find the demo organizations intact', async () => {
    const [acme] = await sql("SELECT id FROM organizations WHERE slug = 'acme'")
    const run = await admin(['audit', 'verify', '--organization', String(acme?.id)], {
      HEADGATE_URL: gateway().baseUrl,
      ADMIN_TOKEN: gateway().adminToken,
    })
    expect(run, run.output).toMatchObject({ code: 0 })
  })

  it.each(tamperings)('find %s, each with a line', async (_, tamper, faults) => {
    await tamper()
    for (const run of [await verify(), await verifyFile(await exported())]) {
      expect(run.code, run.output).toBe(3)
      expect(run.lines.at(-1)).toBe('BROKEN')
      for (const fault of faults) {
        expect(
          run.lines.filter((line) => line.startsWith('BROKEN') && fault.test(line)),
          run.output,
        ).toHaveLength(1)
      }
    }
  })

  it('find a chain that was deleted as a whole, until its ledger has written it again', async () => {
    await deleteChain()
    const run = await verify()
    expect(run.code, run.output).toBe(3)
    expect(run.output).toMatch(/BROKEN .*shard 0.*\(head_differs: /)
    // The record of the export is the next one of the chain.
    await exported()
    await flush()
    for (const again of [await verify(), await verifyFile(await exported())]) {
      expect(again.code, again.output).toBe(0)
    }
    const list = await online('audit', 'list')
    expect(list.output).toContain('audit.reflushed')
  })

  it('compare chains with every checkpoint', async () => {
    await administrator(gateway()).ask('POST', '/audit/checkpoints')
    const lines = await exported()
    expect((await verifyFile(lines)).output).toMatch(/^ok {6}checkpoints: \d+$/m)
    const [row] = await sql('SELECT id, at FROM audit_checkpoints ORDER BY at DESC LIMIT 1')
    try {
      await sql("UPDATE audit_checkpoints SET at = at - interval '1 second' WHERE id = $1", [row?.id])
      for (const run of [await verify(), await verifyFile(await exported())]) {
        expect(run.output).toContain(`BROKEN  checkpoint ${row?.id} (forged: `)
      }
    } finally {
      await sql('UPDATE audit_checkpoints SET at = $2 WHERE id = $1', [row?.id, row?.at])
    }
  })
})

describe('audit export', () => {
  type Change = [what: string, change: (lines: string[]) => string[], fault: RegExp]
  const edit = (type: string, change: (line: string) => string) => (lines: string[]) => {
    const index = lines.findIndex((line) => line.startsWith(`{"type":"${type}"`))
    return lines.map((line, each) => (each === index ? change(line) : line))
  }
  const changes: Change[] = [
    [
      'a changed body',
      edit('record', (line) => line.replace('"requestId', '"RequestId').replace('\\"at\\":', '\\"at\\": ')),
      /altered/,
    ],
    ['a line that is no JSON', edit('record', () => '{'), /line \d+ is not a line of an export/],
    [
      'changed heads',
      edit('heads', (line) => line.replace('"first":1', '"first":0')),
      /heads of the ledger \(forged/,
    ],
    ['no end', (lines) => lines.slice(0, -1), /cut off/],
    ['no heads', (lines) => lines.filter((line) => !line.startsWith('{"type":"heads"')), /no heads/],
    [
      'no last record',
      (lines) => {
        const last = lines.findLastIndex((line) => line.startsWith('{"type":"record"'))
        return lines.filter((_, index) => index !== last)
      },
      /names it, and it is missing/,
    ],
  ]

  it('is found changed by its verification', async () => {
    const lines = await exported()
    expect(await verifyFile(['', '> headgate@0.1.0 admin', '', ...lines])).toMatchObject({ code: 0 })
    for (const [what, change, fault] of changes) {
      const run = await verifyFile(change(lines))
      expect(run, `${what}: ${run.output}`).toMatchObject({ code: 3, output: expect.stringMatching(fault) })
    }
  })

  it('is verified without the pepper but for its MACs, with the right pepper only', async () => {
    const lines = await exported()
    const without = await verifyFile(lines, {})
    expect(without).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^note .*not verified.*KEY_PEPPERS/m),
    })
    const other = {
      KEY_PEPPERS: `${peppers().KEY_PEPPERS?.split(':')[0]}:${Buffer.alloc(32, 3).toString('base64')}`,
    }
    expect(await verifyFile(lines, other)).toMatchObject({
      code: 3,
      output: expect.stringContaining('forged'),
    })
    expect(await verifyFile(lines, { KEY_PEPPERS: 'nonsense' })).toMatchObject({ code: 1 })
  })

  it('is recorded, and holds nothing of another organization', async () => {
    const other = await createTenant(gateway())
    await administrator(gateway()).ask('POST', `${other.base}/ledger/flush`)
    await administrator(gateway()).ask('POST', '/audit/checkpoints')
    const text = (await exported()).join('\n')
    expect(text).toContain(tenant.organizationId)
    expect(text).not.toContain(other.organizationId)
    await flush()
    const recorded = await sql(
      `SELECT action FROM audit_records WHERE ${owned()} AND action = 'audit.exported'`,
    )
    expect(recorded.length).toBeGreaterThan(0)
  })
})

describe('a checkpoint that was deleted', () => {
  const deployment = { HEADGATE_URL: gateway().baseUrl, ADMIN_TOKEN: gateway().adminToken }
  const faultsOf = async (id: string) => {
    const run = await admin(['audit', 'export', '--deployment'], deployment)
    expect(run, run.errors).toMatchObject({ code: 0 })
    const { lines } = await verifyFile(run.lines)
    return lines.filter((line) => line.includes(id) && line.startsWith('BROKEN'))
  }

  it('is missing in an export of the deployment, whose chain states it', async () => {
    const { id } = (await administrator(gateway()).ask('POST', '/audit/checkpoints')) as { id: string }
    expect(await faultsOf(id)).toEqual([])
    const [row] = await sql('DELETE FROM audit_checkpoints WHERE id = $1 RETURNING *', [id])
    try {
      expect(await faultsOf(id)).toEqual([
        expect.stringMatching(/\(checkpoint_missing: audit_checkpoints has no row of /),
      ])
    } finally {
      await sql(
        'INSERT INTO audit_checkpoints SELECT * FROM jsonb_populate_record(NULL::audit_checkpoints, $1::jsonb)',
        [JSON.stringify(row)],
      )
    }
  })
})
