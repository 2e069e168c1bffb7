import { expect } from 'vitest'
import { query } from '../gateway.ts'
import { expectSettledLedger } from '../invariants.ts'
import { ANSWER_COST } from '../routed-model.ts'
import type { UpstreamRequest } from '../upstream.ts'
import { workspaceCaller } from '../workspaces.ts'
import { type AttemptRow, attemptsByRun } from './attempts.ts'
import type { CampaignReport } from './campaign.ts'
import type { DrivenRun } from './run-driver.ts'
import type { PlannedStep } from './scripted-runs.ts'
import { type TapeSystem, TOOL_PRICE } from './tape-system.ts'
import { expectSingleVerdicts } from './verdict-checks.ts'

/** Until the lease of a tool call that was cut off is over. */
const LEASES_MS = 150_000

/** Expects that no turn was sent, and no tool with effects executed, more often than its attempts say. */
export async function expectSingleEffects(
  system: TapeSystem,
  { runs, upstream }: CampaignReport,
): Promise<void> {
  const requests = upstream.byScript()
  const attempts = await attemptsByRun(system)
  const added = await addedTexts(system)
  const interrupted = await interruptedTurns(system)
  for (const [mark, users] of stepsByMark(runs)) {
    const { step } = users[0] as StepUse
    const rows = users.flatMap(({ run, number }) =>
      (attempts.get(run.runId) ?? []).filter((row) => row.number === number),
    )
    const about = JSON.stringify({ step: { ...step, answers: undefined }, rows })
    // Within an attempt only a turn that was interrupted is asked again.
    const sent = requests.get(mark)?.length ?? 0
    const again = users.reduce(
      (sum, { run, number }) => sum + (interrupted.get(`${run.runId} step ${number}`) ?? 0),
      0,
    )
    expect(sent, about).toBeLessThanOrEqual(rows.length * step.turns + again)
    const least = rows.filter(({ status }) => status === 'completed').length
    expect(sent, about).toBeGreaterThanOrEqual(least)
    const done = step.kind === 'shell' ? await loggedLines(system, users, mark) : added
    for (const effect of step.effects) {
      const times = done.filter((text) => text === effect).length
      expect(times, about).toBeLessThanOrEqual(1)
      // A turn that is asked again may get an answer without a call.
      if (again === 0 && rows.every((row) => row.attempt === 1 && row.status === 'completed'))
        expect(times, about).toBe(rows.length && 1)
    }
    expectKnownEffects(step, rows, done, about)
  }
}

/** A step whose tool was executed says so, also where its process died before the result was known. */
function expectKnownEffects(
  { effects }: PlannedStep,
  rows: readonly AttemptRow[],
  done: readonly string[],
  about: string,
): void {
  const happened = effects.some((effect) => done.includes(effect))
  if (happened)
    expect(
      rows.some((row) => row.had_effects),
      about,
    ).toBe(true)
}

/** How many calls of a model were cut off, by the run and the step: `<run id> step <n>`. */
async function interruptedTurns({ gateway, tenant }: TapeSystem): Promise<Map<string, number>> {
  const cut = `SELECT substring(action FROM '/v1/runs/(.* step [0-9]+) attempt') AS step, count(*)::int AS calls
    FROM audit_records WHERE organization_id = $1 AND model_id IS NOT NULL AND status = 0 GROUP BY 1`
  const rows = await query(gateway, cut, [tenant.organizationId])
  return new Map(rows.map(({ step, calls }) => [String(step), Number(calls)]))
}

interface StepUse {
  run: DrivenRun
  number: number
  step: PlannedStep
}

/** The uses of each step: a restart does the steps of its run again. */
function stepsByMark(runs: readonly DrivenRun[]): Map<string, StepUse[]> {
  const uses = runs.flatMap((run) => run.plan.steps.map((step, index) => ({ run, number: index + 1, step })))
  return Map.groupBy(uses, ({ step }) => step.mark)
}

/** Texts that the tool `add` was called with, in order. */
async function addedTexts({ server }: TapeSystem): Promise<string[]> {
  const calls = (await server.requests()).filter(({ method }) => method === 'tools/call')
  return calls.map(({ params }) => (params as { arguments: { text: string } }).arguments.text)
}

/** Lines in the files `log` of the conversations of a step. */
async function loggedLines(
  { gateway, tenant: { organizationId, userId } }: TapeSystem,
  uses: readonly StepUse[],
  mark: string,
): Promise<string[]> {
  const outputs = await Promise.all(
    uses.map(({ run: { conversationId: workspaceId } }) =>
      workspaceCaller(gateway.toolsUrl, { organizationId, userId, workspaceId }).shell('cat log 2>/dev/null'),
    ),
  )
  return outputs.flatMap(({ stdout }) => stdout.split('\n')).filter((line) => line === mark)
}

