import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { sql } from 'drizzle-orm'
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../src/ledger/audit-record.ts'
import { ledgerClient } from '../../src/ledger/client.ts'
import type { Admission, CallToAdmit } from '../../src/ledger/contract.ts'
import { DEPLOYMENT_LEDGER } from '../../src/ledger/ledger-object.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  creditSum,
  database,
  expectIntactChain,
  LEASE_MS,
  newOrganization,
  type Organization,
  outcome,
} from './ledger-harness.ts'

const MINUTE_BEGAN = Date.UTC(2026, 10, 22, 12)
useDatabaseGate(MINUTE_BEGAN)

/** An organization that Postgres knows, at epoch 5. */
async function registeredOrganization(): Promise<Organization> {
  const organization = newOrganization()
  const { organizationId } = organization
  await database.execute(
    sql`INSERT INTO organizations (id, name, slug, epoch) VALUES (${organizationId}, 'n', ${organizationId}, 5)`,
  )
  return organization
}

const setEpoch = ({ organizationId }: Organization, epoch: number) =>
  database.execute(sql`UPDATE organizations SET epoch = ${epoch} WHERE id = ${organizationId}`)

const setCatalogue = (epoch: number) =>
  database.execute(sql`INSERT INTO deployment_epochs (name, epoch) VALUES ('catalogue', ${epoch})
    ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch`)

const callOf = (organization: Organization, more: Partial<CallToAdmit> = {}): CallToAdmit => ({
  opening: organization.opening(),
  reserve: 0,
  leaseMilliseconds: LEASE_MS,
  estimate: null,
  epochs: { organization: 5, catalogue: null },
  learned: null,
  limits: null,
  ...more,
})

const admit = (organization: Organization, more: Partial<CallToAdmit> = {}): Promise<Admission> =>
  organization.ledger.admit(callOf(organization, more))

const at = (organization: number, catalogue: number | null = null) => ({
  epochs: { organization, catalogue },
})

const ADMITTED = { kind: 'admitted' }

describe('the epoch of rights', () => {
  it('is known from the beginning of an account', async () => {
    const organization = await registeredOrganization()
    expect(await admit(organization)).toEqual(ADMITTED)
    expect(await admit(organization, at(4))).toEqual({ kind: 'stale', organization: 5, catalogue: null })
    // Whoever read a newer one knows more than the ledger.
    expect(await admit(organization, at(6))).toEqual({ kind: 'stale', organization: null, catalogue: null })
  })

  it('refuses the old one as soon as the ledger has been told of a new one, also after a restart', async () => {
    const organization = await registeredOrganization()
    expect(await admit(organization)).toEqual(ADMITTED)
    await organization.ledger.learnEpoch(6)
    expect(await admit(organization)).toEqual({ kind: 'stale', organization: 6, catalogue: null })
    await abortAllDurableObjects()
    expect(await admit(organization)).toEqual({ kind: 'stale', organization: 6, catalogue: null })
    expect(await admit(organization, at(6))).toEqual(ADMITTED)
  })

  it('is never lowered by who read it before it was raised', async () => {
    const organization = await registeredOrganization()
    await setEpoch(organization, 7)
    await organization.ledger.learnEpoch(7)
    await organization.ledger.learnEpoch(6)
    const learned = { organization: 5, catalogue: null }
    expect(await admit(organization, { learned })).toMatchObject({ kind: 'stale', organization: 7 })
    await organization.ledger.recordChange(organization.change('x'))
    await organization.ledger.flush()
    expect(await admit(organization)).toMatchObject({ kind: 'stale', organization: 7 })
  })

  it('is unknown a minute after Postgres was last heard of, and taken over from who asked Postgres', async () => {
    const organization = await registeredOrganization()
    await admit(organization)
    passTime(59_999)
    expect(await admit(organization)).toEqual(ADMITTED)
    passTime(1)
    expect(await admit(organization)).toEqual({ kind: 'stale', organization: null, catalogue: null })
    expect(await admit(organization, { learned: { organization: 5, catalogue: null } })).toEqual(ADMITTED)
    expect(await admit(organization)).toEqual(ADMITTED)
  })

  it('is confirmed by every flush, which also finds what nobody told', async () => {
    const organization = await registeredOrganization()
    await admit(organization)
    passTime(50_000)
    await organization.ledger.recordChange(organization.change('x'))
    await organization.ledger.flush()
    passTime(50_000)
    expect(await admit(organization)).toEqual(ADMITTED)
    await setEpoch(organization, 9)
    await organization.ledger.recordChange(organization.change('y'))
    await organization.ledger.flush()
    expect(await admit(organization)).toEqual({ kind: 'stale', organization: 9, catalogue: null })
    await organization.evict()
    expect(await admit(organization)).toEqual({ kind: 'stale', organization: 9, catalogue: null })
  })

  it('is raised above what the ledger knew, when Postgres was restored', async () => {
    const organization = await registeredOrganization()
    await organization.ledger.learnEpoch(8)
    passTime(60_000)
    const learned = { organization: 5, catalogue: null }
    expect(await admit(organization, { learned })).toMatchObject({ kind: 'stale', organization: 9 })
    expect(await admit(organization, at(9))).toEqual(ADMITTED)
  })

  it('opens and records nothing for a call that is stale', async () => {
    const organization = await registeredOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const call = callOf(organization, { reserve: 40, ...at(4) })
    await organization.ledger.admit(call)
    const counted = { ...at(4), learned: null, limits: null }
    expect(await organization.ledger.record(organization.opening(), outcome(), counted)).toMatchObject({
      kind: 'stale',
    })
    expect((await organization.ledger.balance()).reserved).toBe(0)
    await organization.ledger.flush()
    expect(await expectIntactChain(organization)).toHaveLength(1)
    expect(await organization.ledger.admit({ ...call, ...at(5) })).toEqual(ADMITTED)
  })
})

