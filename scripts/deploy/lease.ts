import { randomUUID } from 'node:crypto'
import { hostname, userInfo } from 'node:os'
import { sql } from 'drizzle-orm'
import type { DatabaseAddress } from '../database.ts'
import { type OpenDatabase, openDatabase, type ScriptDatabase } from '../database.ts'
import type { DeployClock } from './deploy-clock.ts'
import { DeployError } from './deploy-error.ts'

/**
 * Longer than a call of wrangler that lost its parent still runs. A deployment that dies blocks the next one for so long at most.
 */
export const LEASE_SECONDS = 120
const RENEW_EVERY_MS = 30_000
/** An answer that comes later may be of a lease that has ended since. */
const RENEWAL_LIMIT_MS = 10_000
const MOST_ATTEMPTS = 5
const RETRY_MS = 2_000
const LOST = 'the lease of this deployment was lost, and another one may run; nothing more is changed'

/** A schema of its own: the lease is needed before the first migration has run. */
const LEASES = sql.raw('headgate_deployment.leases')

/** Any number that nothing else locks: a node of `npm run serve` keeps its own for as long as it runs. */
const LOCK_ID = 7_264_190_333

const SCHEMA = [
  `select pg_advisory_xact_lock(${LOCK_ID})`,
  'create schema if not exists headgate_deployment',
  `create table if not exists headgate_deployment.leases (
     script text primary key, holder text not null, label text not null,
     expires_at timestamptz not null, tested_version text)`,
  `alter table headgate_deployment.leases
     add column if not exists tested_tools_version text, add column if not exists begun_rotations text`,
]

/** The versions of both scripts that passed the smoke test together; null if there are none. */
export interface TestedVersions {
  gateway: string | null
  tools: string | null
}

/** What earlier deployments of a script have left in its row. */
export interface DeploymentRecord {
  tested: TestedVersions
  /** Names of the secrets whose rotation was begun, and whose version was not tested with all traffic. */
  begunRotations: string[]
}

export const NO_RECORD: DeploymentRecord = { tested: { gateway: null, tools: null }, begunRotations: [] }

/** The right to deploy a script, held in its database: one deployment at a time. */
export class DeployLease {
  readonly #opened: OpenDatabase
  readonly #script: string
  readonly #holder: string
  #isLost = false
  readonly #timer: NodeJS.Timeout

  private constructor(opened: OpenDatabase, script: string, holder: string) {
    this.#opened = opened
    this.#script = script
    this.#holder = holder
    this.#timer = setInterval(() => void this.#renew(), RENEW_EVERY_MS)
    this.#timer.unref()
  }

  /**
   * Takes the lease, also one whose holder has not renewed it for LEASE_SECONDS.
   *
   * @throws DeployError naming the holder, DatabaseError if the database cannot be reached
   */
  static async acquire(address: DatabaseAddress, script: string): Promise<DeployLease> {
    const opened = await openDatabase(address)
    try {
      await opened.transaction(SCHEMA)
      const holder = randomUUID()
      const label = `${userInfo().username}@${hostname()}, process ${process.pid}`
      const taken = await rows(
        opened.database,
        sql`insert into ${LEASES} as held (script, holder, label, expires_at)
            values (${script}, ${holder}, ${label}, now() + make_interval(secs => ${LEASE_SECONDS}))
            on conflict (script) do update
              set holder = excluded.holder, label = excluded.label, expires_at = excluded.expires_at
              where held.expires_at <= now()
            returning holder`,
      )
      if (taken.length === 1) return new DeployLease(opened, script, holder)
      const [other] = await rows(
        opened.database,
        sql`select label, ceil(extract(epoch from expires_at - now())) as seconds from ${LEASES}
            where script = ${script}`,
      )
      throw new DeployError(
        `another deployment of ${script} runs (${other?.label}); if it has died, its lease ends in ${Number(other?.seconds ?? 0)} s`,
      )
    } catch (error) {
      await opened.close()
      throw error
    }
  }