/** A record of the ledger, as far as the checks read it. */
export interface CallRecord {
  requestId: string
  action: string
  modelId: string | null
  tool?: string
  cost: number
  /** Micro-credits. */
  reserved: number
  provenance: string | null
  flags: string[]
}

/**
 * Expects that each run paid for what the upstream served it, once: a call whose usage was reported costs what was served, and
 * a call that was cut off no more than it had reserved.
 */
export async function expectPaidOnce(
  system: TapeSystem,
  { runs, upstream }: CampaignReport,
): Promise<{ records: number; estimated: number; judged: number }> {
  const { records } = await expectSettledLedger(system.gateway, system.tenant, LEASES_MS)
  const calls = records.filter(({ kind }) => kind === 'call') as unknown as CallRecord[]
  const byRun = Map.groupBy(calls, ({ requestId }) => requestId.replace(/^run_/, ''))
  const requests = upstream.byScript()
  const judgements = upstream.judgements(system.judges)
  const attempts = await attemptsByRun(system)
  const added = await addedTexts(system)
  // A restart has the scripts of its run.
  const families = Map.groupBy(runs, ({ restartedFrom, runId }) => restartedFrom ?? runId)
  for (const family of families.values()) {
    const [first] = family
    const own = family.flatMap(({ runId }) => byRun.get(runId) ?? [])
    const steps = first?.plan.steps ?? []
    const models = own.filter(({ modelId }) => modelId !== null)
    const judged = steps.flatMap(({ mark }) => judgements.get(mark) ?? [])
    const verdicts = judged.flatMap(({ finished }) => (finished ? [ANSWER_COST] : []))
    const served = [...steps.flatMap((step) => servedCosts(step, requests.get(step.mark) ?? [])), ...verdicts]
    const sent = steps.reduce((sum, { mark }) => sum + (requests.get(mark)?.length ?? 0), judged.length)
    const reported = models.filter(({ provenance }) => provenance === 'reported').map(({ cost }) => cost)
    const rows = family.flatMap(({ runId }) => attempts.get(runId) ?? [])
    const about = JSON.stringify({ runs: family.map(({ runId }) => runId), models, served, rows })
    expectContained(
      reported.filter((cost) => cost > 0),
      served.filter((cost) => cost > 0),
      about,
    )
    // Every request was admitted before it was sent.
    expect(models.length, about).toBeGreaterThanOrEqual(sent)
    const tools = own.filter(({ tool }) => tool === system.tool)
    const executed = steps.flatMap(({ effects }) => effects.filter((effect) => added.includes(effect))).length
    expect(tools.length, about).toBeGreaterThanOrEqual(executed)
    for (const { cost } of tools) expect([0, TOOL_PRICE], about).toContain(cost)
    // A call that its lease has settled costs what the ledger knew then. A response that comes back later counts what it had
    // emitted by its end, which is within the reservation.
    const paid = own.reduce(
      (sum, { cost, flags, reserved }) => sum + (flags.includes('settled_by_alarm') ? reserved : cost),
      0,
    )
    expect(
      rows.reduce((sum, row) => sum + row.cost + (row.verdict_cost ?? 0), 0),
      about,
    ).toBeLessThanOrEqual(paid)
  }
  return {
    records: calls.length,
    estimated: calls.filter(({ provenance }) => provenance === 'estimated').length,
    ...(await expectSingleVerdicts(system, { runs, upstream }, calls)),
  }
}

/** The costs of the answers that were served whole. The nth request of a script gets its nth answer, or its last. */
function servedCosts({ answers }: PlannedStep, requests: readonly UpstreamRequest[]): number[] {
  return requests.flatMap(({ finished }, index) => {
    const answer = answers[Math.min(index, answers.length - 1)]
    return finished && answer ? [answer.cost] : []
  })
}

/** Expects that each cost is one of those that were served, none of them twice. */
function expectContained(reported: readonly number[], served: readonly number[], about: string): void {
  const left = [...served]
  for (const cost of reported) {
    const index = left.indexOf(cost)
    expect(index, `${cost} was not served once more: ${about}`).toBeGreaterThanOrEqual(0)
    left.splice(index, 1)
  }
}

/** State that must not change when all past messages are delivered again. */
export async function lastingState({ gateway, tenant }: TapeSystem, { upstream }: CampaignReport) {
  await upstream.read()
  const of = (text: string) => query(gateway, text, [tenant.organizationId])
  return {
    runs: await of('SELECT * FROM runs WHERE organization_id = $1 ORDER BY id'),
    steps: await of('SELECT * FROM run_steps WHERE organization_id = $1 ORDER BY run_id, number, attempt'),
    verdicts: await of('SELECT * FROM run_verdicts WHERE organization_id = $1 ORDER BY run_id, number'),
    messages: await of('SELECT * FROM run_outbox WHERE organization_id = $1'),
    credits: await of('SELECT * FROM credit_entries WHERE organization_id = $1 ORDER BY id'),
    sent: [...upstream.byScript().values()].flat().length,
  }
}
