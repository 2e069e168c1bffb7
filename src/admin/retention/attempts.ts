import { BrokenChainError } from '../../ledger/retention/store-pruning.ts'
import { errorText, logEvent } from '../../lib/log.ts'

/** Parts of one run of a job. One that fails is logged, and the others are made all the same. */
export class Attempts {
  #first: { error: unknown } | null = null

  /**
   * @param part a name for the log. @param organizationId whose rows it removes; null for the deployment.
   * @returns what it returned; null after a failure. A broken chain is logged, and is no failure of the job.
   */
  async make<Result>(
    part: string,
    organizationId: string | null,
    work: () => Promise<Result>,
  ): Promise<Result | null> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof BrokenChainError) {
        logEvent('error', 'retention.chain_broken', { error: errorText(error) })
        return null
      }
      this.#first ??= { error }
      logEvent('error', 'retention.failed', { part, organization: organizationId, error: errorText(error) })
      return null
    }
  }

  /** @throws what the first part that failed has thrown. */
  throwFirst(): void {
    if (this.#first) throw this.#first.error
  }
}
