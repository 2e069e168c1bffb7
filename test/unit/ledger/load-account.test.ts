import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { loadAccount } from '../../../src/ledger/account/account.store.ts'
import { HOME_SHARD } from '../../../src/ledger/shards/shards.ts'
import { emptyPostgres } from '../calls/stand-ins.ts'

/** More than nine, whose names are in another order than their numbers. */
const TRANSFERS = 12

/** An organization with three grants, and transfers between its home shard and two others. */
async function organizationWithTransfers(database: Database): Promise<string> {
  const organizationId = randomUUID()
  const insert = (kind: string, id: string, shard: number, amount: number) =>
    database.execute(sql`INSERT INTO credit_entries (id, organization_id, kind, shard, amount, reason, at)
      VALUES (${id}, ${organizationId}::uuid, ${kind}, ${shard}, ${amount}, 'test', now())`)
  for (const name of ['a', 'b', 'c']) await insert('grant', name, HOME_SHARD, 1_000)
  for (const shard of [1, 3])
    for (let number = 1; number <= TRANSFERS; number++) {
      await insert('transfer', `${shard}:${number}:sent`, HOME_SHARD, -number)
      await insert('transfer', `${shard}:${number}:received`, shard, number)
    }
  await insert('transfer', '3:2:returned', 3, -2)
  await insert('transfer', '3:2:taken', HOME_SHARD, 2)
  return organizationId
}

const last = (shard: number) => [
  { shard, direction: 'received', number: TRANSFERS, amount: TRANSFERS },
  { shard, direction: 'sent', number: TRANSFERS, amount: TRANSFERS },
]
const returned = [
  { shard: 3, direction: 'returned', number: 2, amount: 2 },
  { shard: 3, direction: 'taken', number: 2, amount: 2 },
]

it('gives the home shard its grants and the last transfers of all shards, and another one the last of its own', async () => {
  const { database } = await emptyPostgres()
  const organizationId = await organizationWithTransfers(database)
  const loaded = (shard: number) => loadAccount(database, { organizationId, shard })

  const home = await loaded(HOME_SHARD)
  expect(home.grants).toHaveLength(3)
  expect(home.transfers).toHaveLength(6)
  expect(home.transfers).toEqual(expect.arrayContaining([...last(1), ...last(3), ...returned]))

  const other = await loaded(3)
  expect(other.grants).toEqual([])
  expect(other.transfers).toHaveLength(4)
  expect(other.transfers).toEqual(expect.arrayContaining([...last(3), ...returned]))

  expect(await loaded(2)).toMatchObject({ grants: [], transfers: [] })
})

it('gives an organization without records nothing', async () => {
  const { database } = await emptyPostgres()
  const loaded = await loadAccount(database, { organizationId: randomUUID(), shard: HOME_SHARD })
  expect(loaded).toMatchObject({
    grants: [],
    transfers: [],
    lastShard: 0,
    state: { balance: 0, sequence: 0 },
  })
})