describe('the epoch of the catalogue', () => {
  const deployment = ledgerClient(env.LEDGER, DEPLOYMENT_ORGANIZATION_ID)
  let epoch = 1_000
  beforeEach(async () => {
    epoch += 10
    await setCatalogue(epoch)
    await deployment.announceCatalogue(epoch)
  })
  // Other files share the deployment's ledger: what it announced must not stay ahead of Postgres.
  afterAll(() => setCatalogue(epoch + 2))

  /** Asks until the ledger knows by itself. */
  async function settled(organization: Organization, catalogue: number) {
    await vi.waitFor(async () => expect(await admit(organization, at(5, catalogue))).toEqual(ADMITTED), {
      interval: 5,
    })
  }

  it('is unknown to a ledger that nobody would tell of changes, but for a call that has asked itself', async () => {
    const organization = await registeredOrganization()
    expect(await admit(organization, at(5, epoch))).toEqual({
      kind: 'stale',
      organization: 5,
      catalogue: null,
    })
    const learned = { organization: 5, catalogue: epoch }
    expect(await admit(organization, { ...at(5, epoch), learned })).toEqual(ADMITTED)
    await settled(organization, epoch)
  })

  it('is told to every ledger that relies on it before the announcement is over', async () => {
    const organizations = await Promise.all([1, 2, 3].map(registeredOrganization))
    for (const organization of organizations) {
      await admit(organization, at(5, epoch))
      await settled(organization, epoch)
    }
    await deployment.announceCatalogue(epoch + 1)
    for (const organization of organizations) {
      expect(await admit(organization, at(5, epoch))).toEqual({
        kind: 'stale',
        organization: 5,
        catalogue: epoch + 1,
      })
      expect(await admit(organization, at(5, epoch + 1))).toEqual(ADMITTED)
      // Calls that do not use it are not its affair.
      expect(await admit(organization)).toEqual(ADMITTED)
    }
  })

  it('is what was announced, for a ledger that read it before and asked to be told after', async () => {
    const organization = await registeredOrganization()
    await admit(organization)
    await deployment.announceCatalogue(epoch + 1)
    await vi.waitFor(
      async () =>
        expect(await admit(organization, at(5, epoch))).toEqual({
          kind: 'stale',
          organization: 5,
          catalogue: epoch + 1,
        }),
      { interval: 5 },
    )
  })

  it('is unknown again once the registration has run out, and after a restart', async () => {
    const organization = await registeredOrganization()
    await admit(organization, at(5, epoch))
    await settled(organization, epoch)
    await organization.evict()
    expect(await admit(organization, at(5, epoch))).toMatchObject({ kind: 'stale', catalogue: null })
    await settled(organization, epoch)
    passTime(60_000)
    expect(await admit(organization, at(5, epoch))).toMatchObject({ kind: 'stale', catalogue: null })
  })

  it('is kept known while calls come', async () => {
    const organization = await registeredOrganization()
    await admit(organization, at(5, epoch))
    await settled(organization, epoch)
    for (let step = 0; step < 6; step += 1) {
      passTime(25_000)
      await organization.ledger.recordChange(organization.change('x'))
      await organization.ledger.flush()
      expect(await admit(organization, at(5, epoch))).toEqual(ADMITTED)
      // What was begun in the background.
      await runInDurableObject(organization.stub(), () => new Promise((resolve) => setTimeout(resolve, 20)))
    }
  })

  it('fails to be announced where one that relies on it cannot be told', async () => {
    await runInDurableObject(env.LEDGER.getByName(DEPLOYMENT_LEDGER), (_, { storage }) => {
      storage.sql.exec(
        'INSERT OR REPLACE INTO catalogue_subscribers (name, until) VALUES (?, ?)',
        'no ledger at all',
        Date.now() + 1_000,
      )
    })
    await expect(deployment.announceCatalogue(epoch + 2)).rejects.toThrow()
    passTime(1_000)
    await deployment.announceCatalogue(epoch + 2)
  })
})

