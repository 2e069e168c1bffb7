import { setTimeout as delay } from 'node:timers/promises'
import type { StartedGateway } from '../../test/harness/start-gateway.ts'
import { runAdmin } from '../admin/run-admin.ts'
import { type ChangedKeys, type DrilledTenant, DrillTraffic } from './drill-traffic.ts'
import type { CopiedPostgres } from './postgres-copies.ts'
import { missingRows, readStoredRows, type StoredRows } from './stored-rows.ts'

/** What a drill does, besides what every one does. */
export interface DrillPlan {
  /** Rounds of calls before and after the time to which Postgres is taken back. */
  rounds: number
  /** Shards of the second organization, and its users. */
  shards: number
  users: number
  /** Whether the gateway is killed after the restore, and again while ledgers write again. */
  kills: boolean
}

/** What `npm run restore-drill` does. */
export const WHOLE_DRILL: DrillPlan = { rounds: 3, shards: 4, users: 6, kills: false }

const COUNTS_WITHIN_MS = 10_000
const POLL_MS = 200
const KILLED_AFTER_MS = 60

/** A step of a drill that can fail. */
export interface DrillStep {
  name: string
  ok: boolean
  detail: string
}

export interface DrillReport {
  ok: boolean
  steps: DrillStep[]
  /** What the restore loses for good, as it was found. */
  notCovered: string[]
  /** Milliseconds. */
  duration: number
}

interface Lost {
  responseId: string
  runId: string
  keys: ChangedKeys
}

/**
 * Takes the Postgres of a running system back to a time, has ledgers write again what it lost, and verifies the result: every row of
 * the ledgers is back, chains, usage, credits and checkpoints are intact, balances agree, and calls go on.
 * @throws when the system cannot do what the drill asks before the restore.
 */
export async function runDrill(
  system: StartedGateway,
  postgres: CopiedPostgres,
  plan: DrillPlan,
  log: (line: string) => void,
): Promise<DrillReport> {
  return new Drill(system, postgres, plan, log).run()
}

class Drill {
  readonly #system: StartedGateway
  readonly #postgres: CopiedPostgres
  readonly #plan: DrillPlan
  readonly #traffic: DrillTraffic
  readonly #log: (line: string) => void
  readonly #steps: DrillStep[] = []

  constructor(
    system: StartedGateway,
    postgres: CopiedPostgres,
    plan: DrillPlan,
    log: (line: string) => void,
  ) {
    this.#system = system
    this.#postgres = postgres
    this.#plan = plan
    this.#traffic = new DrillTraffic(system)
    this.#log = log
  }