  /**
   * Renews the lease, so that no other deployment can take over during the step that follows. A database that is away for a moment is
   * waited for.
   *
   * @param clock of these waits
   * @throws DeployError if the lease was lost, or if the database does not answer, so that it may be lost unseen
   */
  async confirm(clock: DeployClock): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const isRenewed = await this.#renew()
      if (this.#isLost) throw new DeployError(LOST)
      if (isRenewed) return
      if (attempt === MOST_ATTEMPTS)
        throw new DeployError(
          'the deployment stops, because the database of its lease does not answer and another one may take over; run again to continue',
        )
      await clock.sleep(RETRY_MS)
    }
  }

  /**
   * Stores which secrets have another value in the version that is uploaded next. Before the upload: later versions inherit the
   * secrets of the newest one, also when it was rolled back. In the database, because the file of secrets is lost with a machine of CI.
   *
   * @param names all of them, also those that earlier deployments have left
   * @throws DeployError if the lease was lost, DatabaseError if the database does not answer
   */
  async recordRotations(names: readonly string[]): Promise<void> {
    const stored = await rows(
      this.#opened.database,
      sql`update ${LEASES} set begun_rotations = ${names.join(',')}
          where script = ${this.#script} and holder = ${this.#holder} and expires_at > now() returning holder`,
    )
    if (stored.length === 0) throw new DeployError(LOST)
  }

  /** Stores that versions passed their test while they had all traffic. With that, the rotations of the gateway have ended. */
  async recordTested({ gateway, tools }: TestedVersions): Promise<void> {
    const { database } = this.#opened
    await database.execute(
      sql`update ${LEASES} set tested_version = ${gateway}, tested_tools_version = ${tools}, begun_rotations = null
          where script = ${this.#script} and holder = ${this.#holder}`,
    )
  }

  /** Ends the lease. The row stays: it has the version that was tested. */
  async release(): Promise<void> {
    clearInterval(this.#timer)
    const { database } = this.#opened
    try {
      await database.execute(
        sql`update ${LEASES} set expires_at = now() where script = ${this.#script} and holder = ${this.#holder}`,
      )
    } catch {
      // It ends by itself.
    } finally {
      await this.#opened.close()
    }
  }

  /** @returns whether the lease was renewed; false if the database does not answer, or if the lease is lost */
  async #renew(): Promise<boolean> {
    try {
      const renewed = await within(
        RENEWAL_LIMIT_MS,
        rows(
          this.#opened.database,
          sql`update ${LEASES} set expires_at = now() + make_interval(secs => ${LEASE_SECONDS})
              where script = ${this.#script} and holder = ${this.#holder} and expires_at > now() returning holder`,
        ),
      )
      if (renewed.length === 0) this.#isLost = true
      return renewed.length === 1
    } catch {
      return false
    }
  }
}

/** Waits for a result. @throws Error after the limit */
async function within<Result>(limitMs: number, result: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no result in ${limitMs} ms`)), limitMs)
  })
  return Promise.race([result, limit]).finally(() => clearTimeout(timer))
}

/** What the last deployments have recorded. @param script name of the gateway */
export async function deploymentRecord(
  { database }: OpenDatabase,
  script: string,
): Promise<DeploymentRecord> {
  const [table] = await rows(
    database,
    sql`select to_regclass('headgate_deployment.leases') is not null as there`,
  )
  if (table?.there !== true) return NO_RECORD
  // As JSON: an earlier release made the table without the later columns.
  const [row] = await rows(
    database,
    sql`select stored ->> 'tested_version' as gateway, stored ->> 'tested_tools_version' as tools,
          stored ->> 'begun_rotations' as rotations
        from (select to_jsonb(leases) as stored from ${LEASES} where script = ${script}) as found`,
  )
  return {
    tested: { gateway: textOf(row?.gateway), tools: textOf(row?.tools) },
    begunRotations: textOf(row?.rotations)?.split(',') ?? [],
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

async function rows(
  database: ScriptDatabase,
  statement: ReturnType<typeof sql>,
): Promise<Array<Record<string, unknown>>> {
  return ((await database.execute(statement)) as unknown as { rows: Array<Record<string, unknown>> }).rows
}
