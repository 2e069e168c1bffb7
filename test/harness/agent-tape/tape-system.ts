import { cpSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildWorker, toolsBundle } from '../../../scripts/build.ts'
import { type FaultProxy, startFaultProxy } from '../../faults/support/fault-proxy.ts'
import type { Random } from '../../faults/support/random.ts'
import { createAgent } from '../../http/support/agents.ts'
import { createBusyTenant } from '../contention.ts'
import { upstreamControl } from '../gateway.ts'
import { createIntegration, type McpServer, mcpTool, startMcpServer } from '../integrations.ts'
import { createRoutedModel } from '../routed-model.ts'
import { type StartedGateway, startGateway } from '../start-gateway.ts'
import { type Tenant, uniqueName } from '../tenant.ts'
import { JUDGE_ANSWERS, JUDGES, type Judge, type JudgeScripts, judgedBy, newJudgeScripts } from './judges.ts'
import { type QueueTape, startQueueTape } from './queue-tape.ts'

/** A system whose messages of runs are on a tape, and what its runs need. */
export interface TapeSystem {
  gateway: StartedGateway
  postgres: FaultProxy
  tape: QueueTape
  tenant: Tenant
  server: McpServer
  /** Name of the tool `add` as models call it. */
  tool: string
  /** Ids of agents by their judge and their number of steps, from 1. */
  agents: Record<Judge, string[]>
  judges: JudgeScripts
  stop(): Promise<void>
}

/** A call of the tool `add`, in micro-credits. */
export const TOOL_PRICE = 100
const MOST_STEPS = 3

/** Short times: what waits for a dead process waits for some seconds. In milliseconds. */
const VARIABLES = {
  RUN_DELIVERY_MS: '1500',
  LEDGER_LEASE_MS: '1000',
  LEDGER_FLUSH_MS: '100',
  UPSTREAM_HEADERS_TIMEOUT_MS: '5000',
  UPSTREAM_FIRST_EVENT_TIMEOUT_MS: '5000',
  UPSTREAM_EVENT_TIMEOUT_MS: '5000',
  LIMITS_TIMEOUT_MS: '20000',
  // Streams have all their events until the end of a long campaign.
  RESPONSE_WINDOW_MS: '3600000',
}

/**
 * Builds the Worker whose response objects can be killed one by one.
 * @param bundleDirectory of the gateway, for the script of tools.
 */
export async function buildKillable(bundleDirectory: string): Promise<{ directory: string; remove(): void }> {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-agent-tape-'))
  const remove = () => rmSync(directory, { recursive: true, force: true })
  try {
    await buildWorker(directory, { entry: 'test/harness/agent-tape/worker.ts' })
    renameSync(join(directory, 'worker.js'), join(directory, 'gateway.js'))
    cpSync(toolsBundle(bundleDirectory), toolsBundle(directory), { recursive: true })
    return { directory, remove }
  } catch (error) {
    remove()
    throw error
  }
}

/** Starts a whole system with a tape in the place of QStash, and a proxy before Postgres. */
export async function startTapeSystem(bundleDirectory: string, random: Random): Promise<TapeSystem> {
  const tape = await startQueueTape(random)
  const cleanUps: Array<() => Promise<void>> = [() => tape.close()]
  const stop = async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  }
  try {
    const gateway = await startGateway({
      bundleDirectory,
      variables: { ...VARIABLES, QSTASH_URL: tape.url },
    })
    cleanUps.push(() => gateway.stop())
    tape.signingKey = gateway.variables.QSTASH_CURRENT_SIGNING_KEY ?? ''
    const postgres = await startFaultProxy(gateway.standIns.postgres)
    cleanUps.push(() => postgres.close())
    await gateway.restartWorkerd({ DATABASE_FETCH_ENDPOINT: `${postgres.url}/sql` })
    return { gateway, postgres, tape, ...(await createWorld(gateway)), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function createWorld(gateway: StartedGateway) {
  const tenant = await createBusyTenant(gateway, 10_000_000_000)
  const { id: model } = await createRoutedModel(gateway, ['openai-compatible'])
  const added = { content: [{ type: 'text', text: 'added' }] }
  const faults = { 'tools/call': { kind: 'slow', milliseconds: 60 } }
  const server = await startMcpServer(gateway, { tools: [mcpTool('add')], results: { add: added }, faults })
  const { slug } = await createIntegration(gateway, tenant, { url: server.url, price: TOOL_PRICE })
  const judges = newJudgeScripts()
  const agents: Record<Judge, string[]> = { checks: [], met: [], slow: [], unusable: [] }
  for (const judge of JUDGES) {
    const answer = JUDGE_ANSWERS[judge]
    if (answer) await upstreamControl(gateway).putScript(judges[judge], { steps: answer })
    for (let steps = 1; steps <= MOST_STEPS; steps++) {
      const definition = agentOf(steps, model, slug, judgedBy(judge, judges))
      agents[judge].push(await createAgent(tenant, definition, gateway))
    }
  }
  return { tenant, server, tool: `${slug}_add`, agents, judges }
}

/** An agent whose steps do what their inputs name. @param judging members of each step. */
const agentOf = (steps: number, model: string, integration: string, judging: object) => ({
  name: uniqueName('agent'),
  description: 'Made by a test.',
  inputs: Array.from({ length: steps }, (_, index) => ({ name: `step ${index + 1}` })),
  steps: Array.from({ length: steps }, (_, index) => ({
    instructions: `{{step ${index + 1}}}`,
    model,
    max_attempts: 2,
    ...judging,
    tools: { hosted: ['shell'], integrations: [{ integration }] },
  })),
})
