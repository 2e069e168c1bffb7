/** An upstream refused a turn, or failed during it. `message` may be sent to callers: the gateway's credential is cut out. */
export class TurnFailure extends Error {
  /** Status of the upstream's answer; null when it failed after its beginning. */
  readonly status: number | null
  readonly code: string
  readonly retryAfterSeconds?: number

  constructor(message: string, known: { status: number | null; code: string; retryAfterSeconds?: number }) {
    super(message)
    this.name = 'TurnFailure'
    this.status = known.status
    this.code = known.code
    if (known.retryAfterSeconds !== undefined) this.retryAfterSeconds = known.retryAfterSeconds
  }
}
