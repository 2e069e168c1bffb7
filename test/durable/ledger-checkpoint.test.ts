import { env } from 'cloudflare:workers'
import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import { configurationOf } from '../../src/deps.ts'
import type { LedgerClient } from '../../src/ledger/contract.ts'
import { readChainHeads, readHashes } from '../../src/ledger/records/chain.store.ts'
import { GENESIS } from '../../src/ledger/records/chain.ts'
import {
  type CheckpointDeps,
  exportCheckpoints,
  verifyAttested,
  verifyCheckpoints,
  writeCheckpoint,
} from '../../src/ledger/records/checkpoint.ts'
import { verifyLinks } from '../../src/ledger/records/verify.ts'
import { database, expectIntactChain, newOrganization, outcome } from './ledger-harness.ts'

const configuration = configurationOf(env)
const deps = {
  database,
  clock: () => Date.now(),
  configuration,
  // The deployment's chain has one writer: `deployment-chain.test.ts` has its tests.
  ledgerOf: () => ({ recordChange: async () => {} }) as unknown as LedgerClient,
}

/** Verifies all checkpoints, page by page. */
async function verifyAll(of: CheckpointDeps) {
  const all = []
  let after: string | null = null
  do {
    const page = await verifyCheckpoints(of, { organizationId: null, after, limit: 2 })
    all.push(...page.faults)
    after = page.next
  } while (after !== null)
  return { faults: all }
}

async function organizationWithCalls(count: number) {
  const organization = newOrganization()
  for (let call = 0; call < count; call += 1) {
    await organization.ledger.record(organization.opening(), outcome())
  }
  await organization.ledger.flush()
  return organization
}

/** Runs `look` while a chain is damaged, and puts the damage right again: the checkpoints cover every chain there is. */
async function whileDamaged(
  organizationId: string,
  damage: ReturnType<typeof sql>,
  look: () => Promise<void>,
) {
  await database.execute(sql`CREATE TABLE kept AS SELECT * FROM audit_records
    WHERE organization_id = ${organizationId}`)
  try {
    await database.execute(damage)
    await look()
  } finally {
    await database.batch([
      database.execute(sql`DELETE FROM audit_records WHERE organization_id = ${organizationId}`),
      database.execute(sql`INSERT INTO audit_records SELECT * FROM kept`),
      database.execute(sql`DROP TABLE kept`),
    ])
  }
}