describe('limits', () => {
  const limits = (user: string, organizationPerMinute: number, userPerMinute: number) => ({
    limits: { userId: user, organizationPerMinute, userPerMinute },
  })

  it('admit exactly as many calls at once as each allows, and say whose it was', async () => {
    const organization = await registeredOrganization()
    const calls = Array.from({ length: 60 }, () => admit(organization, limits('a', 1_000, 20)))
    const admissions = await Promise.all(calls)
    expect(admissions.filter(({ kind }) => kind === 'admitted')).toHaveLength(20)
    const refused = { kind: 'limited', scope: 'user', retryAfterSeconds: 60 }
    expect(admissions.filter(({ kind }) => kind !== 'admitted')).toEqual(Array(40).fill(refused))
    const others = Array.from({ length: 60 }, (_, user) => admit(organization, limits(`u${user}`, 50, 20)))
    const kinds = (await Promise.all(others)).map((admission) => admission.kind)
    expect(kinds.filter((kind) => kind === 'admitted')).toHaveLength(30)
    expect((await Promise.all(others)).find(({ kind }) => kind === 'limited')).toMatchObject({
      scope: 'organization',
    })
  })

  it('are remembered over a restart, and weigh the window before by what is left of it', async () => {
    const organization = await registeredOrganization()
    passTime(30_000)
    await Promise.all(Array.from({ length: 10 }, () => admit(organization, limits('a', 100, 10))))
    await organization.evict()
    passTime(1_001)
    expect(await admit(organization, limits('a', 100, 10))).toEqual({
      kind: 'limited',
      scope: 'user',
      retryAfterSeconds: 29,
    })
    // A quarter into the next window three quarters of ten still count: seven.
    passTime(28_999 + 15_000)
    await organization.evict()
    const next = await Promise.all(Array.from({ length: 5 }, () => admit(organization, limits('a', 100, 10))))
    expect(next.filter(({ kind }) => kind === 'admitted')).toHaveLength(3)
  })

  it('are repeated by the isolate for the rest of a second when many calls are refused, and no sooner', async () => {
    const organization = await registeredOrganization()
    const ask = () =>
      organization.ledger.check({ ...at(4), learned: null, ...limits('a', 1, 5) }).then(({ kind }) => kind)
    await admit(organization, limits('a', 1, 5))
    for (let refused = 0; refused < 19; refused += 1) await admit(organization, limits('a', 1, 5))
    // Rights of another epoch: the ledger was asked.
    expect(await ask()).toBe('stale')
    await admit(organization, limits('a', 1, 5))
    expect(await ask()).toBe('limited')
    // Another limit is another question.
    expect(await admit(organization, limits('a', 2, 5))).toMatchObject(ADMITTED)
    passTime(999)
    expect(await ask()).toBe('limited')
    passTime(1)
    expect(await ask()).toBe('stale')
  })

  it('count no call that is refused, for whatever reason', async () => {
    const organization = await registeredOrganization()
    await Promise.all([
      admit(organization, { ...limits('a', 100, 3), reserve: 1 }),
      admit(organization, { ...limits('a', 100, 3), ...at(4) }),
      organization.ledger.check({ ...at(5), learned: null, ...limits('a', 100, 3) }),
    ])
    const kinds = await Promise.all(Array.from({ length: 4 }, () => admit(organization, limits('a', 100, 3))))
    expect(kinds.map(({ kind }) => kind)).toEqual(['admitted', 'admitted', 'admitted', 'limited'])
  })

  it('count what is only recorded, where that is asked for', async () => {
    const organization = await registeredOrganization()
    const counted = { ...at(5), learned: null, ...limits('a', 100, 2) }
    const record = () => organization.ledger.record(organization.opening(), outcome(), counted)
    expect(await record()).toMatchObject(ADMITTED)
    expect(await record()).toMatchObject(ADMITTED)
    expect(await record()).toMatchObject({ kind: 'limited', scope: 'user' })
    await organization.ledger.flush()
    expect(await expectIntactChain(organization)).toHaveLength(2)
  })
})

