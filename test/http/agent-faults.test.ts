import { neon, neonConfig } from '@neondatabase/serverless'
import { drizzle } from 'drizzle-orm/neon-http'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { signDelivery } from '../../scripts/node/qstash/signature.ts'
import { createRunQueue, DELIVERY_PATHS } from '../../src/agents/queue/run-queue.ts'
import { publishRun } from '../../src/agents/runs/publish-run.ts'
import { deleteEndedRuns } from '../../src/agents/runs/sweep.store.ts'
import { republishOverdue } from '../../src/agents/runs/sweep.ts'
import { parseConfiguration } from '../../src/env.ts'
import { query, upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { callEntries } from '../harness/records.ts'
import { answered, inTurn, slowed } from '../harness/routed-model.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { endOf, readRunResponse, runEvents, textsOf } from './support/agent-responses.ts'
import {
  createAgent,
  definitionOf,
  endedRun,
  readRun,
  resultText,
  runDetails,
  trigger,
} from './support/agents.ts'
import { ask } from './support/response-calls.ts'
import { checkedEvents } from './support/response-streams.ts'

let address: StartedGateway
let tenant: Tenant

beforeAll(async () => {
  address = await startGateway({ bundleDirectory: inject('bundleDirectory'), isBrief: true })
  tenant = await createTenant(address)
}, 60_000)
afterAll(() => address.stop())

/** Dependencies of the Worker's scheduled job, over the services of this system. */
function sweepDeps(after = 0) {
  const configuration = parseConfiguration(address.variables)
  neonConfig.fetchEndpoint = (host, port) => `http://${host}:${port}/sql`
  return {
    configuration,
    database: drizzle({ client: neon(configuration.DATABASE_URL) }),
    runQueue: createRunQueue(configuration),
    clock: () => Date.now() + after,
  }
}

/** Moves the clock of QStash. */
async function advance(milliseconds: number): Promise<void> {
  const body = JSON.stringify({ milliseconds })
  await send(`${address.standIns.qstash}/control/advance`, { method: 'POST', body })
}

const begin = async (steps: Array<Record<string, unknown>>) =>
  trigger(tenant, await createAgent(tenant, definitionOf(steps), address), {}, address)
const ended = (runId: string) => endedRun(tenant, runId, { baseUrl: address.baseUrl })
const attemptsOf = async (runId: string) =>
  (await runDetails(tenant, runId, address)).attempts.map(
    ({ step, attempt, status }) => `${step}.${attempt} ${status}`,
  )
/** Ends the lease, as if it were that of a delivery that died. */
const endLease = (runId: string) =>
  query(address, "UPDATE runs SET leased_until = now() - interval '1 second' WHERE id = $1", [runId])

/** Delivers the message of a run's revision, as QStash would. */
async function deliver(runId: string): Promise<Answer> {
  const [run] = await query(address, 'SELECT organization_id, rev FROM runs WHERE id = $1', [runId])
  const body = JSON.stringify({ organization_id: run?.organization_id, run_id: runId, rev: Number(run?.rev) })
  const key = String(address.variables.QSTASH_CURRENT_SIGNING_KEY)
  const signature = signDelivery(
    key,
    `${address.variables.BASE_URL}${DELIVERY_PATHS.runs}`,
    Buffer.from(body),
  )
  return send(`${address.baseUrl}${DELIVERY_PATHS.runs}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'upstash-signature': signature },
    body,
  })
}

/** An answer that begins when the signal is given, then those after it. */
async function waiting(signal: string, ...texts: string[]): Promise<string> {
  const first = answered('chat', texts[0] ?? '', true)
  const rest = texts.slice(1).map((text) => answered('chat', text, true))
  return inTurn(address, [{ waitForSignal: signal }, ...first], ...rest)
}

describe('a run', () => {
  it('goes on seconds after the process is killed in the middle of a turn, and repeats that turn only', async () => {
    const text = marker()
    const first = await inTurn(address, answered('chat', 'One.', true))
    const second = await waiting(marker(), 'lost', 'Two.')
    const { runId } = await begin([
      { instructions: `${first} ${text}-one` },
      { instructions: `${second} ${text}-two` },
    ])
    await seenRequest(address, `${text}-two`)
    await address.restartWorkerd()
    // The first repetition of its message takes the lease over.
    await advance(2_000)
    expect(resultText(await ended(runId))).toBe('Two.')
    expect(await attemptsOf(runId)).toEqual(['1.1 completed', '2.1 completed'])
    expect(await seenRequests(address, `${text}-two`)).toHaveLength(2)
    expect(await flagsOf(runId, 3)).toEqual(['', '', 'interrupted'])
    // In the second step, the first is part of the conversation.
    const requests = await seenRequests(address, `${text}-one`)
    expect(requests.filter(({ body }) => !body.includes(`${text}-two`))).toHaveLength(1)
    expect(await outboxOf(runId)).toEqual([])
    const events = await runEvents(tenant, runId, address)
    expect(textsOf(endOf(events))).toEqual(['One.', 'Two.'])
    expect(await readRunResponse(tenant, runId, address)).toEqual(endOf(events))
  })

  it('is watched on while Postgres hangs, and by another reader after a kill', async () => {
    const [text, signal] = [marker(), marker()]
    const first = await waiting(signal, 'One.')
    const second = await inTurn(address, answered('chat', 'Two.', true))
    const steps = [{ instructions: `${first} ${text}` }, { instructions: second }]
    const { runId } = await begin(steps)
    await seenRequest(address, text)
    const path = `/v1/responses/resp_run_${runId}?stream=true`
    const live = await openStream(`${address.baseUrl}${path}`, bearer(tenant.key), '', 'GET')
    await live.until((arrived) => arrived.includes('response.in_progress'))
    address.processes.postgres.signal('SIGSTOP')
    try {
      await upstreamControl(address).release(signal)
      await live.until((arrived) => arrived.includes('One.'), 15_000)
    } finally {
      address.processes.postgres.signal('SIGCONT')
    }
    // The delivery may have failed meanwhile: it is repeated.
    await advance(600_000)
    await ended(runId)
    const events = checkedEvents(await live.end())
    expect(textsOf(endOf(events))).toEqual(['One.', 'Two.'])
    await address.restartWorkerd()
    expect(await runEvents(tenant, runId, address)).toEqual(events)
  })

  it('shows a turn that was read before the kill as incomplete, and then the one that was asked again', async () => {
    const lost = slowed(answered('chat', 'Lost', true), 60_000)
    const script = await inTurn(address, lost, answered('chat', 'Found.', true))
    const { runId } = await begin([{ instructions: script }])
    const path = `/v1/responses/resp_run_${runId}?stream=true`
    const live = await openStream(`${address.baseUrl}${path}`, bearer(tenant.key), '', 'GET')
    await live.until((arrived) => arrived.includes('output_text.delta'))
    await address.restartWorkerd()
    await advance(2_000)
    expect(resultText(await ended(runId))).toBe('Found.')
    const events = await runEvents(tenant, runId, address)
    expect(endOf(events).output).toMatchObject([{ status: 'incomplete' }, { status: 'completed' }])
    expect(events.map(({ data }) => JSON.stringify(data)).join()).toContain('output_text.delta')
    expect(await attemptsOf(runId)).toEqual(['1.1 completed'])
  })

  it('is not disturbed by a watchdog that comes while its delivery works', async () => {
    const [text, signal] = [marker(), marker()]
    const { runId } = await begin([{ instructions: `${await waiting(signal, 'Done.')} ${text}` }])
    await seenRequest(address, text)
    await advance(600_000)
    await vi.waitFor(async () => {
      const pending = await send(`${address.standIns.qstash}/control/pending`)
      // Its own, and the watchdog's repetition after the lease.
      expect(jsonOf(pending).messages).toHaveLength(2)
    })
    await upstreamControl(address).release(signal)
    expect(resultText(await ended(runId))).toBe('Done.')
    expect(await attemptsOf(runId)).toEqual(['1.1 completed'])
    expect(await seenRequests(address, text)).toHaveLength(1)
  })

  it('goes on after a lease whose delivery lost the answer, without a watchdog and a sweep', async () => {
    const script = await inTurn(address, answered('chat', 'Done.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: script }]), address)
    await address.killStandIn('qstash')
    const { runId } = await trigger(tenant, agentId, {}, address)
    await query(
      address,
      `UPDATE runs SET leased_until = now() + interval '100 seconds', lease_token = 'lost' WHERE id = $1`,
      [runId],
    )
    await address.startStandIn('qstash')
    const revision = { organizationId: tenant.organizationId, runId, rev: 1 }
    for (const again of ['first', 'second']) await publishRun(sweepDeps(), revision, { again })
    // The message is repeated once for both deliveries.
    await vi.waitFor(async () => {
      const pending = jsonOf(await send(`${address.standIns.qstash}/control/pending`))
      expect(pending).toMatchObject({ active: [], messages: [{}] })
    })
    await endLease(runId)
    await advance(106_000)
    expect(resultText(await ended(runId))).toBe('Done.')
    expect(await outboxOf(runId)).toEqual([])
  })

  it('goes on after a change whose delivery lost the answer', async () => {
    const script = await inTurn(address, answered('chat', 'Done.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: script }]), address)
    await address.killStandIn('qstash')
    const { runId } = await trigger(tenant, agentId, {}, address)
    await query(address, 'UPDATE runs SET rev = 2 WHERE id = $1', [runId])
    await query(address, 'UPDATE run_outbox SET rev = 2 WHERE run_id = $1', [runId])
    await address.startStandIn('qstash')
    await publishRun(sweepDeps(), { organizationId: tenant.organizationId, runId, rev: 1 })
    expect(resultText(await ended(runId))).toBe('Done.')
  })

  it('is accepted while QStash is away, and begun by the sweep', async () => {
    const script = await inTurn(address, answered('chat', 'Late.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: script }]), address)
    await address.killStandIn('qstash')
    const { runId } = await trigger(tenant, agentId, {}, address)
    expect(await outboxOf(runId)).toEqual([{ rev: 1, published: false }])
    // A sweep while QStash is away loses no message either.
    await republishOverdue(sweepDeps(60_000))
    expect(await outboxOf(runId)).toEqual([{ rev: 1, published: false }])
    await address.startStandIn('qstash')
    await republishOverdue(sweepDeps())
    expect((await readRun(tenant, runId, address)).status).toBe('in_progress')
    await republishOverdue(sweepDeps(60_000))
    expect(resultText(await ended(runId))).toBe('Late.')
  })

  it('whose message and watchdog were lost is found by the sweep', async () => {
    const [text, signal] = [marker(), marker()]
    const script = await waiting(signal, 'lost', 'Found.')
    const { runId } = await begin([{ instructions: `${script} ${text}`, max_attempts: 2 }])
    await seenRequest(address, text)
    // It keeps nothing over a restart.
    await address.killStandIn('qstash')
    await address.restartWorkerd()
    await address.startStandIn('qstash')
    await republishOverdue(sweepDeps(300_000 - 150_000))
    expect((await readRun(tenant, runId, address)).status).toBe('in_progress')
    await endLease(runId)
    await republishOverdue(sweepDeps(300_000))
    // The second attempt is due after a second.
    await advance(10_000)
    expect(resultText(await ended(runId))).toBe('Found.')
  })

  it('that was cancelled ends its response though the process died', async () => {
    const [text, signal] = [marker(), marker()]
    const { runId } = await begin([{ instructions: `${await waiting(signal, 'Never.')} ${text}` }])
    await seenRequest(address, text)
    await address.killStandIn('qstash')
    // The delivery that holds the run is gone: nobody but the sweep finishes it.
    await address.restartWorkerd()
    await administrator(address).ask('POST', `${tenant.base}/runs/${runId}/cancel`)
    await address.startStandIn('qstash')
    expect(await outboxOf(runId)).toHaveLength(1)
    await endLease(runId)
    await republishOverdue(sweepDeps(300_000))
    await vi.waitFor(async () => expect(await outboxOf(runId)).toEqual([]), { timeout: 10_000 })
    expect(await attemptsOf(runId)).toEqual(['1.1 cancelled'])
    expect((await ended(runId)).status).toBe('cancelled')
  })

  it('that was cancelled before its response began is watched until it cannot begin any more', async () => {
    const script = await inTurn(address, answered('chat', 'Never.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: script }]), address)
    await address.killStandIn('qstash')
    const { runId } = await trigger(tenant, agentId, {}, address)
    await administrator(address).ask('POST', `${tenant.base}/runs/${runId}/cancel`)
    const path = `/v1/responses/resp_run_${runId}?stream=true`
    const live = await openStream(`${address.baseUrl}${path}`, bearer(tenant.key), '', 'GET')
    await live.until((arrived) => arrived.includes('response.in_progress'))
    // A delivery that holds the run might still begin it: its message is not done.
    expect(await readRunResponse(tenant, runId, address)).toMatchObject({ status: 'incomplete' })
    expect(live.text()).not.toContain('response.completed')
    await address.startStandIn('qstash')
    await republishOverdue(sweepDeps(300_000))
    const events = checkedEvents(await live.end())
    expect(endOf(events)).toMatchObject({ status: 'incomplete', output: [] })
    expect(await outboxOf(runId)).toEqual([])
    expect(await runEvents(tenant, runId, address)).toEqual(events)
  })

  it('that was cancelled has what a delivery without its lease still began', async () => {
    const script = await inTurn(address, answered('chat', 'Late.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: script }]), address)
    await address.killStandIn('qstash')
    const { runId } = await trigger(tenant, agentId, {}, address)
    await address.startStandIn('qstash')
    address.processes.qstash.signal('SIGSTOP')
    // It holds the run, and waits for QStash before it begins the response.
    const late = deliver(runId)
    try {
      const lease = 'SELECT leased_until FROM runs WHERE id = $1 AND leased_until IS NOT NULL'
      await vi.waitFor(async () => expect(await query(address, lease, [runId])).toHaveLength(1), 4_000)
      await endLease(runId)
      await administrator(address).ask('POST', `${tenant.base}/runs/${runId}/cancel`)
      expect((await deliver(runId)).status).toBe(200)
      expect(await outboxOf(runId)).toEqual([])
    } finally {
      address.processes.qstash.signal('SIGCONT')
    }
    expect((await late).status).toBe(200)
    expect(await attemptsOf(runId)).toEqual(['1.1 cancelled'])
    const costs = `SELECT s.cost::int, (r.body::jsonb ->> 'cost')::int AS charged FROM run_steps s
      JOIN responses r ON r.id = s.response_id WHERE s.run_id = $1`
    const [row] = await query(address, costs, [runId])
    expect(row?.charged).toBeGreaterThan(0)
    expect(row?.cost).toBe(row?.charged)
  })

  it('with a definition that cannot be read ends, and stays readable where that is possible', async () => {
    const script = await inTurn(address, answered('chat', 'Never.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: script }]), address)
    await address.killStandIn('qstash')
    const { runId } = await trigger(tenant, agentId, {}, address)
    await query(address, `UPDATE agent_versions SET definition = '{"steps":7}' WHERE agent_id = $1`, [
      agentId,
    ])
    await address.startStandIn('qstash')
    await republishOverdue(sweepDeps(60_000))
    await vi.waitFor(async () => {
      const run = await runDetails(tenant, runId, address)
      expect(run).toMatchObject({ status: 'failure', error: { code: 'invalid_definition' } })
    })
    expect(await outboxOf(runId)).toEqual([])
    expect((await readRun(tenant, runId, address)).status).toBe('failure')
  })

  it('ends once, whatever comes first of its end and cancels', async () => {
    const script = await inTurn(address, answered('chat', 'Done.', true))
    const agentId = await createAgent(
      tenant,
      definitionOf([1, 2, 3].map(() => ({ instructions: script }))),
      address,
    )
    const cancel = (runId: string) =>
      administrator(address).call('POST', `${tenant.base}/runs/${runId}/cancel`)
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const { runId } = await trigger(tenant, agentId, {}, address)
        const answers = await Promise.all([cancel(runId), cancel(runId), cancel(runId)])
        const won = answers.filter(({ status }) => status === 200).length
        const { status, result } = await ended(runId)
        expect([won, result === null]).toEqual(status === 'cancelled' ? [1, true] : [0, false])
        await vi.waitFor(async () => expect(await outboxOf(runId)).toEqual([]), { timeout: 10_000 })
        const { attempts } = await runDetails(tenant, runId, address)
        expect(attempts.filter((each) => each.status === 'running')).toEqual([])
        return status
      }),
    )
    expect(statuses).toContain('cancelled')
  })

  it('is deleted after its time, and its conversation stays', async () => {
    const script = await inTurn(address, answered('chat', 'Old.', true))
    const { runId, conversationId } = await begin([{ instructions: script }])
    await ended(runId)
    const { database, clock } = sweepDeps(0)
    const { organizationId } = tenant
    expect(await deleteEndedRuns(database, organizationId, clock() - 86_400_000, 10)).toBe(0)
    await readRun(tenant, runId, address)
    expect(await deleteEndedRuns(database, organizationId, clock(), 1_000)).toBeGreaterThanOrEqual(1)
    for (const path of [`/v1/runs/${runId}`, `/v1/runs/${runId}/evals`]) {
      const answer = await ask(tenant.key, 'GET', path, address)
      expect([answer.status, jsonOf(answer).message]).toEqual([404, `Run ${runId} not found.`])
    }
    const items = await ask(tenant.key, 'GET', `/v1/conversations/${conversationId}/items`, address)
    expect(items.status).toBe(200)
  })
})

/** The flags of each record of a run's calls. */
async function flagsOf(runId: string, count: number): Promise<string[]> {
  const entries = await callEntries(address, tenant, count, (entry) => entry.request_id === `run_${runId}`)
  return entries.map(({ record }) => String(record.flags)).sort()
}

const outboxOf = async (runId: string) =>
  (await query(address, 'SELECT rev, published_at FROM run_outbox WHERE run_id = $1', [runId])).map(
    ({ rev, published_at }) => ({ rev, published: published_at !== null }),
  )