describe('checkpoints', () => {
  it('hold the head of every chain', async () => {
    const [one, two] = [await organizationWithCalls(2), await organizationWithCalls(3)]
    const { heads } = await writeCheckpoint(deps)
    for (const [organization, sequence] of [
      [one, 2],
      [two, 3],
    ] as const) {
      const rows = await expectIntactChain(organization)
      expect(heads).toContainEqual({
        organizationId: organization.organizationId,
        shard: 0,
        sequence,
        hash: rows.at(-1)?.hash,
      })
    }
    expect(await verifyAll(deps)).toMatchObject({ faults: [] })
  })

  it('name each chain once, however many there are', async () => {
    const organizations = []
    for (let made = 0; made < 5; made += 1) organizations.push(await organizationWithCalls(2))
    const heads = await readChainHeads(database, null)
    const chains = heads.map((head) => `${head.organizationId}:${head.shard}`)
    expect(chains).toEqual([...new Set(chains)])
    // Other test files append to chains of their own meanwhile, so only these have a length that is known.
    for (const { organizationId } of organizations) {
      expect(heads).toContainEqual(expect.objectContaining({ organizationId, shard: 0, sequence: 2 }))
    }
  })

  it('find a chain that was shortened although what is left is intact', async () => {
    const organization = await organizationWithCalls(4)
    await writeCheckpoint(deps)
    const owner = organization.organizationId
    await whileDamaged(
      owner,
      sql`DELETE FROM audit_records WHERE organization_id = ${owner} AND sequence > 2`,
      async () => {
        expect(verifyLinks(await organization.rows(), GENESIS)).toMatchObject({ intact: true })
        expect((await verifyAll(deps)).faults).toContainEqual(
          expect.objectContaining({ reason: 'chain_differs', detail: expect.stringContaining(owner) }),
        )
      },
    )
    expect(await verifyAll(deps)).toMatchObject({ faults: [] })
  })

  it('find a chain that was deleted or rewritten', async () => {
    const organization = await organizationWithCalls(2)
    await writeCheckpoint(deps)
    const owner = organization.organizationId
    for (const damage of [
      sql`DELETE FROM audit_records WHERE organization_id = ${owner}`,
      sql`UPDATE audit_records SET hash = repeat('a', 64) WHERE organization_id = ${owner} AND sequence = 2`,
    ]) {
      await whileDamaged(owner, damage, async () => {
        expect((await verifyAll(deps)).faults).toContainEqual(
          expect.objectContaining({ reason: 'chain_differs', detail: expect.stringContaining(owner) }),
        )
      })
    }
  })

  it('find a checkpoint that was changed, or made under an unknown key', async () => {
    await organizationWithCalls(1)
    const { id, mac } = await writeCheckpoint(deps)
    const strangers = { ...deps, configuration: { KEY_PEPPERS: new Map([['other', new Uint8Array(32)]]) } }
    expect((await verifyAll(strangers)).faults).toContainEqual(
      expect.objectContaining({ checkpointId: id, reason: 'unknown_key' }),
    )
    await database.execute(
      sql`UPDATE audit_checkpoints SET heads = heads || ${JSON.stringify([
        { organizationId: crypto.randomUUID(), shard: 0, sequence: 1, hash: 'x' },
      ])}::jsonb WHERE id = ${id}`,
    )
    const forged = { checkpointId: id, reason: 'forged', detail: 'its MAC is wrong' }
    expect(await verifyAll(deps)).toMatchObject({ faults: [forged] })
    await database.execute(sql`DELETE FROM audit_checkpoints WHERE mac = ${mac}`)
  })

  it('still verify after the current key has changed', async () => {
    await writeCheckpoint(deps)
    const [id, key] = [...configuration.KEY_PEPPERS][0] as [string, Uint8Array]
    const rotated = {
      ...deps,
      configuration: {
        KEY_PEPPERS: new Map([
          ['new', new Uint8Array(32).fill(9)],
          [id, key],
        ]),
      },
    }
    expect(await verifyAll(rotated)).toMatchObject({ faults: [] })
    await writeCheckpoint(rotated)
    expect(await verifyAll(rotated)).toMatchObject({ faults: [] })
    await database.execute(sql`DELETE FROM audit_checkpoints WHERE pepper_id = 'new'`)
  })

  it('are exported with the chains of one organization, under a MAC of their own', async () => {
    const [one, two] = [await organizationWithCalls(1), await organizationWithCalls(1)]
    const { id, heads } = await writeCheckpoint(deps)
    const { organizationId } = one
    const { checkpoints } = await exportCheckpoints(deps, { organizationId, after: null, limit: 1_000 })
    expect(JSON.stringify(checkpoints)).not.toContain(two.organizationId)
    const exported = checkpoints.find(({ statement }) => statement.checkpointId === id)
    if (!exported) throw new Error('the checkpoint was not exported')
    const own = heads.filter((head) => head.organizationId === organizationId)
    expect(exported.statement).toMatchObject({ organizationId, heads: own, fault: null })
    const peppers = configuration.KEY_PEPPERS
    expect(verifyAttested(peppers, exported)).toBeNull()
    const changed = { ...exported, statement: { ...exported.statement, heads: [] } }
    expect(verifyAttested(peppers, changed)).toMatchObject({ reason: 'forged' })
  })

  it('are compared with the hashes in the places of their heads', async () => {
    const organization = await organizationWithCalls(2)
    const rows = await organization.rows()
    const { organizationId } = organization
    const missing = { organizationId, shard: 0, sequence: 3 }
    expect(await readHashes(database, [...rows, missing])).toEqual([...rows.map(({ hash }) => hash), null])
    expect(await readHashes(database, [])).toEqual([])
  })
})

describe('the chains of a ledger', () => {
  it('hold its head, and what Postgres has of it', async () => {
    const organization = newOrganization()
    expect(await organization.ledger.chains()).toEqual([])
    const genesis = { sequence: 0, hash: GENESIS.hash }
    await organization.ledger.record(organization.opening(), outcome())
    await organization.ledger.record(organization.opening(), outcome())
    const [before] = await organization.ledger.chains()
    expect(before).toMatchObject({
      shard: 0,
      head: { sequence: 2 },
      flushed: genesis,
      pending: { sequence: 1 },
    })
    await organization.ledger.flush()
    const rows = await expectIntactChain(organization)
    expect(before?.pending?.hash).toBe(rows[0]?.hash)
    const head = { sequence: 2, hash: rows[1]?.hash }
    expect(await organization.ledger.chains()).toMatchObject([
      { shard: 0, head, flushed: head, flushedBalance: 0, pending: null, keptFrom: { sequence: 1 } },
    ])
    await organization.evict()
    await organization.ledger.record(organization.opening(), outcome())
    const [after] = await organization.ledger.chains()
    expect(after).toMatchObject({ head: { sequence: 3 }, flushed: head, pending: { sequence: 3 } })
  })
})
