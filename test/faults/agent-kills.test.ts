import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { createIntegration, type McpServer, mcpTool, startMcpServer } from '../harness/integrations.ts'
import { expectSettledLedger } from '../harness/invariants.ts'
import { answered, inTurn, slowed } from '../harness/routed-model.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { type Tenant, uniqueName } from '../harness/tenant.ts'
import { type ScriptStep, seenRequests } from '../harness/upstream.ts'
import { runPath } from '../http/support/agent-responses.ts'
import {
  createAgent,
  definitionOf,
  endedRun,
  type ReadRun,
  readRun,
  resultText,
  runDetails,
  trigger,
} from '../http/support/agents.ts'
import { callTool, framesOf } from '../http/support/dlp-answers.ts'
import { Random } from './support/random.ts'
import { expectSeenIn, type Reading, read, replay } from './support/response-readers.ts'

// The whole runtime is killed while runs are in every phase of a turn. Only QStash, which repeats its message, makes
// them continue.

const KILLS = Number(process.env.AGENT_KILL_RUNS || 40)
const SEED = Number(process.env.AGENT_SEED || Date.now() % 1_000_000)
/** The model answers at last. Longer than a test waits, so that only a repeated request gets an answer. */
const NEVER_MS = 300_000
const LONGEST_TOOL_MS = 4_000

let gateway: StartedGateway
let tenant: Tenant
let server: McpServer
let integration: string
beforeAll(async () => {
  console.info(`agent kills: AGENT_SEED=${SEED}`)
  gateway = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    // The lease of a delivery that died is far longer than any run here.
    variables: { RUN_DELIVERY_MS: '120000', LEDGER_LEASE_MS: '2000', LEDGER_FLUSH_MS: '100' },
  })
  tenant = await createBusyTenant(gateway, 10_000_000_000)
  const results = { add: { content: [{ type: 'text', text: 'added' }] } }
  server = await startMcpServer(gateway, { tools: [mcpTool('add')], results })
  integration = (await createIntegration(gateway, tenant, { url: server.url })).slug
}, 60_000)
afterAll(() => gateway?.stop())

type Phase = 'first byte' | 'in the answer' | 'second turn' | 'in a tool' | 'anywhere'
const PHASES: Phase[] = ['first byte', 'in the answer', 'second turn', 'in a tool', 'anywhere']

/** A run that a kill finds in a phase. */
interface Trial {
  phase: Phase
  runId: string
  mark: string
  seen: Reading | null
}

const done = (mark: string): ScriptStep[] => answered('chat', `Done ${mark}.`, true)

/** A turn that calls the tool with this text. */
function call(text: string): ScriptStep[] {
  const id = JSON.stringify(uniqueName('call'))
  const frames = framesOf('chat', [callTool(`${integration}_add`, { text })])
  const sse = frames.map((frame) => frame.replace('"call_0"', id))
  return [{ headers: { 'content-type': 'text/event-stream' } }, { sse }]
}

/** How the model answers one request after the other; the last answer repeats. */
function answersOf(phase: Phase, mark: string): ScriptStep[][] {
  const held: ScriptStep[] = [{ waitMilliseconds: NEVER_MS }, ...done(mark)]
  switch (phase) {
    case 'first byte':
      return [held, done(mark)]
    case 'in the answer':
      return [slowed(done(mark), NEVER_MS), done(mark)]
    case 'second turn':
      return [call(mark), held, done(mark)]
    case 'in a tool':
      return [call(`slow ${mark}`), done(mark)]
    case 'anywhere':
      return [call(`${mark}.a`), call(`${mark}.b`), call(`${mark}.c`), done(mark)]
  }
}

async function begin(phase: Phase, random: Random): Promise<Trial> {
  const mark = uniqueName('kill')
  const script = await inTurn(gateway, ...answersOf(phase, mark))
  const tools = { hosted: [], integrations: [{ integration }] }
  const agentId = await createAgent(
    tenant,
    definitionOf([{ instructions: `${script} ${mark}`, tools }]),
    gateway,
  )
  const { runId } = await trigger(tenant, agentId, {}, gateway)
  const path = runPath(runId, '?stream=true')
  return { phase, runId, mark, seen: random.chance(0.5) ? read(gateway, { key: tenant.key, path }) : null }
}

/** How many texts of the tool were executed, by their text. */
async function executed(): Promise<Map<string, number>> {
  const calls = (await server.requests()).filter(({ method }) => method === 'tools/call')
  const texts = calls.map(({ params }) => (params as { arguments: { text: string } }).arguments.text)
  return new Map([...Map.groupBy(texts, (text) => text)].map(([text, all]) => [text, all.length]))
}

/** The requests to the model, without those to the tool beside it. */
const modelRequests = async (mark: string) =>
  (await seenRequests(gateway, mark)).filter(({ script }) => script !== null)

