import { env } from 'cloudflare:workers'
import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import { configurationOf } from '../../src/deps.ts'
import { findReplacedHeads, readChainHeads } from '../../src/governance/ledger/records/chain.store.ts'
import { GENESIS } from '../../src/governance/ledger/records/chain.ts'
import { verifyCheckpoints, writeCheckpoint } from '../../src/governance/ledger/records/checkpoint.ts'
import { verifyLinks } from '../../src/governance/ledger/records/verify.ts'
import { database, expectIntactChain, newOrganization, outcome } from './ledger-harness.ts'

const configuration = configurationOf(env)
const deps = { database, clock: () => Date.now(), configuration }

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
    expect(await verifyCheckpoints(deps)).toMatchObject({ intact: true })
  })

  it('name each chain once, however many there are', async () => {
    const organizations = []
    for (let made = 0; made < 5; made += 1) organizations.push(await organizationWithCalls(2))
    const heads = await readChainHeads(database)
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
        expect(await verifyCheckpoints(deps)).toMatchObject({ intact: false, reason: 'chain_differs' })
      },
    )
    expect(await verifyCheckpoints(deps)).toMatchObject({ intact: true })
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
        const verification = await verifyCheckpoints(deps)
        expect(verification).toMatchObject({ intact: false, reason: 'chain_differs' })
        expect(verification).toMatchObject({ detail: expect.stringContaining(owner) })
      })
    }
  })

  it('find a checkpoint that was changed, or made under an unknown key', async () => {
    await organizationWithCalls(1)
    const { id, mac } = await writeCheckpoint(deps)
    const strangers = { ...deps, configuration: { KEY_PEPPERS: new Map([['other', new Uint8Array(32)]]) } }
    expect(await verifyCheckpoints(strangers)).toMatchObject({ intact: false, reason: 'unknown_key' })
    await database.execute(
      sql`UPDATE audit_checkpoints SET heads = heads || ${JSON.stringify([
        { organizationId: crypto.randomUUID(), shard: 0, sequence: 1, hash: 'x' },
      ])}::jsonb WHERE id = ${id}`,
    )
    expect(await verifyCheckpoints(deps)).toEqual({
      intact: false,
      checkpointId: id,
      reason: 'forged',
      detail: 'its MAC is wrong',
    })
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
    expect(await verifyCheckpoints(rotated)).toMatchObject({ intact: true })
    await writeCheckpoint(rotated)
    expect(await verifyCheckpoints(rotated)).toMatchObject({ intact: true })
    await database.execute(sql`DELETE FROM audit_checkpoints WHERE pepper_id = 'new'`)
  })

  it('tell which of several heads was replaced', async () => {
    const organization = await organizationWithCalls(2)
    const rows = await organization.rows()
    const heads = rows.map(({ organizationId, shard, sequence, hash }) => ({
      organizationId,
      shard,
      sequence,
      hash,
    }))
    expect(await findReplacedHeads(database, heads)).toEqual([])
    const wrong = { ...heads[1], hash: 'x' } as (typeof heads)[number]
    expect(await findReplacedHeads(database, [...heads, wrong])).toEqual([wrong])
  })
})
