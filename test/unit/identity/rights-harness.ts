import { randomUUID } from 'node:crypto'
import type { Redis } from '@upstash/redis'
import { and, eq, sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, beforeEach, expect, vi } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { apiKeys, groupMemberships, groups, memberships, organizations } from '../../../schema/identity.ts'
import { type Identification, identify } from '../../../src/identity/identify.ts'
import type { Principal } from '../../../src/identity/principal.ts'
import { type Caller, configuration, databaseAt } from '../calls/fixtures.ts'
import { emptyPostgres, emptyRedis, type Forwarder, startForwarder } from '../calls/stand-ins.ts'

export const away = { status: 503, body: '{"message":"away"}' } as const

/** Callers in a real database, seen through a forwarder that can fail, a Redis, and a clock that the test moves. */
export class RightsWorld {
  /** Milliseconds since the epoch. */
  now = Date.UTC(2026, 10, 21, 12, 0)
  /** Bypasses the forwarder, so that statements of the test are neither counted nor refused. */
  direct!: Database
  /** Database of the code under test. */
  database!: Database
  postgres!: Forwarder
  redis!: Redis

  /** For all tests of a file. */
  static forFile(): RightsWorld {
    const world = new RightsWorld()
    beforeAll(() => world.#start(), 120_000)
    afterAll(() => world.postgres?.close())
    beforeEach(() => {
      for (const level of ['log', 'error'] as const) vi.spyOn(console, level).mockImplementation(() => {})
      // Past anything an earlier test left in the isolate's memory.
      world.now += 10 * 60_000
      world.postgres.behaviour = 'forward'
    })
    afterEach(() => void vi.restoreAllMocks())
    return world
  }

  async #start(): Promise<void> {
    const [postgres, redis] = await Promise.all([emptyPostgres(), emptyRedis()])
    this.redis = redis.redis
    this.postgres = await startForwarder(postgres.url)
    this.direct = postgres.database
    this.database = databaseAt(this.postgres)
  }

  deps(values: Record<string, unknown> = {}) {
    // Generous, so that a busy machine is not taken for a slow Redis.
    const settings = configuration({ LIMITS_TIMEOUT_MS: 20_000, ...values })
    return { configuration: settings, clock: () => this.now, database: this.database, redis: this.redis }
  }

  /** The rights of a key, for a test in which it has to be good. */
  async principalOf(caller: Caller, values: Record<string, unknown> = {}): Promise<Principal> {
    return known(await identify(this.deps(values), caller.key, null))
  }

  /** Raises the epoch in Postgres, as every change of rights does. */
  async raiseEpoch({ organizationId }: Caller): Promise<number> {
    const [row] = await this.direct
      .update(organizations)
      .set({ epoch: sql`${organizations.epoch} + 1` })
      .where(eq(organizations.id, organizationId))
      .returning({ epoch: organizations.epoch })
    return row?.epoch ?? 0
  }

  async revoke({ keyId }: Caller): Promise<void> {
    await this.direct
      .update(apiKeys)
      .set({ revokedAt: new Date(this.now) })
      .where(eq(apiKeys.id, keyId))
  }

  async joinGroup(caller: Caller, groupOrganizationId: string, rowOrganizationId: string): Promise<string> {
    const id = randomUUID()
    await this.direct.insert(groups).values({ id, organizationId: groupOrganizationId, name: id })
    await this.direct
      .insert(groupMemberships)
      .values({ organizationId: rowOrganizationId, groupId: id, userId: caller.userId })
    return id
  }
}

export function known(identification: Identification): Principal {
  if (identification.kind === 'refused') throw new Error(`refused: ${identification.reason}`)
  return identification.principal
}

export const memberOf = (caller: Caller) =>
  and(eq(memberships.organizationId, caller.organizationId), eq(memberships.userId, caller.userId))

export const refused = (caller: Caller, reason: string) => ({
  kind: 'refused',
  reason,
  owner: {
    organizationId: caller.organizationId,
    userId: caller.userId,
    keyId: caller.keyId,
    callsPerMinute: expect.any(Number),
  },
})