/** Waits until each run is in its phase. */
async function inPhase({ phase, mark, seen }: Trial): Promise<void> {
  const requests = { 'second turn': 2, 'in a tool': 1, anywhere: 1, 'first byte': 1, 'in the answer': 1 }
  await vi.waitFor(
    async () => {
      const found = await modelRequests(mark)
      expect(found.length).toBeGreaterThanOrEqual(requests[phase])
      if (phase === 'in the answer') expect(found[0]?.eventsWritten).toBeGreaterThan(0)
      if (phase === 'in a tool') expect((await executed()).get(`slow ${mark}`)).toBe(1)
    },
    { timeout: 15_000, interval: 20 },
  )
  if (seen && phase === 'in the answer') {
    await vi.waitFor(() => expect(seen.bytes()).toContain('output_text.delta'), { timeout: 5_000 })
  }
}

/** Effects of one kill. */
interface KillReport {
  ended: Array<Trial & { run: ReadRun }>
  /** Until all of them had ended, from the moment on at which the runtime was there again. */
  milliseconds: number
}

async function killOnce(random: Random): Promise<KillReport> {
  await server.set({
    tools: [mcpTool('add')],
    results: { add: { content: [{ type: 'text', text: 'added' }] } },
    faults: { 'tools/call': { kind: 'slow', milliseconds: LONGEST_TOOL_MS } },
  })
  const slow = await begin('in a tool', random)
  await inPhase(slow)
  await server.set({
    tools: [mcpTool('add')],
    results: { add: { content: [{ type: 'text', text: 'added' }] } },
  })
  const others = PHASES.filter((phase) => phase !== 'in a tool' && phase !== 'anywhere')
  const held = await Promise.all(others.map((phase) => begin(phase, random)))
  await Promise.all(held.map(inPhase))
  const anywhere = await begin('anywhere', random)
  await inPhase(anywhere)
  await new Promise((resolve) => setTimeout(resolve, random.integer(0, 120)))
  await gateway.workerd.kill('SIGKILL')
  await gateway.workerd.restart()
  const since = Date.now()
  const trials = [slow, ...held, anywhere]
  const runs = await Promise.all(
    trials.map(({ runId }) => endedRun(tenant, runId, { baseUrl: gateway.baseUrl, timeout: 60_000 })),
  )
  const ended = trials.map((trial, index) => ({ ...trial, run: runs[index] as ReadRun }))
  return { ended, milliseconds: Date.now() - since }
}

/** A run is resumed from its last turn; only a tool that may have had an effect ends it. */
async function expectEnd({ phase, mark, run }: KillReport['ended'][number], times: Map<string, number>) {
  const { error } = await runDetails(tenant, run.runId, gateway)
  const about = JSON.stringify({ phase, run, error })
  const isLost = phase === 'in a tool' || (phase === 'anywhere' && run.status === 'failure')
  expect(run.status, about).toBe(isLost ? 'failure' : 'success')
  if (isLost) expect(error, about).toMatchObject({ message: expect.stringContaining('while a tool ran') })
  else expect(resultText(run), about).toBe(`Done ${mark}.`)
  const own = [...times].filter(([text]) => text.includes(mark))
  expect(
    own.every(([, count]) => count === 1),
    about,
  ).toBe(true)
  if (phase === 'second turn') expect(own, about).toEqual([[mark, 1]])
}

describe(`the runtime killed in the middle of runs (seed ${SEED})`, () => {
  it('resumes each from its last turn, and repeats no effect', { timeout: KILLS * 60_000 }, async () => {
    const random = new Random(SEED)
    const statuses: Record<string, number> = {}
    const times: number[] = []
    const trials: Trial[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      const { ended, milliseconds } = await killOnce(random)
      const effects = await executed()
      for (const trial of ended) {
        await expectEnd(trial, effects)
        const name = `${trial.phase}: ${trial.run.status}`
        statuses[name] = (statuses[name] ?? 0) + 1
      }
      times.push(milliseconds)
      trials.push(...ended)
    }
    await expectStreams(trials)
    const requests = await expectRecords(trials)
    console.info(JSON.stringify({ kills: KILLS, statuses, requests, longest: Math.max(...times), times }))
  })
})

/** Every reader gets the same events; the one that was connected during the kill got no others. */
async function expectStreams(trials: readonly Trial[]): Promise<void> {
  for (const { runId, seen } of trials) {
    const id = `resp_run_${runId}`
    const [whole, again] = [await replay(gateway, tenant.key, id), await replay(gateway, tenant.key, id)]
    expect(again).toBe(whole)
    if (seen && (await seen.result).status === 200) expectSeenIn(whole, seen.bytes(), 0, runId)
  }
}

/** Every request to the model has a record of its own, those that were cut off as well. */
async function expectRecords(trials: readonly Trial[]): Promise<{ sent: number; interrupted: number }> {
  const { records } = await expectSettledLedger(gateway, tenant, 60_000)
  let [sent, interrupted] = [0, 0]
  for (const { runId, mark, phase } of trials) {
    const own = records.filter(({ requestId, modelId }) => requestId === `run_${runId}` && modelId !== null)
    const requests = await modelRequests(mark)
    const cut = own.filter(({ status }) => status === 0)
    expect(own.length, JSON.stringify({ phase, own })).toBeGreaterThanOrEqual(requests.length)
    if (phase !== 'in a tool' && phase !== 'anywhere') expect(cut.length).toBe(1)
    sent += requests.length
    interrupted += cut.length
    expect((await readRun(tenant, runId, gateway)).status).not.toBe('in_progress')
  }
  return { sent, interrupted }
}
