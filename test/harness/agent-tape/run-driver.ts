import { setTimeout as pause } from 'node:timers/promises'
import type { Reading } from '../../faults/support/response-readers.ts'
import { post } from '../../http/support/agents.ts'
import { query, upstreamControl } from '../gateway.ts'
import { type Answer, jsonOf } from '../send.ts'
import { administrator } from '../tenant.ts'
import type { PlannedRun } from './scripted-runs.ts'
import { watchedRun } from './stream-checks.ts'
import type { TapeSystem } from './tape-system.ts'

/** A run with what was done to it. */
export interface DrivenRun {
  plan: PlannedRun
  runId: string
  conversationId: string
  /** Whether a cancel was accepted, as far as its answer arrived. */
  cancelled: boolean
  /** Requested repetitions of its failed step. */
  reruns: number
  restartedFrom: string | null
  /** The stream of a run that was watched from its beginning on. */
  seen: Reading | null
}

const POLL_MS = 800
const LONGEST_RUN_MS = 240_000

/** Begins a run, cancels it, repeats its failed step and restarts it, as its plan says. @returns it, and its restart. */
export async function driveRun(system: TapeSystem, plan: PlannedRun): Promise<DrivenRun[]> {
  const control = upstreamControl(system.gateway)
  for (const { mark, answers } of plan.steps) {
    await control.putScript(mark, { responses: answers.map(({ steps }) => ({ steps })) })
  }
  const agentId = system.agents[plan.judge][plan.steps.length - 1]
  const inputs = plan.steps.map(({ mark }, index) => ({ name: `step ${index + 1}`, value: `script:${mark}` }))
  const run = await begun(system, plan, '/v1/agents/runs', { agentId, inputs })
  await endRun(system, run)
  if (!plan.restarts) return [run]
  const again = await begun(system, { ...plan, cancelledAfter: null }, `/v1/runs/${run.runId}/restart`, {})
  const restart = { ...again, restartedFrom: run.runId }
  await endRun(system, restart)
  return [run, restart]
}

/** Requests a run several times under one Idempotency-Key, until one is answered. @throws if two runs come of it. */
async function begun(system: TapeSystem, plan: PlannedRun, path: string, body: object): Promise<DrivenRun> {
  const headers = { 'idempotency-key': `${plan.idempotencyKey}${path}` }
  const { tenant, gateway } = system
  const request = () => answered(() => post(tenant, path, body, { ...gateway, headers }), [202])
  const answers = await Promise.all(Array.from({ length: plan.requests }, request))
  const runs = answers.map((answer) => jsonOf(answer) as { runId: string; conversationId: string })
  const [first] = runs
  const ids = new Set(runs.map(({ runId, conversationId }) => `${runId} ${conversationId}`))
  if (!first || ids.size !== 1) throw new Error(`one request began the runs ${[...ids].join(', ')}`)
  const seen = plan.watched ? watchedRun(system, first.runId) : null
  return { ...first, plan, cancelled: false, reruns: 0, restartedFrom: null, seen }
}

async function endRun(system: TapeSystem, run: DrivenRun): Promise<void> {
  const { gateway, tenant } = system
  const path = `${tenant.base}/runs/${run.runId}`
  const manage = (action: string) =>
    answered(() => administrator(gateway).call('POST', `${path}/${action}`), [200, 422])
  const { cancelledAfter, reruns } = run.plan
  if (cancelledAfter !== null) {
    await pause(cancelledAfter)
    run.cancelled = (await manage('cancel')).status === 200
  }
  for (let rerun = 0; rerun <= reruns; rerun++) {
    if ((await endedStatus(system, run.runId)) !== 'failure' || rerun === reruns) return
    run.reruns++
    await manage('rerun')
  }
}

/** Sends until there is an answer with one of these statuses: gateway and database may be away for a while. */
async function answered(request: () => Promise<Answer>, statuses: readonly number[]): Promise<Answer> {
  const until = Date.now() + LONGEST_RUN_MS
  for (;;) {
    const answer = await request().catch((error: Error) => error)
    if (!(answer instanceof Error) && statuses.includes(answer.status)) return answer
    const text = answer instanceof Error ? answer.message : `${answer.status} ${answer.text}`
    if (Date.now() > until) throw new Error(`not answered: ${text}`)
    if (!(answer instanceof Error) && answer.status < 500) throw new Error(`refused: ${text}`)
    await pause(POLL_MS)
  }
}

/** The status of a run once it has ended. Read past the gateway: it is often away. @throws if it does not end. */
async function endedStatus(system: TapeSystem, runId: string): Promise<string> {
  const until = Date.now() + LONGEST_RUN_MS
  for (;;) {
    const [row] = await query(system.gateway, 'SELECT status FROM runs WHERE id = $1', [runId])
    if (row && row.status !== 'in_progress') return String(row.status)
    if (Date.now() > until) throw new Error(`run ${runId} does not end: ${await stateOf(system, runId)}`)
    await pause(POLL_MS)
  }
}

/** The state of a run that does not end, for the message of the failure. */
async function stateOf({ gateway, tape }: TapeSystem, runId: string): Promise<string> {
  const of = (text: string) => query(gateway, text, [runId])
  return JSON.stringify({
    now: new Date(),
    runs: await of('SELECT * FROM runs WHERE id = $1'),
    steps: await of('SELECT * FROM run_steps WHERE run_id = $1'),
    messages: await of('SELECT * FROM run_outbox WHERE run_id = $1'),
    responses: await of(
      'SELECT id, status, created_at FROM responses WHERE id IN (SELECT response_id FROM run_steps WHERE run_id = $1)',
    ),
    deliveries: tape.deliveriesOf(runId),
  })
}
