import { neon, neonConfig } from '@neondatabase/serverless'
import { drizzle } from 'drizzle-orm/neon-http'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { createRunQueue, DELIVERY_PATHS } from '../../src/agents/queue/run-queue.ts'
import { republishVerdicts } from '../../src/agents/runs/publish-verdict.ts'
import { deleteEndedRuns } from '../../src/agents/runs/sweep.store.ts'
import { parseConfiguration } from '../../src/env.ts'
import { query, upstreamControl } from '../harness/gateway.ts'
import { answered, failed, inTurn } from '../harness/routed-model.ts'
import { send } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import {
  createAgent,
  definitionOf,
  endedRun,
  evaluated,
  judgement,
  readEvaluation,
  runDetails,
  trigger,
} from './support/agents.ts'

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

const MET = judgement({ quote: 'Say done.', met: true })

/** An answer of the judge that begins when the signal is given, then those after it. */
const waiting = (signal: string, ...texts: string[]) =>
  inTurn(
    address,
    ...texts.map((text, index) => [
      ...(index === 0 ? [{ waitForSignal: signal }] : []),
      ...answered('chat', text, true),
    ]),
  )

/** Begins a run of one step, whose objective selects the script of its judge. */
async function begin(judge: string): Promise<{ runId: string; text: string }> {
  const text = marker()
  const step = { instructions: 'Do it.', objective: `Say done. ${text} ${judge}` }
  const { runId } = await trigger(
    tenant,
    await createAgent(tenant, definitionOf([step]), address),
    {},
    address,
  )
  return { runId, text }
}

const evaluation = (runId: string) => evaluated(tenant, runId, { baseUrl: address.baseUrl, timeout: 20_000 })
const ended = (runId: string) => endedRun(tenant, runId, { baseUrl: address.baseUrl })
const verdictsOf = async (runId: string) => (await runDetails(tenant, runId, address)).verdicts as unknown[]
const dueOf = (runId: string) =>
  query(address, 'SELECT calls, published_at IS NULL AS lost FROM due_verdicts WHERE run_id = $1', [runId])
const deliver = async (runId: string) => {
  const body = { organization_id: tenant.organizationId, run_id: runId, step: 1 }
  const path = DELIVERY_PATHS.verdicts
  await createRunQueue(parseConfiguration(address.variables))?.publish({
    path,
    body,
    deduplicationId: marker(),
  })
}
/** Messages of verdicts that QStash has not delivered. */
const pending = async () => {
  const { text } = await send(`${address.standIns.qstash}/control/pending`)
  const messages = JSON.parse(text).messages as Array<{ url: string }>
  return messages.filter(({ url }) => url.endsWith(DELIVERY_PATHS.verdicts))
}

