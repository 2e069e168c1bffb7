import { neon, neonConfig } from '@neondatabase/serverless'
import { drizzle } from 'drizzle-orm/neon-http'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createRunQueue } from '../../src/agents/queue/run-queue.ts'
import { republishOverdue } from '../../src/agents/runs/sweep.ts'
import { parseConfiguration } from '../../src/env.ts'
import { query, upstreamControl } from '../harness/gateway.ts'
import { expectSettledLedger } from '../harness/invariants.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { jsonOf, send } from '../harness/send.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import {
  createAgent,
  definitionOf,
  endedRun,
  resultText,
  runDetails,
  trigger,
} from '../http/support/agents.ts'
import type { FaultMode } from './support/fault-proxy.ts'
import { type FaultyGateway, PATIENT_TIMES, startFaultyGateway } from './support/faulty-gateway.ts'

let faulty: FaultyGateway
let tenant: Tenant
beforeAll(async () => {
  faulty = await startFaultyGateway(PATIENT_TIMES)
  tenant = await createTenant(faulty.gateway)
})
afterAll(() => faulty?.stop())

const sql = (text: string, runId: string) => query(faulty.gateway, text, [runId])

/** Messages that QStash has to deliver, with how often it has tried. */
async function pending(): Promise<Array<{ retried: number; body: string }>> {
  const answer = await send(`${faulty.gateway.standIns.qstash}/control/pending`)
  return jsonOf(answer).messages as Array<{ retried: number; body: string }>
}

async function advanceQueue(milliseconds: number): Promise<void> {
  const body = JSON.stringify({ milliseconds })
  await send(`${faulty.gateway.standIns.qstash}/control/advance`, { method: 'POST', body })
}

/** The sweep of the scheduled job, five minutes from now. */
async function sweep(): Promise<void> {
  const configuration = parseConfiguration(faulty.gateway.variables)
  neonConfig.fetchEndpoint = (host, port) => `http://${host}:${port}/sql`
  const database = drizzle({ client: neon(configuration.DATABASE_URL) })
  const clock = () => Date.now() + 300_000
  await republishOverdue({ database, runQueue: createRunQueue(configuration), clock })
}

/** A run of two steps, of which the first waits for a signal at the upstream. */
async function heldRun() {
  const { gateway } = faulty
  const [text, signal] = [marker(), marker()]
  const first = await inTurn(gateway, [{ waitForSignal: signal }, ...answered('chat', 'One.', true)])
  const second = await inTurn(gateway, answered('chat', 'Two.', true))
  const steps = [{ instructions: `${first} ${text}-one` }, { instructions: `${second} ${text}-two` }]
  const { runId } = await trigger(
    tenant,
    await createAgent(tenant, definitionOf(steps), gateway),
    {},
    gateway,
  )
  await seenRequest(gateway, text)
  return { runId, text, release: () => upstreamControl(gateway).release(signal) }
}

/** Expects both steps done once, with one call of a model each. */
async function expectDoneOnce(runId: string, text: string): Promise<void> {
  const { gateway } = faulty
  expect(resultText(await endedRun(tenant, runId, { ...gateway, timeout: 30_000 }))).toBe('Two.')
  const { attempts } = await runDetails(tenant, runId, gateway)
  expect(attempts.map(({ step, attempt, status }) => `${step}.${attempt} ${status}`)).toEqual([
    '1.1 completed',
    '2.1 completed',
  ])
  expect(await seenRequests(gateway, `${text}-one`)).toHaveLength(2)
  expect(await seenRequests(gateway, `${text}-two`)).toHaveLength(1)
  const { records } = await expectSettledLedger(gateway, tenant)
  expect(records.filter(({ requestId }) => requestId === `run_${runId}`)).toHaveLength(2)
}

describe('Postgres goes away while a step runs', () => {
  it.each<FaultMode>(['refuse', 'error', 'lose_answers'])(
    '(%s), and the run goes on afterwards',
    async (mode) => {
      const { runId, text, release } = await heldRun()
      await faulty.postgres.become(mode)
      await release()
      // Answered with an error, so that QStash repeats it.
      await vi.waitFor(
        async () => {
          const tried = (await pending()).filter(({ body, retried }) => body.includes(runId) && retried > 0)
          expect(tried).toHaveLength(1)
        },
        { timeout: 20_000 },
      )
      await faulty.postgres.become('pass')
      const [run] = await sql('SELECT status FROM runs WHERE id = $1', runId)
      expect(run).toEqual({ status: 'in_progress' })
      // The delivery could not end its lease: as if its time were over.
      await sql('UPDATE runs SET leased_until = now() WHERE id = $1', runId)
      await advanceQueue(60_000)
      await sweep()
      await expectDoneOnce(runId, text)
    },
  )
})

describe('two deliveries work on one run', () => {
  it('because the first one took longer than its lease, and one of them stores the step', async () => {
    const { runId, text, release } = await heldRun()
    await sql(`UPDATE runs SET leased_until = now() - interval '1 second' WHERE id = $1`, runId)
    await sweep()
    await vi.waitFor(async () => {
      const [run] = await sql('SELECT leased_until > now() AS held, rev FROM runs WHERE id = $1', runId)
      expect(run).toEqual({ held: true, rev: 1 })
    })
    await release()
    await expectDoneOnce(runId, text)
  })
})