describe('a storage of the version before', () => {
  it('goes on where it was: balance, open calls, records that wait, grants and leases', async () => {
    const organization = newOrganization()
    const { organizationId } = organization
    const grant = organization.grant(100)
    await organization.ledger.grantCredits(grant)
    const [kept, lapsing] = [organization.opening(), organization.opening()]
    await organization.open(30, kept)
    await organization.open(10, lapsing)
    await organization.ledger.record(organization.opening(), outcome())
    await turnBack(organization, [
      { opening: kept, reserve: 30, deadline: Date.now() + 3 * LEASE_MS },
      { opening: lapsing, reserve: 10, deadline: Date.now() + LEASE_MS },
    ])
    expect(await organization.ledger.balance()).toEqual({ balance: 100, reserved: 40, available: 60 })
    const again = { ...grant, change: organization.change('credits.granted') }
    expect((await organization.ledger.grantCredits(again)).balance).toBe(100)
    passTime(LEASE_MS)
    await organization.runAlarm()
    expect(await organization.ledger.balance()).toEqual({ balance: 90, reserved: 30, available: 60 })
    await organization.ledger.close(kept.callId, outcome({ cost: 7 }))
    await organization.evict()
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    expect(await organization.ledger.balance()).toEqual({ balance: 83, reserved: 0, available: 83 })
    const rows = await expectIntactChain(organization)
    expect(rows.map(({ creditsSettled }) => creditsSettled)).toEqual([0, 0, 10, 7])
    expect(rows.slice(2).map(({ requestId }) => requestId)).toEqual([lapsing.requestId, kept.requestId])
    expect(await creditSum(organizationId)).toBe(83)
  })
})

/** Makes the storage what the version before would have left. */
async function turnBack(
  organization: Organization,
  open: Array<{ opening: object & { callId: string }; reserve: number; deadline: number }>,
): Promise<void> {
  await runInDurableObject(organization.stub(), (_, { storage }) => {
    const rows = storage.sql.exec("SELECT * FROM commits WHERE ids <> '' ORDER BY number").toArray()
    storage.sql.exec(`
      CREATE TABLE outbox (
        sequence INTEGER PRIMARY KEY, id TEXT NOT NULL, appended_at INTEGER NOT NULL, balance INTEGER NOT NULL,
        previous_hash TEXT NOT NULL, hash TEXT NOT NULL, body TEXT NOT NULL);
      CREATE TRIGGER settled_calls_are_closed AFTER INSERT ON outbox
        BEGIN DELETE FROM open_calls WHERE call_id = NEW.id; END;
      CREATE TABLE account_before (
        id INTEGER PRIMARY KEY CHECK (id = 1), organization_id TEXT NOT NULL, shard INTEGER NOT NULL,
        balance INTEGER NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL, flushed INTEGER NOT NULL);
      INSERT INTO account_before SELECT id, organization_id, shard, balance, sequence, hash, flushed FROM account;
      DROP TABLE account; ALTER TABLE account_before RENAME TO account; DROP TABLE commits;
      ALTER TABLE grants DROP COLUMN amount;`)
    for (const row of rows) {
      const { sequence, ids, at, balance, previous_hash: previous, hashes, bodies } = row
      const values = [sequence, ids, at, balance, previous, hashes, bodies] as SqlStorageValue[]
      storage.sql.exec('INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?)', ...values)
    }
    for (const { opening, reserve, deadline } of open) {
      const values = [opening.callId, reserve, deadline, JSON.stringify(opening)]
      storage.sql.exec('INSERT INTO open_calls VALUES (?, ?, ?, ?, NULL)', ...values)
    }
  })
  await organization.evict()
}
