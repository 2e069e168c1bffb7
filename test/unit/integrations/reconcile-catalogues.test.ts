import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { connections, integrations } from '../../../schema/integrations.ts'
import { reconcileCatalogues } from '../../../src/integrations/catalogue/refresh-catalogues.store.ts'
import { emptyPostgres } from '../calls/stand-ins.ts'

const ORGANIZATION = randomUUID()

type Status = 'active' | 'pending'
interface Case {
  name: string
  kind: 'mcp' | 'openapi'
  authorization: 'none' | 'bearer'
  isDeleted?: boolean
  connections: Status[]
  /** Connections whose catalogues there are afterwards, by their place; an empty text for that without a connection. */
  wanted: Array<number | ''>
}

const CASES: Case[] = [
  { name: 'open', kind: 'mcp', authorization: 'none', connections: [], wanted: [''] },
  { name: 'open-connected', kind: 'mcp', authorization: 'none', connections: ['active'], wanted: [] },
  { name: 'unconnected', kind: 'mcp', authorization: 'bearer', connections: [], wanted: [] },
  { name: 'pending', kind: 'mcp', authorization: 'bearer', connections: ['pending'], wanted: [] },
  {
    name: 'connected',
    kind: 'mcp',
    authorization: 'bearer',
    connections: ['active', 'pending', 'active'],
    wanted: [0, 2],
  },
  {
    name: 'deleted',
    kind: 'mcp',
    authorization: 'bearer',
    isDeleted: true,
    connections: ['active'],
    wanted: [],
  },
  { name: 'api', kind: 'openapi', authorization: 'bearer', connections: [], wanted: [''] },
  {
    name: 'api-connected',
    kind: 'openapi',
    authorization: 'bearer',
    connections: ['active', 'active'],
    wanted: [''],
  },
  {
    name: 'api-deleted',
    kind: 'openapi',
    authorization: 'none',
    isDeleted: true,
    connections: [],
    wanted: [],
  },
]

async function insertCase(database: Database, each: Case): Promise<void> {
  const id = randomUUID()
  const [{ name, kind }, organizationId] = [each, ORGANIZATION]
  await database.insert(integrations).values({
    id,
    organizationId,
    slug: name,
    displayName: name,
    kind,
    url: 'https://tools.example',
    authorization: { kind: each.authorization },
    approval: 'first',
    deletedAt: each.isDeleted ? new Date() : null,
  })
  for (const [place, status] of each.connections.entries())
    await database.insert(connections).values({
      id: `${name}-${place}`,
      organizationId,
      integrationId: id,
      displayName: name,
      broker: 'local',
      upstreamConnectionId: `${name}-${place}`,
      status,
    })
}

it('gives each active connection, and each server without connections, one catalogue', async () => {
  const { database } = await emptyPostgres()
  await database.execute(
    sql`INSERT INTO organizations (id, name, slug) VALUES (${ORGANIZATION}::uuid, 'x', 'x')`,
  )
  for (const each of CASES) await insertCase(database, each)
  const catalogues = async () => {
    const { rows } = await database.execute<{ place: string }>(sql`
      SELECT i.slug || ' ' || t.connection_id AS place FROM tool_catalogues t JOIN integrations i ON i.id = t.integration_id`)
    return rows.map(({ place }) => place).sort()
  }
  const wanted = CASES.flatMap(({ name, wanted }) =>
    wanted.map((place) => (place === '' ? `${name} ` : `${name} ${name}-${place}`)),
  ).sort()

  await reconcileCatalogues(database, new Date())
  expect(await catalogues()).toEqual(wanted)

  // Again, with one catalogue missing and one of a connection that is gone.
  await database.execute(sql`DELETE FROM tool_catalogues WHERE connection_id = 'connected-2'`)
  await database.execute(sql`DELETE FROM connections WHERE id = 'connected-0'`)
  await reconcileCatalogues(database, new Date())
  expect(await catalogues()).toEqual(wanted.filter((place) => place !== 'connected connected-0'))
})
