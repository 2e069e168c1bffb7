import { setTimeout as delay } from 'node:timers/promises'
import { send } from '../../test/harness/send.ts'
import type { StartedGateway } from '../../test/harness/start-gateway.ts'
import {
  addKey,
  addMember,
  administrator,
  bearer,
  createTenant,
  type Tenant,
} from '../../test/harness/tenant.ts'

const MODEL = 'scripted-chat'
const RUN_LIMIT_MS = 30_000
const POLL_MS = 100

/** An organization of the drill, with the keys of its users, whose calls its shards share. */
export interface DrilledTenant extends Tenant {
  name: string
  keys: string[]
}

export interface ChangedKeys {
  made: string
  revoked: string
}

/** The traffic of a drill: calls of organizations, a response, a run of an agent, and changes by the management API. */
export class DrillTraffic {
  readonly #system: StartedGateway
  readonly #api: ReturnType<typeof administrator>

  constructor(system: StartedGateway) {
    this.#system = system
    this.#api = administrator(system)
  }

  /** @param shards of its ledger. @param users each with a key. */
  async createTenant(name: string, shards: number, users: number): Promise<DrilledTenant> {
    const tenant = await createTenant(this.#system)
    if (shards > 1) await this.#api.ask('PUT', tenant.base, { ledger_shards: shards })
    const keys = [tenant.key]
    while (keys.length < users) {
      const user = await addMember(this.#system, tenant.base)
      keys.push((await addKey(this.#system, tenant.base, user)).key)
    }
    return { ...tenant, name, keys }
  }

  /** @returns the status of a chat call. */
  async call(key: string): Promise<number> {
    const body = { model: MODEL, max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] }
    return (await this.#post(key, '/v1/chat/completions', body)).status
  }

  /** Makes calls with each key of an organization, one after the other. @throws unless all succeed. */
  async calls({ keys }: DrilledTenant, rounds: number): Promise<void> {
    const callers = keys.map(async (key) => {
      for (let round = 0; round < rounds; round += 1) expectStatus(await this.call(key), 200, 'a chat call')
    })
    await Promise.all(callers)
  }

  /** A stored response. @returns its id. */
  async respond({ key }: Tenant): Promise<string> {
    const body = { model: MODEL, input: 'hello', store: true }
    const { status, text } = await this.#post(key, '/v1/responses', body)
    expectStatus(status, 200, 'a response')
    return (JSON.parse(text) as { id: string }).id
  }

  /** A run of an agent, until it has ended. @returns its id. */
  async run(tenant: Tenant): Promise<string> {
    const step = { instructions: 'Say hello.', model: MODEL, tools: { hosted: [] } }
    const definition = { name: `Drill ${tenant.organizationId.slice(0, 8)}`, steps: [step] }
    const agent = await this.#api.ask<{ id: string }>('POST', `${tenant.base}/agents`, {
      created_by: tenant.userId,
      definition,
    })
    const { status, text } = await this.#post(tenant.key, '/v1/agents/runs', { agentId: agent.id })
    expectStatus(status, 202, 'a run')
    const { runId } = JSON.parse(text) as { runId: string }
    const end = performance.now() + RUN_LIMIT_MS
    while (performance.now() < end) {
      const run = await this.read(tenant.key, `/v1/runs/${runId}`)
      if (run.status === 200 && JSON.parse(run.text).status !== 'in_progress') return runId
      await delay(POLL_MS)
    }
    throw new Error('the run of the drill did not end')
  }

  read(key: string, path: string) {
    return send(`${this.#system.baseUrl}${path}`, { headers: bearer(key) })
  }

  /**
   * Changes by the management API: a key is made, an older one revoked, and the catalogue written again, which only Postgres has;
   * credits are granted, which the ledger has as well. @returns both keys.
   */
  async change(tenant: DrilledTenant, older: { id: string; key: string }): Promise<ChangedKeys> {
    const made = await addKey(this.#system, tenant.base, tenant.userId)
    await this.#api.ask('DELETE', `${tenant.base}/keys/${older.id}`)
    const { data } = await this.#api.ask<{ data: Array<{ id: string; base_url: string }> }>(
      'GET',
      '/providers',
    )
    for (const { id, base_url } of data.slice(0, 2))
      await this.#api.ask('PUT', `/providers/${id}`, { base_url })
    await this.#api.ask('POST', `${tenant.base}/credits`, { amount: 5_000, reason: 'drill' })
    return { made: made.key, revoked: older.key }
  }

  addKey(tenant: Tenant) {
    return addKey(this.#system, tenant.base, tenant.userId)
  }

  /** Calls without a key, which the installation counts. */
  async reject(): Promise<void> {
    expectStatus(await this.call('hg_unknown'), 401, 'a call without a key')
  }

  checkpoint() {
    return this.#api.ask('POST', '/audit/checkpoints')
  }

  /** Waits until no call of an organization is open and Postgres has all records. @returns the balance in the ledger. */
  async settled({ base }: Pick<Tenant, 'base'>): Promise<number> {
    const end = performance.now() + RUN_LIMIT_MS
    while (performance.now() < end) {
      const { balance, reserved } = await this.#api.ask<{ balance: number; reserved: number }>(
        'GET',
        `${base}/credits`,
      )
      const { pending } = await this.#api.ask<{ pending: number }>('POST', `${base}/ledger/flush`)
      if (pending === 0 && reserved === 0) return balance
      await delay(POLL_MS)
    }
    throw new Error('a ledger of the drill did not settle')
  }

  /** The same for the installation's own ledger. */
  async flushInstallation(): Promise<void> {
    const { pending } = await this.#api.ask<{ pending: number }>('POST', '/ledger/flush')
    if (pending > 0) throw new Error(`${pending} records of the installation wait`)
  }

  async #post(key: string, path: string, body: unknown) {
    return send(`${this.#system.baseUrl}${path}`, {
      method: 'POST',
      headers: bearer(key),
      body: JSON.stringify(body),
    })
  }
}

function expectStatus(status: number, expected: number, what: string): void {
  if (status !== expected) throw new Error(`${what} was answered with ${status}`)
}
