import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OpenDatabase, openDatabase } from '../../scripts/database.ts'
import { hasProtectedData } from '../../scripts/deploy/protected-data.ts'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import type { RotatedTable } from '../../src/wire/vault.ts'
import { migratedDatabase } from '../harness/migrated-database.ts'

/** What `npm run admin -- vault rotate` seals anew. A new kind has to be named here. */
const SEALED: Record<RotatedTable, string> = {
  connections: 'connections.sealed_credential',
  client_secrets: 'integrations.sealed_client_secret',
  providers: 'providers.sealed_credential',
  webhook_secrets: 'agent_triggers.sealed_secret',
  run_inputs: 'runs.sealed_inputs',
  identity_providers: 'identity_providers.sealed_client_secret',
}

/** What the peppers digest, or sign. */
const DIGESTED = ['api_keys', 'sessions', 'setup_links', 'audit_checkpoints', 'prunings']

let postgres: RunningServer
let opened: OpenDatabase

beforeAll(async () => {
  postgres = await startPostgres({ template: await migratedDatabase() })
  opened = await openDatabase({
    DATABASE_URL: 'postgres://headgate:local@127.0.0.1/headgate',
    DATABASE_FETCH_ENDPOINT: `${postgres.url}/sql`,
  })
})
afterAll(async () => {
  await opened.close()
  await postgres.close()
})

/** Values of columns that must have one, by type. Rows that they refer to are not made. */
const VALUES: Record<string, string> = {
  uuid: `'${randomUUID()}'`,
  text: "'x'",
  integer: '1',
  bigint: '1',
  jsonb: `'{}'`,
  ARRAY: `'{}'`,
  boolean: 'false',
  'timestamp with time zone': 'now()',
}

/** Runs statements on a table without its triggers, which check foreign keys. */
const inTable = (...statements: string[]) =>
  opened.transaction(['set local session_replication_role = replica', ...statements])

/** Inserts a row that has nothing but what it must have, and this column. */
async function insertRow(table: string, column: string): Promise<void> {
  const { rows } = (await opened.database.execute(
    `select column_name as name, data_type as type from information_schema.columns
     where table_schema = 'public' and table_name = '${table}'
       and (column_name = '${column}' or (is_nullable = 'NO' and column_default is null))`,
  )) as unknown as { rows: Array<{ name: string; type: string }> }
  const names = rows.map(({ name }) => `"${name}"`)
  const values = rows.map(({ type }) => VALUES[type] ?? `no value of ${type}`)
  await inTable(`insert into ${table} (${names.join(', ')}) values (${values.join(', ')})`)
}

describe('data that secrets of a deployment protect', () => {
  it('are none in a database without a schema, or without rows', async () => {
    expect(await hasProtectedData(opened)).toBe(false)
    await opened.transaction(['alter schema public rename to other', 'create schema public'])
    expect(await hasProtectedData(opened)).toBe(false)
    await opened.transaction(['drop schema public', 'alter schema other rename to public'])
  })

  it.each([
    ...Object.values(SEALED),
    'connect_sessions.sealed_state',
    ...DIGESTED.map((table) => `${table}.pepper_id`),
  ])('are there when %s is', async (place) => {
    const [table = '', column = ''] = place.split('.')
    await insertRow(table, column)
    expect(await hasProtectedData(opened)).toBe(true)
    await inTable(`delete from ${table}`)
    expect(await hasProtectedData(opened)).toBe(false)
  })

  it('are not there when an integration has no sealed secret', async () => {
    await insertRow('integrations', 'id')
    expect(await hasProtectedData(opened)).toBe(false)
    await inTable('delete from integrations')
  })
})
