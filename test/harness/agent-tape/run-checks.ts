import { expect } from 'vitest'
import { inParallel } from '../../faults/support/response-trials.ts'
import { readRun } from '../../http/support/agents.ts'
import { ask } from '../../http/support/response-calls.ts'
import { jsonOf } from '../send.ts'
import { type AttemptRow, attemptsByRun } from './attempts.ts'
import type { DrivenRun } from './run-driver.ts'
import { expectSoundStream } from './stream-checks.ts'
import type { TapeSystem } from './tape-system.ts'
import { expectVerdict } from './verdict-checks.ts'

const READ_TOGETHER = 8

/**
 * Expects of each run that it has ended, that its attempts lead there step by step, and that they agree with their
 * responses, its conversation and its stream.
 */
export async function expectSoundRuns(system: TapeSystem, runs: readonly DrivenRun[]): Promise<void> {
  const attempts = await attemptsByRun(system)
  // Every request that was repeated has begun one run.
  expect([...attempts.keys()].toSorted()).toEqual(runs.map(({ runId }) => runId).toSorted())
  await inParallel(runs.length, READ_TOGETHER, async (index) => {
    const run = runs[index]
    if (!run) return
    const rows = attempts.get(run.runId) ?? []
    const read = await readRun(system.tenant, run.runId, system.gateway)
    const about = JSON.stringify({
      run: run.runId,
      kinds: run.plan.steps.map(({ kind }) => kind),
      read,
      rows,
    })
    expect(read.endedAtUtc, about).not.toBeNull()
    if (run.cancelled) expect(read.status, about).toBe('cancelled')
    expectSteps(run, read.status, rows, about)
    const last = run.plan.steps.at(-1)
    const result = read.status === 'success' ? last?.output : null
    const payload = { role: 'assistant', parts: [{ type: 'text', text: result }] }
    expect(read.result, about).toBe(read.status === 'success' ? JSON.stringify(payload) : null)
    for (const row of rows) expectAgrees(run, row, about)
    await expectConversation(system, run, rows, about)
    await expectSoundStream(system, run, read.status, rows)
  })
}

/** The attempts of each step are numbered without a gap; each but the last failed; a step follows a completed one. */
function expectSteps(
  { plan, reruns }: DrivenRun,
  status: string,
  rows: readonly AttemptRow[],
  about: string,
): void {
  const ends = { success: 'completed', failure: 'failed', cancelled: 'cancelled' }
  expect(Object.keys(ends), about).toContain(status)
  const steps = [...Map.groupBy(rows, ({ number }) => number)].toSorted(([a], [b]) => a - b)
  expect(
    steps.map(([number]) => number),
    about,
  ).toEqual(steps.map((_, index) => index + 1))
  for (const [number, attempts] of steps) {
    expect(
      attempts.map(({ attempt }) => attempt),
      about,
    ).toEqual(attempts.map((_, index) => index + 1))
    const isLast = number === steps.length
    const end = isLast ? ends[status as keyof typeof ends] : 'completed'
    const expected = attempts.map((_, index) => (index === attempts.length - 1 ? end : 'failed'))
    expect(
      attempts.map((each) => each.status),
      about,
    ).toEqual(expected)
    const repeated = attempts.slice(0, -1)
    expect(
      repeated.every((each) => each.error !== null),
      about,
    ).toBe(true)
    // An attempt that may have had an effect is repeated only by a rerun of a user.
    expect(repeated.filter((each) => each.had_effects).length, about).toBeLessThanOrEqual(reruns)
  }
  if (status === 'success') expect(steps.length, about).toBe(plan.steps.length)
}

/** An attempt has the output, the end and the cost of its response, and one verdict if it was completed. */
function expectAgrees(run: DrivenRun, row: AttemptRow, about: string): void {
  const { plan, conversationId } = run
  const step = plan.steps[row.number - 1]
  expect(row.output, about).toBe(row.status === 'completed' ? step?.output : null)
  expectVerdict(run, row, about)
  if (row.response_status === null) {
    expect(row.status, about).not.toBe('completed')
    return
  }
  expect(row.response_conversation, about).toBe(conversationId)
  if (row.status === 'completed') expect(row.response_status, about).toBe('completed')
  // A response may have been completed just before it was cancelled.
  if (row.status === 'failed') expect(['failed', 'incomplete'], about).toContain(row.response_status)
  expect(row.cost, about).toBe(row.response_cost)
}

interface ConversationItem {
  type: string
  role?: string
  status?: string
  content?: unknown
}

/** The conversation has each completed step once, and nothing of failed ones. */
async function expectConversation(
  { gateway, tenant }: TapeSystem,
  { plan, conversationId }: DrivenRun,
  rows: readonly AttemptRow[],
  about: string,
): Promise<void> {
  const path = `/v1/conversations/${conversationId}/items?order=asc&limit=100`
  const answer = await ask(tenant.key, 'GET', path, gateway)
  const { data } = jsonOf(answer) as { data: ConversationItem[] }
  // A reader may have got a turn that was asked again: it stays, as incomplete.
  const messages = data.filter(({ type, status }) => type === 'message' && status !== 'incomplete')
  const texts = messages.map(({ role, content }) => `${role} ${JSON.stringify(content)}`)
  for (const [index, { mark, output }] of plan.steps.entries()) {
    const own = rows.filter(({ number }) => number === index + 1)
    const stored = own.filter(
      (row) => row.response_status !== null && row.response_status !== 'failed',
    ).length
    const completed = own.filter((row) => row.response_status === 'completed').length
    expect(
      texts.filter((text) => text.startsWith('user') && text.includes(`script:${mark}`)).length,
      about,
    ).toBe(stored)
    const answers = texts.filter((text) => text.startsWith('assistant') && text.includes(`${output}`)).length
    expect(answers, about).toBeGreaterThanOrEqual(output === null ? 0 : completed)
    expect(answers, about).toBeLessThanOrEqual(output === null ? 0 : stored)
  }
}