describe('a verdict', () => {
  it('is one, of one call, however often its message is delivered', async () => {
    const signal = marker()
    const { runId, text } = await begin(await waiting(signal, MET, 'never asked'))
    await seenRequest(address, text)
    await Promise.all([1, 2, 3, 4].map(() => deliver(runId)))
    await vi.waitFor(async () => expect(await pending()).toHaveLength(5), { timeout: 10_000 })
    await upstreamControl(address).release(signal)
    expect((await evaluation(runId)).result).toBe('pass')
    await deliver(runId)
    await vi.waitFor(async () => expect(await pending()).toEqual([]), { timeout: 10_000 })
    expect(await seenRequests(address, text)).toHaveLength(1)
    expect(await verdictsOf(runId)).toMatchObject([{ result: 'pass', calls: 1 }])
    expect(await dueOf(runId)).toEqual([])
  })

  it('is reached though the process is killed while its judge answers', async () => {
    const { runId, text } = await begin(await waiting(marker(), 'lost', MET))
    await seenRequest(address, text)
    await address.restartWorkerd()
    await advance(600_000)
    await vi.waitFor(async () => expect(await dueOf(runId)).toMatchObject([{ calls: 1 }]), {
      timeout: 20_000,
    })
    await advance(600_000)
    expect((await evaluation(runId)).result).toBe('pass')
    expect(await verdictsOf(runId)).toMatchObject([{ result: 'pass', calls: 2 }])
  })

  it('whose message was lost is found by the sweep', async () => {
    const signal = marker()
    const step = await inTurn(address, [{ waitForSignal: signal }, ...answered('chat', 'Done.', true)])
    const [text, judge] = [marker(), await inTurn(address, answered('chat', MET, true))]
    const definition = definitionOf([{ instructions: `${step} ${text}`, objective: `Say done. ${judge}` }])
    const { runId } = await trigger(tenant, await createAgent(tenant, definition, address), {}, address)
    await seenRequest(address, text)
    await address.killStandIn('qstash')
    await upstreamControl(address).release(signal)
    expect((await ended(runId)).status).toBe('success')
    await vi.waitFor(async () => expect(await dueOf(runId)).toEqual([{ calls: 0, lost: true }]), {
      timeout: 10_000,
    })
    // A sweep while QStash is away loses no message either.
    await republishVerdicts(sweepDeps(60_000))
    expect(await dueOf(runId)).toEqual([{ calls: 0, lost: true }])
    await address.startStandIn('qstash')
    await republishVerdicts(sweepDeps())
    expect((await readEvaluation(tenant, runId, address)).result).toBe('pending')
    await republishVerdicts(sweepDeps(60_000))
    expect((await evaluation(runId)).result).toBe('pass')
  })

  it('is unknown when calls of its judge keep failing', async () => {
    const { runId, text } = await begin(await inTurn(address, failed(500)))
    // Moved again and again: the message of the next call is published after the count of calls is stored.
    await vi.waitFor(
      async () => {
        await advance(600_000)
        expect((await readEvaluation(tenant, runId, address)).result).not.toBe('pending')
      },
      { timeout: 18_000, interval: 100 },
    )
    const { result, steps } = await evaluation(runId)
    expect([result, steps[0]?.explanation]).toEqual(['unknown', expect.stringContaining('did not answer')])
    expect((await seenRequests(address, text)).length).toBeGreaterThanOrEqual(3)
  })

  it('is unknown when its judge cannot be called for hours', async () => {
    const limited = await createTenant(address, { organization: { rate_limit_per_minute: 1 } })
    const agentId = await createAgent(
      limited,
      definitionOf([{ instructions: 'Do it.', objective: 'Say "it".' }]),
      address,
    )
    const insert = `INSERT INTO run_steps SELECT id, 1, 2, organization_id, 'completed', 'resp_x', 'it', NULL, false, 0,
      now(), now(), now() FROM runs WHERE id = $1`
    const { runId } = await trigger(limited, agentId, {}, address)
    await query(address, insert, [runId])
    const due = `INSERT INTO due_verdicts SELECT id, 1, 2, organization_id, $2, 0, NULL, 0, now() - interval '7 hours', now()
      FROM runs WHERE id = $1`
    await query(address, due, [runId, `resp_${'0'.repeat(40)}`])
    await republishVerdicts(sweepDeps(60_000))
    await vi.waitFor(
      async () => {
        const [verdict] = await query(
          address,
          'SELECT result, explanation FROM run_verdicts WHERE run_id = $1',
          [runId],
        )
        expect(verdict).toEqual({
          result: 'unknown',
          explanation: 'The step could not be evaluated in time.',
        })
      },
      { timeout: 20_000 },
    )
  })

  it('is deleted with its run, and not written after it', async () => {
    const signal = marker()
    const [judged, awaited] = await Promise.all([
      begin(await inTurn(address, answered('chat', MET, true))),
      begin(await waiting(signal, MET)),
    ])
    await evaluation(judged.runId)
    await seenRequest(address, awaited.text)
    const { database, clock } = sweepDeps(1_000)
    await deleteEndedRuns(database, tenant.organizationId, clock(), 1_000)
    await upstreamControl(address).release(signal)
    await vi.waitFor(async () => expect(await pending()).toEqual([]), { timeout: 10_000 })
    for (const { runId } of [judged, awaited]) {
      expect(await dueOf(runId)).toEqual([])
      expect(await query(address, 'SELECT number FROM run_verdicts WHERE run_id = $1', [runId])).toEqual([])
    }
  })

  it('is announced by QStash only', async () => {
    const body = JSON.stringify({
      organization_id: tenant.organizationId,
      run_id: crypto.randomUUID(),
      step: 1,
    })
    const headers = { 'content-type': 'application/json' }
    const answer = await send(`${address.baseUrl}${DELIVERY_PATHS.verdicts}`, {
      method: 'POST',
      headers,
      body,
    })
    expect(answer.status).toBe(401)
  })
})
