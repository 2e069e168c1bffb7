import type { Attempt, CallOutcome, InspectionCounts } from '../governance/audit-record.ts'
import type { LedgerOf } from '../governance/ledger/ledger.ts'
import { ApiError } from '../lib/api-error.ts'
import type { Clock } from '../lib/clock.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { type CallRecord, emptyOutcome } from './call-record.ts'
import type { CatalogModel } from './catalog/catalog.ts'
import { estimateUsage, type Metered, metered, NOTHING_METERED } from './metering.ts'
import type { StreamReader } from './protocols/protocol.ts'

/** Status of a call whose caller left before it ended; never sent, only recorded. */
export const CLIENT_LEFT = 499

export interface SettlementDeps {
  clock: Clock
  ledgerOf: LedgerOf
  configuration: { LEDGER_LEASE_MS: number }
}

/** Closes one opened call in the ledger, once, whatever ends it. `done` resolves when the ledger has it. */
export class Settlement {
  readonly done: Promise<void>
  readonly attempts: Attempt[] = []
  request: InspectionCounts | null = null
  response: InspectionCounts | null = null
  provider: string | null = null
  /** The upstream took the request and then gave no answer, so it may charge for what it read. */
  unanswered = false
  readonly #deps: SettlementDeps
  readonly #record: CallRecord
  readonly #organizationId: string
  readonly #model: CatalogModel
  readonly #requestBytes: number
  #finish: () => void = () => {}
  #closed = false
  #extendedAt: number

  constructor(
    deps: SettlementDeps,
    record: CallRecord,
    organizationId: string,
    model: CatalogModel,
    requestBytes: number,
  ) {
    this.#deps = deps
    this.#record = record
    this.#organizationId = organizationId
    this.#model = model
    this.#requestBytes = requestBytes
    this.#extendedAt = deps.clock()
    this.done = new Promise((resolve) => {
      this.#finish = resolve
    })
  }

  /** Ends the call with what it used. Later ends change nothing. */
  close(status: number, errorCode: string | null, use: Metered): void {
    if (this.#closed) return
    this.#closed = true
    const outcome: CallOutcome = {
      ...emptyOutcome(this.#record, this.#deps.clock(), status, errorCode),
      ...use,
      provider: this.provider,
      attempts: this.attempts,
      request: this.request,
      response: this.response,
      dlp: { policyVersion: 'none', findings: {} },
    }
    this.#send(outcome).finally(this.#finish)
  }

  /** A failed close is not lost: the ledger's alarm settles the call when its lease runs out. */
  async #send(outcome: CallOutcome): Promise<void> {
    try {
      await this.#deps.ledgerOf(this.#organizationId).close(this.#record.callId, outcome)
    } catch (error) {
      logEvent('error', 'ledger_close_failed', { call_id: this.#record.callId, error: errorText(error) })
    }
  }

  /** Ends the call with an error that was thrown before there was an answer. */
  fail(error: unknown): void {
    const known = error instanceof ApiError ? error : null
    this.close(
      known?.status ?? 500,
      known?.code ?? 'internal_error',
      this.unanswered ? this.#inputUse() : NOTHING_METERED,
    )
  }

  #inputUse(): Metered {
    return metered(estimateUsage(this.#requestBytes, 0, null), 'estimated', this.#model)
  }

  /** The caller left before the upstream answered: the upstream has read the request, so its input is charged. */
  callerLeft(): void {
    this.#record.flags.push('client_left')
    this.close(CLIENT_LEFT, 'client_left', this.#inputUse())
  }

  /** What a stream has used so far: as reported, or estimated where the upstream has not said it all. */
  streamUse(reader: StreamReader): Metered {
    const reported = reader.usage()
    if (reported?.final) return metered(reported.usage, 'reported', this.#model)
    const usage = estimateUsage(this.#requestBytes, reader.textBytes, reported?.usage ?? null)
    return metered(usage, 'estimated', this.#model)
  }

  /** What an answer used. */
  answerUse(reported: Metered['usage'], textBytes: number): Metered {
    if (reported) return metered(reported, 'reported', this.#model)
    return metered(estimateUsage(this.#requestBytes, textBytes, null), 'estimated', this.#model)
  }

  /** Renews the lease of a running stream when a third of it has passed, with what was used so far. */
  keepAlive(reader: StreamReader): void {
    const now = this.#deps.clock()
    const lease = this.#deps.configuration.LEDGER_LEASE_MS
    if (this.#closed || now - this.#extendedAt < lease / 3) return
    this.#extendedAt = now
    const { usage, cost } = this.streamUse(reader)
    const progress = usage && { provider: this.provider ?? '', usage, cost }
    this.#deps
      .ledgerOf(this.#organizationId)
      .extend(this.#record.callId, lease, progress)
      .catch((error) => logEvent('warn', 'ledger_extend_failed', { error: errorText(error) }))
  }
}
