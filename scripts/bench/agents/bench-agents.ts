import { setTimeout } from 'node:timers/promises'
import { and, asc, eq } from 'drizzle-orm'
import { runs } from '../../../schema/agents.ts'
import { openDatabase, type ScriptDatabase } from '../../database.ts'
import { organizationId, userId } from '../../demo-organizations.ts'
import { createChatFrames, roleDelta, streamEnd } from '../../local/model-upstream/chat-frames.ts'
import { BenchFailure } from '../measure.ts'
import type { BenchSystem } from '../system.ts'

/** A run that succeeded; times in milliseconds since the epoch. */
export interface EndedRun {
  createdAt: number
  endedAt: number
}

const MODEL = 'scripted-chat'
const POLL_MS = 100
const JSON_BODY = { 'content-type': 'application/json' }
const USAGE = { prompt: 100, cached: 0, completion: 20, reasoning: 0 }

/**
 * Agents of the demo organization, and the same turns as calls of `POST /v1/responses`. The ends of runs are read from the
 * database, so that polls are no part of what is measured.
 */
export class BenchAgents {
  readonly #url: string
  readonly #upstream: string
  readonly #database: ScriptDatabase
  readonly #caller: Record<string, string>
  readonly #administrator: Record<string, string>

  private constructor({ gateway, scenarios, variables, upstream }: BenchSystem, database: ScriptDatabase) {
    this.#url = gateway.url
    this.#upstream = upstream
    this.#database = database
    this.#caller = { ...scenarios[0]?.call.headers, ...JSON_BODY }
    this.#administrator = { authorization: `Bearer ${variables.ADMIN_TOKEN}`, ...JSON_BODY }
  }

  /** @param work is done while the database is open. */
  static async open<Result>(
    system: BenchSystem,
    work: (agents: BenchAgents) => Promise<Result>,
  ): Promise<Result> {
    const { DATABASE_URL = '', DATABASE_FETCH_ENDPOINT } = system.variables
    const { database, close } = await openDatabase({ DATABASE_URL, DATABASE_FETCH_ENDPOINT })
    return work(new BenchAgents(system, database)).finally(close)
  }

  /** Registers an answer of a few words, which comes at once. @returns the text that selects it. */
  async answer(name: string): Promise<string> {
    const frames = createChatFrames(MODEL, true)
    const sse = [frames.choice(0, roleDelta), frames.text(0, 'Done.'), frames.finish(0, 'stop')]
    const steps = [{ sse: [...sse, frames.usage(USAGE), streamEnd] }]
    const script = `bench-${name}`
    await sent(`${this.#upstream}/control/scripts/${script}`, {
      method: 'PUT',
      body: JSON.stringify({ steps }),
    })
    return `script:${script} Say that it is done.`
  }

  /** Makes an agent whose steps are one turn each. @returns its id. */
  async createAgent(name: string, instructions: string, steps: number): Promise<string> {
    const step = { instructions, model: MODEL, tools: { hosted: [] } }
    const definition = { name: `Bench ${name}`, steps: Array.from({ length: steps }, () => step) }
    const body = JSON.stringify({ created_by: userId('owner'), definition })
    const headers = this.#administrator
    const url = `${this.#url}/api/organizations/${organizationId('acme')}/agents`
    const { id } = await sent<{ id: string }>(url, { method: 'POST', headers, body })
    return id
  }

  /** Begins a run. */
  async trigger(agentId: string): Promise<void> {
    const body = JSON.stringify({ agentId })
    await sent(`${this.#url}/v1/agents/runs`, { method: 'POST', headers: this.#caller, body })
  }

  /** Waits until no run of an agent is in progress. @throws BenchFailure when that takes too long. */
  async untilEnded(agentId: string, limit: number): Promise<void> {
    const end = performance.now() + limit
    const isRunning = and(eq(runs.agentId, agentId), eq(runs.status, 'in_progress'))
    while (performance.now() < end) {
      const running = await this.#database.select({ id: runs.id }).from(runs).where(isRunning).limit(1)
      if (running.length === 0) return
      await setTimeout(POLL_MS)
    }
    throw new BenchFailure(`runs are in progress after ${limit / 1_000} s`)
  }

  /** All runs of an agent, in order. @throws BenchFailure unless each succeeded. */
  async endedRuns(agentId: string): Promise<EndedRun[]> {
    const { status, createdAt, endedAt } = runs
    const rows = await this.#database
      .select({ status, createdAt, endedAt })
      .from(runs)
      .where(eq(runs.agentId, agentId))
      .orderBy(asc(createdAt))
    return rows.map((row) => {
      if (row.status !== 'success' || row.endedAt === null)
        throw new BenchFailure(`a run ended as ${row.status}`)
      return { createdAt: row.createdAt.getTime(), endedAt: row.endedAt.getTime() }
    })
  }

  /** The turns of a run as responses, one after the other in one conversation. */
  async respond(instructions: string, turns: number): Promise<void> {
    let conversation: string | undefined
    for (let turn = 0; turn < turns; turn += 1) {
      const body = JSON.stringify({
        model: MODEL,
        input: instructions,
        store: true,
        tool_choice: 'none',
        ...(conversation !== undefined && { conversation }),
      })
      const url = `${this.#url}/v1/responses`
      const response = await sent<ResponseBody>(url, { method: 'POST', headers: this.#caller, body })
      if (response.status !== 'completed') throw new BenchFailure(`a response is ${response.status}`)
      conversation = response.conversation.id
    }
  }
}

interface ResponseBody {
  status: string
  conversation: { id: string }
}

async function sent<Body>(url: string, init: RequestInit): Promise<Body> {
  const response = await fetch(url, init)
  const text = await response.text()
  if (!response.ok)
    throw new BenchFailure(`${init.method ?? 'GET'} ${url}: status ${response.status} ${text.slice(0, 300)}`)
  return (text === '' ? {} : JSON.parse(text)) as Body
}
