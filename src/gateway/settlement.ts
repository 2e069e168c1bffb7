import type { Attempt, CallOutcome, InspectionCounts } from '../governance/audit-record.ts'
import { addUsage, type Usage } from '../governance/credits.ts'
import type { LedgerOf } from '../governance/ledger/ledger.ts'
import { ApiError } from '../lib/api-error.ts'
import type { Clock } from '../lib/clock.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { type CallRecord, emptyOutcome } from './call-record.ts'
import type { CatalogModel } from './catalog/catalog.ts'
import { type CallBounds, estimateUsage, type Metered, metered, NOTHING_METERED } from './metering.ts'
import type { OpenedCall } from './opened-call.ts'
import type { Meter } from './protocols/protocol.ts'
import type { RelayEnd } from './relay-options.ts'

/** Status of a call whose caller left before it ended; never sent, only recorded. */
export const CLIENT_LEFT = 499

export interface SettlementDeps {
  clock: Clock
  ledgerOf: LedgerOf
  configuration: { LEDGER_LEASE_MS: number }
}

export interface SettledCall {
  record: CallRecord
  organizationId: string
  model: CatalogModel
  bounds: CallBounds
  requestBytes: number
  /** Version and findings of the policy that the call was inspected under. */
  policy: () => CallOutcome['dlp']
  /** Called once, when it is known what the call is charged for; null for nothing. */
  onSettled?: ((usage: Usage | null) => void) | undefined
}

/** Closes one opened call in the ledger, once, whatever ends it. `done` resolves when the ledger has it. */
export class Settlement {
  readonly done: Promise<void>
  readonly attempts: Attempt[] = []
  request: InspectionCounts | null = null
  response: InspectionCounts | null = null
  provider: string | null = null
  /** The request left for the upstream that is being tried now, and nothing is known of it yet. */
  sent = false
  /** The ledger has settled the call because its lease ran out: what goes on now is on no account. */
  lapsed = false
  readonly #deps: SettlementDeps
  readonly #record: CallRecord
  readonly #organizationId: string
  readonly #model: CatalogModel
  readonly #bounds: CallBounds
  readonly #requestBytes: number
  readonly #policy: () => CallOutcome['dlp']
  readonly #onSettled: SettledCall['onSettled']
  #finish: () => void = () => {}
  #closed = false
  /** What attempts without a usable answer may be charged for. */
  #lost: Usage | null = null
  #extendedAt: number

  constructor(deps: SettlementDeps, call: SettledCall) {
    this.#deps = deps
    this.#record = call.record
    this.#organizationId = call.organizationId
    this.#model = call.model
    this.#bounds = call.bounds
    this.#requestBytes = call.requestBytes
    this.#policy = call.policy
    this.#onSettled = call.onSettled
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
      ...this.#withLost(use),
      provider: this.provider,
      attempts: this.attempts,
      request: this.request,
      response: this.response,
      dlp: this.#policy(),
    }
    // First: who keeps it has kept it before the ledger can have it.
    this.#onSettled?.(outcome.usage)
    this.#send(outcome).finally(this.#finish)
  }

  /** Ends the call with its stream. */
  closeStream(end: RelayEnd, meter: Meter): void {
    const use = this.streamUse(meter)
    if (end.kind === 'completed') {
      this.close(200, null, use)
    } else if (end.kind === 'client_left') {
      this.#record.flags.push('client_left')
      this.close(CLIENT_LEFT, 'client_left', use)
    } else {
      this.#record.flags.push(`stream_${end.reason}`)
      this.close(200, end.error?.code ?? 'stream_error', use)
    }
  }

  /** A failed close is not lost: the ledger's alarm settles the call when its lease runs out. */
  async #send(outcome: CallOutcome): Promise<void> {
    try {
      await this.#deps.ledgerOf(this.#organizationId).close(this.#record.callId, outcome)
    } catch (error) {
      logEvent('error', 'ledger_close_failed', { call_id: this.#record.callId, error: errorText(error) })
    }
  }

  /** The call as it can be ended without this. @param provider whose route is tried first. */
  opened(provider: string | null): OpenedCall {
    return {
      record: this.#record,
      organizationId: this.#organizationId,
      provider,
      prices: this.#model.prices,
      bounds: this.#bounds,
      requestBytes: this.#requestBytes,
    }
  }

  /** Ends a call that the ledger never opened. */
  abandon(): void {
    this.#closed = true
    this.#finish()
  }

  /** Ends the call with an error that was thrown before there was an answer. */
  fail(error: unknown): void {
    const known = error instanceof ApiError ? error : null
    // A fault of our own may have come after the upstream did its work.
    const charged = known === null && this.sent
    this.close(
      known?.status ?? 500,
      known?.code ?? (known && known.kind !== 'internal' ? known.kind : 'internal_error'),
      charged ? this.inputUse() : NOTHING_METERED,
    )
  }

  /** The caller left before the upstream answered: an upstream that was sent the request has read it. */
  callerLeft(): void {
    this.#record.flags.push('client_left')
    this.close(CLIENT_LEFT, 'client_left', this.sent ? this.inputUse() : NOTHING_METERED)
  }

  /**
   * An upstream took the request and gave no usable answer, so it may charge for what it did. The call pays for it,
   * whoever answers in the end.
   * @param use what is known of it, else the input alone.
   */
  lose(use: Metered = this.inputUse()): void {
    if (use.usage) this.#lost = addUsage(this.#lost, use.usage)
  }

  /** Nothing is taken that was not reserved: beyond it the dearer of the two is what the call pays for. */
  #withLost(use: Metered): Metered {
    if (!this.#lost) return use
    const both = metered(addUsage(use.usage, this.#lost), 'estimated', this.#model)
    if (both.cost <= this.#bounds.reserve) return both
    const lost = metered(this.#lost, 'estimated', this.#model)
    return use.cost >= lost.cost ? use : lost
  }

  /** The input alone, estimated. */
  inputUse(): Metered {
    return metered(estimateUsage(this.#requestBytes, 0, null, this.#bounds), 'estimated', this.#model)
  }

  /** What a stream has used so far: as reported, or estimated where the upstream has not said it all. */
  streamUse(meter: Meter): Metered {
    const reported = meter.usage()
    if (reported?.final) return metered(reported.usage, 'reported', this.#model)
    const usage = estimateUsage(this.#requestBytes, meter.textBytes, reported?.usage ?? null, this.#bounds)
    return metered(usage, 'estimated', this.#model)
  }

  /** What an answer used. */
  answerUse(reported: Metered['usage'], textBytes: number): Metered {
    if (reported) return metered(reported, 'reported', this.#model)
    return metered(estimateUsage(this.#requestBytes, textBytes, null, this.#bounds), 'estimated', this.#model)
  }

  /** Renews the lease of a running call when a third of it has passed, with what was used so far. */
  keepAlive(meter: Meter): void {
    const now = this.#deps.clock()
    const lease = this.#deps.configuration.LEDGER_LEASE_MS
    if (this.#closed || now - this.#extendedAt < lease / 3) return
    this.#extendedAt = now
    const { usage, cost } = this.#withLost(this.streamUse(meter))
    const progress = usage && { provider: this.provider ?? '', usage, cost }
    this.#deps
      .ledgerOf(this.#organizationId)
      .extend(this.#record.callId, lease, progress)
      .then(({ open }) => {
        this.lapsed = !open && !this.#closed
      })
      .catch((error) => logEvent('warn', 'ledger_extend_failed', { error: errorText(error) }))
  }
}
