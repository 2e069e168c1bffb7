import { settle } from '../../calls/governed-call.ts'
import { addUsage } from '../../calls/usage.ts'
import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import { TurnFailure } from '../../gateway/calls/turn-failure.ts'
import { errorOf } from '../../gateway/http-answer.ts'
import { admitTurn, type SentTurn, sendTurn } from '../../gateway/model-turn.ts'
import { compatibilityOf } from '../../identity/principal.ts'
import { type CallOutcome, callOutcome, type Usage } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'
import { joinBytes } from '../../lib/byte-edits.ts'
import { newId } from '../../lib/ids.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import { keptItems, pendingItems } from '../context/kept-items.ts'
import { estimateFor, findModel, loadUnlockedContext } from '../context/load-context.ts'
import { loadRequest, type ResponseRequest } from '../context/load-request.ts'
import { redactedItem } from '../items/redaction.ts'
import { newItemId } from '../items/types/item-types.ts'
import { currentPrincipal } from '../model/current-principal.ts'
import { notStarted } from '../model/error-data.ts'
import { ownerOf } from '../model/response-head.ts'
import { responseUsage } from '../model/response-members.ts'
import type {
  CompactionResult,
  ContextItem,
  LedgerTrace,
  RequestContent,
  StartRequest,
} from '../model/types.ts'
import { openResponsesItem } from '../open-responses/rendered-item.ts'
import type { ResponseDeps } from '../response-deps.ts'
import { fromPostgres } from '../store/postgres-away.ts'
import { type CompactionPlan, forcedPlan, isWorthwhile } from './compaction-plan.ts'
import { compactedItems } from './context-compaction.ts'
import { readSummary, type SummaryAnswer } from './read-summary.ts'
import { sealedSummary } from './sealed-summary.ts'
import { type SummaryPart, summaryRequest } from './summary-request.ts'

/** The window of a model that does not exist, which the admission refuses. */
const NO_MODEL = { contextWindow: 128_000, maxOutputTokens: 8_192 }
/** How long the answer waits for the outcome of a call that has ended. */
const SETTLING_LIMIT_MS = 1_000

/**
 * Compacts a conversation for `POST /v1/responses/compact`: the result is the input of a further request. Its calls are
 * governed as turns are. Nothing is stored.
 * @returns never throws.
 */
export async function compactConversation(
  deps: ResponseDeps,
  start: StartRequest,
  body: RequestContent,
): Promise<CompactionResult> {
  const compaction = new ConversationCompaction(deps, start)
  try {
    const { request, reserved } = await loadRequest(deps, body, start.principal.organizationId, {
      needsInput: false,
    })
    try {
      const bytes = await compaction.run(request)
      return { ...compaction.trace, error: null, compaction: new Blob([bytes]).stream() }
    } finally {
      reserved.release()
    }
  } catch (error) {
    return notStarted(error, compaction.trace, start.identity.requestId)
  }
}

/** A compaction with its calls. */
class ConversationCompaction {
  trace: LedgerTrace = { recorded: false }
  readonly #deps: ResponseDeps
  readonly #start: StartRequest
  readonly #abort = new AbortController()
  #usage: Usage | null = null
  /** The policy of the calls; null before the first one. */
  #policy: CallPolicy | null = null
  #compatibility: Compatibility = 'headgate'

  constructor(deps: ResponseDeps, start: StartRequest) {
    this.#deps = deps
    this.#start = start
  }

