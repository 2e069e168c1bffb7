import { DurableObject } from 'cloudflare:workers'
import type { Bindings } from '../../../src/env.ts'
import type { CallOpening, CallOutcome } from '../../../src/ledger/audit-record.ts'
import { ledgerClient, unsharedLedgers } from '../../../src/ledger/client.ts'
import type { CommitBatch } from '../../../src/ledger/commits/commit.ts'
import type { Admission, CallToAdmit, LedgerClient } from '../../../src/ledger/contract.ts'
import { Ledger as SoundLedger } from '../../../workers/ledger.ts'

// A Worker that calls ledgers as the gateway does, from requests and from objects, while commits fail. It runs in the
// runtime itself: the one that vitest brings does not let one request resolve what another waits for.

/** Fault of a commit. */
export type CommitFault = 'killed before' | 'killed after' | 'answer lost' | 'slow before' | 'slow after'

/** Added to the name of a ledger whose transfers between shards are to fail (campaign.ts). */
const TRANSFERS = ' transfers'

/** Faults of a ledger's next commits or messages of transfers, one each. Plain data of the isolate. */
const faults = new Map<string, CommitFault[]>()
let happened = 0

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const SLOW_MS = 600

/** A ledger that dies, or is slow, before or after it has stored a commit, or one side of a transfer between shards. */
export class Ledger extends SoundLedger {
  override async commit(batch: CommitBatch) {
    return this.#failing('', () => super.commit(batch))
  }

  override async sendEscrow(shard: number, number: number, least: number, all: number) {
    return this.#failing(TRANSFERS, () => super.sendEscrow(shard, number, least, all))
  }

  override async takeEscrow(shard: number, number: number, amount: number) {
    return this.#failing(TRANSFERS, () => super.takeEscrow(shard, number, amount))
  }

  override async giveBack() {
    return this.#failing(TRANSFERS, () => super.giveBack())
  }

  async #failing<Answer>(what: string, run: () => Promise<Answer>): Promise<Answer> {
    const fault = faults.get(`${this.ctx.id.name}${what}`)?.shift()
    if (fault !== undefined) happened += 1
    if (fault === 'killed before') this.ctx.abort('killed before a commit')
    if (fault === 'slow before') await pause(SLOW_MS)
    const answer = await run()
    if (fault === undefined || fault === 'slow before') return answer
    // The commit is stored even if its answer is lost.
    await this.ctx.storage.sync()
    if (fault === 'killed after') this.ctx.abort('killed after a commit')
    if (fault === 'answer lost') throw new Error('the answer was lost')
    await pause(SLOW_MS)
    return answer
  }
}

/** Named in wrangler.toml, and not used here. */
export class ResponseStream extends DurableObject {}
export class ResponsePool extends DurableObject {}
export class ResponseSockets extends DurableObject {}
export class ConnectionCredentials extends DurableObject {}

/** A call, as the gateway makes it. */
export interface ScriptedCall {
  organizationId: string
  shard: number
  opening: CallOpening
  reserve: number
  outcome: CallOutcome
  refusal: CallOutcome
  leaseMilliseconds: number
  limits: CallToAdmit['limits']
  /** Between admission and end. */
  upstreamMilliseconds: number
  /** The request is waited for also when its client has left, as the gateway does. */
  isHeld: boolean
  /** A Durable Object makes it. */
  byObject: boolean
  /** Time from the beginning to a reset of that object; null for no reset. */
  resetAfter: number | null
}

export interface CallTold {
  admission: Admission | { kind: 'failed'; error: string }
  /** The ledger said that the outcome, or the refusal, is stored. */
  isSettled: boolean
}

async function makeCall(ledger: LedgerClient, call: ScriptedCall): Promise<CallTold> {
  const { opening, reserve, leaseMilliseconds, limits } = call
  const unchecked = { estimate: null, epochs: { organization: 0, catalogue: null }, learned: null }
  const admission = await ledger
    .admit({ opening, reserve, leaseMilliseconds, limits, ...unchecked })
    .catch((error: unknown) => ({ kind: 'failed' as const, error: String(error) }))
  const settled = () => ({ admission, isSettled: true })
  const unsettled = () => ({ admission, isSettled: false })
  if (admission.kind !== 'admitted') return ledger.record(opening, call.refusal).then(settled, unsettled)
  await pause(call.upstreamMilliseconds)
  return ledger.close(opening.callId, call.outcome).then(settled, unsettled)
}

/** A call made by a Durable Object of the same script. */
export class LedgerCaller extends DurableObject<Bindings> {
  async make(call: ScriptedCall): Promise<CallTold> {
    const { resetAfter } = call
    if (resetAfter !== null) void pause(resetAfter).then(() => this.ctx.abort('reset while it called'))
    const waitUntil = (work: Promise<unknown>) => this.ctx.waitUntil(work)
    const use = { shard: call.shard, ledgers: unsharedLedgers() }
    return makeCall(ledgerClient(this.env.LEDGER, call.organizationId, waitUntil, use), call)
  }
}

interface Environment extends Bindings {
  LEDGER_CALLERS: DurableObjectNamespace<LedgerCaller>
}

async function answerCall(call: ScriptedCall, environment: Environment, context: ExecutionContext) {
  if (call.byObject) return environment.LEDGER_CALLERS.getByName(call.opening.callId).make(call)
  const waitUntil = call.isHeld ? (work: Promise<unknown>) => context.waitUntil(work) : () => {}
  const { organizationId, shard } = call
  const made = makeCall(ledgerClient(environment.LEDGER, organizationId, waitUntil, { shard }), call)
  waitUntil(made)
  return made
}

/** Commands of a test to a ledger, by name. */
interface Question {
  organizationId: string
  method: 'grantCredits' | 'balance' | 'flush'
  parameters: unknown[]
}

async function answerQuestion({ organizationId, method, parameters }: Question, environment: Environment) {
  const ledger = ledgerClient(environment.LEDGER, organizationId)
  return (ledger[method] as (...given: unknown[]) => Promise<unknown>)(...parameters)
}

// biome-ignore lint/style/noDefaultExport: what the runtime calls for a request
export default {
  async fetch(request, environment, context) {
    const { pathname } = new URL(request.url)
    if (pathname === '/happened') return Response.json(happened)
    const body: unknown = await request.json()
    if (pathname === '/calls')
      return Response.json(await answerCall(body as ScriptedCall, environment, context))
    if (pathname === '/ledger') return Response.json(await answerQuestion(body as Question, environment))
    const { name, next } = body as { name: string; next: CommitFault[] }
    faults.set(name, next)
    return Response.json(null)
  },
} satisfies ExportedHandler<Environment>
