import type { Database } from '../../../schema/database.ts'
import type { Clock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { LedgerAccount } from '../account/account.ts'
import { DEPLOYMENT_ORGANIZATION_ID, NO_ACTOR } from '../audit-record.ts'
import { raiseEpochs } from '../epochs/epochs.store.ts'
import type { LearnedEpochs } from '../epochs/known-epochs.ts'
import { readChainHead } from './chain.store.ts'
import type { ChainHead, ChainIdentity, ChainLink, KeptFrom } from './chain.ts'
import { writeLinks } from './flush.store.ts'
import { restoreStatedRows } from './stated-rows.store.ts'

/** Action of the record by which a chain states that its records were written to Postgres again. */
const REFLUSHED = 'audit.reflushed'

/**
 * Older records are not written again by themselves: Postgres may lack them because their retention has ended. An
 * administrator can name them.
 */
const RECENT_MS = 8 * 24 * 60 * 60_000

/** Calls wait for it, at most once in a while. */
const RAISE_LIMIT_MS = 2_000
const RAISE_AGAIN_MS = 1_000

/** What an administrator wants to have written again. */
export interface Reflush {
  /** Null for all shards. */
  shard: number | null
  /** The first sequence; null for what Postgres lacks at the end of its chain. */
  from: number | null
  /** The newest epoch of the catalogue that was announced; 0 where it is not known. */
  announced: number
}

/** What is written to Postgres again of one shard. */
export interface Reflushed {
  shard: number
  /** The last record that Postgres had. */
  stored: number
  /** The last one that it had confirmed before. */
  confirmed: number
  /** The ledger's last record. */
  head: number
  /** Records that are written again. */
  again: number
  /** Records that wait to be written, those included. */
  pending: number
  /** Records that neither Postgres nor the ledger has; null without any. */
  lost: { from: number; to: number } | null
  /** Why nothing is written again: Postgres has other records than the ledger, or more. Null when it agrees. */
  conflict: string | null
  keptFrom: KeptFrom | null
  /** Epochs that were raised in Postgres, because the ledger knows higher ones. */
  raised: LearnedEpochs
}

/** Writes the records of one chain to Postgres, and what Postgres has lost of it after a restore. */
export class ChainWriter {
  readonly #database: Database
  readonly #identity: ChainIdentity
  readonly #account: LedgerAccount
  readonly #clock: Clock
  /** Sequence of a record that is written without the one before it, which is lost. */
  #afterGap: number | null = null
  #raiseAgainAt = 0

  constructor(database: Database, identity: ChainIdentity, account: LedgerAccount, clock: Clock) {
    this.#database = database
    this.#identity = identity
    this.#account = account
    this.#clock = clock
  }

  /**
   * Writes consecutive records, and adopts the epochs that Postgres has. Where Postgres has lost records before them, nothing is
   * written and those are pending again.
   * @throws unless Postgres has confirmed it; when it has another chain under this name.
   */
  async write(links: readonly ChainLink[]): Promise<void> {
    const [first] = links
    if (!first) return
    const askedAt = this.#clock()
    const isAfterGap = first.sequence === this.#afterGap
    const epochs = await writeLinks(this.#database, this.#identity, links, isAfterGap)
    if (epochs === null) return this.#recover(links, first)
    if (this.#identity.organizationId === DEPLOYMENT_ORGANIZATION_ID) {
      await restoreStatedRows(this.#database, links)
    }
    this.#account.log.confirmEpochs(epochs, askedAt)
    await this.raiseIfTurnedBack(epochs)
  }

  /**
   * Raises the epochs in Postgres when one that was read there is lower than what the ledger knows: Postgres was restored, unless the
   * reader was slow. Until then every call would have outdated rights. It never rejects.
   * @returns null when none is lower.
   */
  raiseIfTurnedBack({ organization, catalogue }: LearnedEpochs): Promise<void> | null {
    const { stored } = this.#account.epochs
    const isLower = (read: number | null, known: number) => read !== null && read < known
    const isTurnedBack =
      isLower(organization, stored.organization.epoch) || isLower(catalogue, stored.catalogue.epoch)
    if (!isTurnedBack || this.#clock() < this.#raiseAgainAt) return null
    this.#raiseAgainAt = this.#clock() + RAISE_AGAIN_MS
    return withinTime(this.#raiseEpochs(0), RAISE_LIMIT_MS, 'raising epochs').then(
      () => {},
      (error) => logEvent('warn', 'ledger.epochs_not_raised', { error: errorText(error) }),
    )
  }

  async #recover(links: readonly ChainLink[], first: ChainLink): Promise<void> {
    const stored = await readChainHead(this.#database, this.#identity, first.sequence)
    const { organizationId, shard } = this.#identity
    if (stored.sequence === first.sequence - 1) {
      throw new Error(`the chain of ${organizationId}:${shard} differs from what Postgres holds`)
    }
    await this.#raiseEpochs(0)
    // Another write or an administrator was earlier.
    if (this.#account.log.flushed !== first.sequence - 1) return
    const { again } = this.#rewind(stored.sequence, this.#clock() - RECENT_MS)
    if (again === 0) await this.write(links)
  }

  /**
   * Compares Postgres with the log, for an administrator, and raises its epochs.
   * @returns makes pending again what Postgres lacks; called while nothing is being written.
   */
  async prepare({ from, announced }: Reflush): Promise<() => Reflushed> {
    const stored = await readChainHead(this.#database, this.#identity)
    const raised = await this.#raiseEpochs(announced)
    return () => {
      const chain = this.#account.log.chain()
      const { shard, flushed, head, keptFrom } = chain
      const conflict = this.#conflictOf(stored)
      const to = Math.min(stored.sequence, (from ?? Number.POSITIVE_INFINITY) - 1)
      const { again, lost } =
        conflict !== null || to >= flushed.sequence
          ? { again: 0, lost: null }
          : this.#rewind(to, from === null ? this.#clock() - RECENT_MS : 0)
      const places = { stored: stored.sequence, confirmed: flushed.sequence, head: head.sequence }
      return {
        shard,
        ...places,
        again,
        pending: this.#account.log.pending(),
        lost: lostOf(lost, stored),
        conflict,
        keptFrom,
        raised,
      }
    }
  }

  #conflictOf(stored: ChainHead): string | null {
    const { log } = this.#account
    if (stored.sequence > log.chain().head.sequence)
      return 'Postgres has records that the ledger does not have'
    const known = log.hashOf(stored.sequence)
    return known === null || known === stored.hash
      ? null
      : 'Postgres has another record in the place of its last one'
  }

  /** Makes the records after a sequence pending again, and states it in the chain. */
  #rewind(sequence: number, since: number): { again: number; lost: { from: number; to: number } | null } {
    const { log } = this.#account
    const confirmed = log.flushed
    const last = log.rewind(sequence, since)
    const lost = last > sequence ? { from: sequence + 1, to: last } : null
    if (lost) this.#afterGap = last + 1
    const { organizationId, shard } = this.#identity
    const again = confirmed - last
    const places = { sequence, confirmed, again, lostTo: lost?.to ?? null }
    logEvent('error', 'ledger.postgres_behind', { organizationId, shard, ...places })
    if (again > 0) this.#stateReflush({ shard, from: last + 1, to: confirmed, ...(lost && { lost }) })
    return { again, lost }
  }

  #stateReflush(detail: Record<string, unknown>): void {
    const { organizationId, shard } = this.#identity
    const actor = { ...NO_ACTOR, administrator: 'ledger' }
    const resource = `ledger/shards/${shard}`
    const record = { id: newId('change'), requestId: newId('req'), organizationId, at: this.#clock() }
    this.#account.recordChange({ ...record, actor, action: REFLUSHED, resource, detail })
  }

  /** A restored Postgres counts epochs again that callers' rights were read at: it continues above them. */
  async #raiseEpochs(announced: number): Promise<LearnedEpochs> {
    const { organization, catalogue } = this.#account.epochs.stored
    const known = { organization: organization.epoch, catalogue: Math.max(catalogue.epoch, announced) }
    const at = this.#clock()
    const raised = await raiseEpochs(this.#database, this.#identity.organizationId, known)
    this.#account.log.confirmEpochs(raised, at)
    return raised
  }
}

/** Records before the end of Postgres' own chain are not lost, although the ledger has them no more. */
function lostOf(lost: Reflushed['lost'], stored: ChainHead): Reflushed['lost'] {
  if (lost === null || lost.to <= stored.sequence) return null
  return { from: Math.max(lost.from, stored.sequence + 1), to: lost.to }
}