  async run(): Promise<DrillReport> {
    const begun = performance.now()
    const traffic = this.#traffic
    const tenants = await Promise.all([
      traffic.createTenant('one shard', 1, 2),
      traffic.createTenant(`${this.#plan.shards} shards`, this.#plan.shards, this.#plan.users),
    ])
    const [first, second] = tenants as [DrilledTenant, DrilledTenant]
    const older = await traffic.addKey(first)
    await this.#trafficOf(tenants)
    this.#log('copying Postgres: this is the time that it is taken back to')
    const copied = await this.#rows()
    await this.#whileStopped(() => this.#postgres.copy())

    this.#log('traffic that the copy does not have')
    const [responseId, runId] = [await traffic.respond(first), await traffic.run(second)]
    const keys = await traffic.change(first, older)
    await traffic.reject()
    const balances = await this.#trafficOf(tenants)
    const before = await this.#rows()
    this.#log('restoring Postgres')
    await this.#whileStopped(() => this.#postgres.restore())
    const lostRows = missingRows(before, await this.#rows())
    this.#note('the restore loses rows', lostRows.length >= 4, rowsText(lostRows))
    this.#note(
      'the copy is what Postgres has again',
      missingRows(copied, await this.#rows()).length === 0,
      '',
    )

    if (this.#plan.kills) await this.#system.restartWorkerd()
    await this.#admin('audit check finds it out', ['audit', 'check'], 3)
    await this.#findsOutByItself(first)
    if (this.#plan.kills) await this.#killedReflush()
    await this.#admin('audit reflush writes it again', ['audit', 'reflush'], 0)
    await this.#verify(before, tenants, balances)
    await this.#goesOn(tenants)
    const notCovered = await this.#notCovered(first, second, { responseId, runId, keys })
    const ok = this.#steps.every((step) => step.ok)
    return { ok, steps: this.#steps, notCovered, duration: performance.now() - begun }
  }

  /** Calls, a response and a checkpoint. @returns the balance of each ledger, whose records Postgres has. */
  async #trafficOf(tenants: readonly DrilledTenant[]): Promise<number[]> {
    const traffic = this.#traffic
    await Promise.all(tenants.map((tenant) => traffic.calls(tenant, this.#plan.rounds)))
    await traffic.respond(tenants[0] as DrilledTenant)
    const balances: number[] = []
    for (const tenant of tenants) balances.push(await traffic.settled(tenant))
    await traffic.checkpoint()
    await traffic.flushInstallation()
    return balances
  }

  /** Begins to write again, and kills the gateway meanwhile. */
  async #killedReflush(): Promise<void> {
    const begun = this.#adminLines(['audit', 'reflush'])
    await delay(KILLED_AFTER_MS)
    await this.#system.restartWorkerd()
    const { exitCode } = await begun
    this.#log(`killed while ledgers wrote again: exit code ${exitCode}`)
  }

  /** The ledger of an organization that is called notices with the next flush what Postgres lacks. */
  async #findsOutByItself(tenant: DrilledTenant): Promise<void> {
    const status = await this.#traffic.call(tenant.key)
    await this.#traffic.settled(tenant)
    const { exitCode, lines } = await this.#adminLines([
      'audit',
      'check',
      '--organization',
      tenant.organizationId,
    ])
    const isWhole = exitCode === 0 && status === 200
    this.#note('a ledger that is called finds it out by itself', isWhole, `call ${status}; ${lines[0] ?? ''}`)
  }

  async #verify(
    before: StoredRows,
    tenants: readonly DrilledTenant[],
    balances: readonly number[],
  ): Promise<void> {
    await this.#admin('audit verify proves it', ['audit', 'verify'], 0)
    await this.#admin('balances agree', ['audit', 'check'], 0)
    const missing = await this.#missingAfterWait(before)
    this.#note('every row is back', missing.length === 0, rowsText(missing))
    for (const [index, tenant] of tenants.entries()) {
      const [balance, was] = [await this.#traffic.settled(tenant), balances[index] ?? 0]
      // One call of the first organization came after the restore.
      const isKept = index === 0 ? balance < was : balance === was
      this.#note(`the ledger of ${tenant.name} has its balance`, isKept, `${was} before, ${balance} now`)
    }
  }

  /** Counts of keyless calls are written by objects of their own, in their own time. */
  async #missingAfterWait(before: StoredRows): Promise<Array<[table: string, rows: number]>> {
    const end = performance.now() + COUNTS_WITHIN_MS
    for (;;) {
      const missing = missingRows(before, await this.#rows())
      if (missing.length === 0 || performance.now() > end) return missing
      await delay(POLL_MS)
    }
  }

  async #goesOn(tenants: readonly DrilledTenant[]): Promise<void> {
    const keys = tenants.flatMap((tenant) => tenant.keys)
    const statuses = await Promise.all(keys.map((key) => this.#traffic.call(key)))
    const refused = statuses.filter((status) => status !== 200)
    this.#note('calls go on', refused.length === 0, `${statuses.length} calls, ${refused.length} refused`)
    for (const tenant of tenants) await this.#traffic.settled(tenant)
    await this.#admin('and are verified', ['audit', 'verify'], 0)
  }

  async #notCovered(first: DrilledTenant, second: DrilledTenant, lost: Lost): Promise<string[]> {
    const { responseId, runId, keys } = lost
    const statusOf = async (key: string, path: string) => (await this.#traffic.read(key, path)).status
    return [
      `a key made after the time: ${await this.#traffic.call(keys.made)}`,
      `a key revoked after the time, which is valid again: ${await this.#traffic.call(keys.revoked)}`,
      `a response stored after the time: ${await statusOf(first.key, `/v1/responses/${responseId}`)}`,
      `a run after the time: ${await statusOf(second.key, `/v1/runs/${runId}`)}`,
    ]
  }

  async #admin(name: string, words: string[], expected: number): Promise<void> {
    const { exitCode, lines } = await this.#adminLines(words)
    const detail = [`exit code ${exitCode}`, ...lines.map((line) => `    ${line}`)].join('\n')
    this.#note(name, exitCode === expected, detail)
  }

  /** Runs a command of `npm run admin` on the system. */
  async #adminLines(words: string[]): Promise<{ exitCode: number; lines: string[] }> {
    const lines: string[] = []
    const { baseUrl, adminToken } = this.#system
    const exitCode = await runAdmin(words, {
      environment: { HEADGATE_URL: baseUrl, ADMIN_TOKEN: adminToken },
      readInput: async () => '',
      print: (line) => void lines.push(line),
      complain: (line) => void lines.push(line),
    })
    return { exitCode, lines }
  }

  async #whileStopped(work: () => Promise<void>): Promise<void> {
    await this.#system.processes.postgres.stop()
    await work()
    await this.#system.startStandIn('postgres')
  }

  #rows(): Promise<StoredRows> {
    return readStoredRows(this.#system.variables)
  }

  #note(name: string, ok: boolean, detail: string): void {
    this.#steps.push({ name, ok, detail })
    this.#log(`${ok ? 'ok     ' : 'FAILED '} ${name}${detail === '' ? '' : `: ${detail}`}`)
  }
}

const rowsText = (rows: Array<[table: string, count: number]>): string =>
  rows.length === 0 ? 'none missing' : rows.map(([table, count]) => `${table} ${count}`).join(', ')