  /** @returns the result as JSON. @throws what a turn of a response throws. */
  async run({ settings: given, items: sent }: ResponseRequest): Promise<Uint8Array> {
    const [deps, owner] = [this.#deps, ownerOf(this.#start)]
    const settings = { ...given, store: false }
    const load = async () => {
      const context = await loadUnlockedContext(deps, owner, { settings, items: sent }, null)
      return { context, model: await findModel(deps, this.#start.principal, settings.model) }
    }
    const { context, model } = await fromPostgres(deps.database, load())
    const items = compactedItems(deps, owner, context)
    const countTokens = model ? await estimateFor(model, items) : () => 0
    const plan = forcedPlan({ items }, settings, model ?? NO_MODEL, countTokens)
    const request = { settings, historyIds: context.history.map(({ id }) => id) }
    if (!isWorthwhile({ items }, plan, countTokens)) {
      await this.#admitWithoutCall(request, plan)
      return this.#render(items, null, plan, [])
    }
    const summary = await this.#summarize(request, plan)
    const { calls } = plan.kept
    return this.#render(keptItems(items, plan.kept), summary, plan, pendingItems(items, calls))
  }

  async #summarize(
    request: Parameters<typeof summaryRequest>[3],
    plan: CompactionPlan,
  ): Promise<string | null> {
    const limit = this.#deps.configuration.RESPONSE_TIME_LIMIT_MS
    const timer = setTimeout(() => this.#abort.abort(tookTooLong()), limit)
    try {
      let summary: string | null = null
      for (const index of plan.parts.keys()) {
        summary = await this.#summarizePart(request, plan, { index, summary })
      }
      return summary
    } finally {
      clearTimeout(timer)
    }
  }

  async #summarizePart(
    request: Parameters<typeof summaryRequest>[3],
    plan: CompactionPlan,
    part: SummaryPart,
  ): Promise<string> {
    const { planned, call, body } = await this.#admit(request, plan, part, true)
    const sent = await sendTurn(this.#deps, planned, call, this.#abort.signal).finally(() => body.release())
    const answer: SummaryAnswer = { text: '', usage: null }
    const failure = await summaryFailure(sent, answer)
    this.#deps.waitUntil(sent.outcome.then((outcome) => settle(this.#deps, call, outcome)))
    const { usage, errorCode } = await endedOutcome(sent.outcome, answer)
    if (usage) this.#usage = this.#usage ? addUsage(this.#usage, usage) : usage
    if (failure) throw errorCode === 'dlp_blocked' ? blocked(failure) : failure
    return answer.text
  }

  /** Access, policies, limits and record are those of a call, also where no model is called. */
  async #admitWithoutCall(
    request: Parameters<typeof summaryRequest>[3],
    plan: CompactionPlan,
  ): Promise<void> {
    const { planned, call, body } = await this.#admit(request, plan, { index: 0, summary: null }, false)
    body.release()
    const dlp = planned.policy.record()
    const outcome = callOutcome(call.opening, this.#deps.clock(), { status: 200, dlp })
    this.#deps.waitUntil(settle(this.#deps, call, outcome))
  }

  /** @throws ApiError for a refusal. */
  async #admit(
    request: Parameters<typeof summaryRequest>[3],
    plan: CompactionPlan,
    part: SummaryPart,
    isSent: boolean,
  ) {
    const { identity, principal: first } = this.#start
    const headers = new Headers(this.#start.headers)
    const owner = ownerOf(this.#start)
    const principal = await currentPrincipal(this.#deps, owner, first, first)
    const isFirst = part.index === 0
    const callId = isFirst ? identity.callId : newId('call')
    const at = isFirst ? identity.at : this.#deps.clock()
    const call = { identity: { ...identity, callId, at }, principal, headers, counted: isFirst, isSent }
    const { request: turn, body } = summaryRequest(this.#deps, owner, call, request, plan, part)
    const admitted = await admitTurn(this.#deps, turn)
    if (isFirst) this.trace = { recorded: true, rateLimit: admitted.rateLimit }
    if (admitted.kind === 'refused') {
      body.release()
      throw admitted.error
    }
    this.#policy = admitted.planned.policy
    this.#compatibility = this.#start.compatibility ?? compatibilityOf(admitted.planned.rights.principal)
    return { ...admitted, body }
  }

  /** The result: what is kept, the compaction item, and the calls that the model has not continued after. */
  async #render(
    kept: readonly ContextItem[],
    summary: string | null,
    plan: CompactionPlan,
    pending: readonly ContextItem[],
  ): Promise<Uint8Array> {
    const sealed = sealedSummary(this.#deps, ownerOf(this.#start), { summary, ...plan.kept })
    const id = newItemId('compaction')
    const item = { id, type: 'compaction', status: 'completed', encrypted_content: sealed }
    const output: Uint8Array[] = []
    for (const { bytes } of kept) output.push(await this.#rendered(bytes), COMMA)
    output.push(encoder.encode(JSON.stringify(item)))
    for (const { bytes } of pending) output.push(COMMA, await this.#rendered(bytes))
    const members = {
      id: this.#start.responseId,
      object: 'response.compaction',
      created_at: Math.floor(this.#deps.clock() / 1000),
      usage: responseUsage(this.#usage),
    }
    const head = encoder.encode(`${JSON.stringify(members).slice(0, -1)},"output":[`)
    return joinBytes([head, ...output, encoder.encode(']}')])
  }

  /** An item as its owner may read it, in the form of the request. */
  async #rendered(bytes: Uint8Array): Promise<Uint8Array> {
    const redacted = await redactedItem(this.#policy, bytes)
    if (this.#compatibility === 'headgate') return redacted
    return encoder.encode(JSON.stringify(openResponsesItem(JSON.parse(decoder.decode(redacted)))))
  }
}

/** Reads an answer as `readSummary` does. @returns its failure; null for a summary. */
async function summaryFailure(sent: SentTurn, answer: SummaryAnswer): Promise<Error | null> {
  try {
    if (sent.kind === 'failed') return sent.error
    await readSummary(sent, answer)
    return null
  } catch (error) {
    return errorOf(error)
  }
}

/** The outcome of a call, or the usage that its upstream has reported so far. */
const endedOutcome = (
  outcome: Promise<CallOutcome>,
  { usage }: SummaryAnswer,
): Promise<Pick<CallOutcome, 'usage' | 'errorCode'>> =>
  withinTime(outcome, SETTLING_LIMIT_MS, 'settling a call').catch(() => ({ usage, errorCode: null }))

/** A policy found something in a summary: an answer that fails has its reason only in the outcome of its call. */
const blocked = ({ message }: Error) =>
  new ApiError('invalid_request', message, { code: 'dlp_blocked', shouldRetry: false })

const tookTooLong = () =>
  new TurnFailure('The compaction took longer than a response may.', { status: 504, code: 'server_error' })

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
const COMMA = encoder.encode(',')
