import type { Database } from '../../../schema/database.ts'
import type { AuditedChange, CallOpening, CallOutcome } from '../../../src/ledger/audit-record.ts'
import type {
  Admission,
  CreditBalance,
  CreditGrant,
  LedgerClient,
  LedgerOf,
} from '../../../src/ledger/contract.ts'
import {
  type ChainHead,
  type ChainLink,
  GENESIS,
  type HeldChain,
  nextLink,
} from '../../../src/ledger/records/chain.ts'
import type { Reflushed } from '../../../src/ledger/records/chain-writer.ts'
import { writeLinks } from '../../../src/ledger/records/flush.store.ts'
import { callText, changeText, openingText, outcomeText } from '../../../src/ledger/records/record-body.ts'
import type { TailAnswer } from '../../../src/ledger/tail/tail.ts'

/** Ledgers without Durable Objects: the real chain and the real flush, held in memory in between. */
export interface MemoryLedgers {
  of(organizationId: string): ReturnType<LedgerOf>
  /** Every change recorded so far, over all organizations, oldest first. */
  changes: AuditedChange[]
  /** Makes every call fail, as an object that cannot be reached does. */
  away: boolean
  /** Makes announcements of an epoch fail. */
  deaf: boolean
  /** The last epoch announced to each; the catalogue's under the deployment's id. */
  epochs: Map<string, number>
  /** Called as each change is recorded. */
  onChange: (change: AuditedChange) => void | Promise<void>
}

export function createMemoryLedgers(database: Database): MemoryLedgers {
  const held = new Map<string, MemoryLedger>()
  const ledgers: MemoryLedgers = {
    changes: [],
    away: false,
    deaf: false,
    epochs: new Map(),
    onChange: () => {},
    of: (organizationId) => {
      const ledger = held.get(organizationId) ?? new MemoryLedger(database, organizationId, ledgers)
      held.set(organizationId, ledger)
      return ledger
    },
  }
  return ledgers
}

class MemoryLedger implements LedgerClient {
  readonly #database: Database
  readonly #organizationId: string
  readonly #ledgers: MemoryLedgers
  #head: ChainHead = GENESIS
  #pending: ChainLink[] = []
  #balance = 0
  #grants = new Set<string>()

  constructor(database: Database, organizationId: string, ledgers: MemoryLedgers) {
    this.#database = database
    this.#organizationId = organizationId
    this.#ledgers = ledgers
  }

  async record(opening: CallOpening, outcome: CallOutcome): Promise<Admission> {
    this.#reach()
    this.#append(opening.callId, callText(openingText(opening), outcomeText(outcome), 0))
    this.#balance -= outcome.cost
    return { kind: 'admitted' }
  }

  async recordChange(change: AuditedChange): Promise<void> {
    this.#reach()
    await this.#ledgers.onChange(change)
    this.#ledgers.changes.push(change)
    this.#append(change.id, changeText(change, null))
  }

  async grantCredits({ id, amount, reason, change }: CreditGrant): Promise<CreditBalance> {
    this.#reach()
    if (!this.#grants.has(id)) {
      this.#grants.add(id)
      this.#balance += amount
      this.#ledgers.changes.push(change)
      this.#append(change.id, changeText(change, { id, amount, reason }))
    }
    return this.balance()
  }

  async balance(): Promise<CreditBalance> {
    this.#reach()
    return { balance: this.#balance, reserved: 0, available: this.#balance }
  }

  async flush(): Promise<{ pending: number }> {
    this.#reach()
    const links = this.#pending
    if (links.length > 0) {
      await writeLinks(this.#database, { organizationId: this.#organizationId, shard: 0 }, links)
    }
    this.#pending = this.#pending.slice(links.length)
    return { pending: this.#pending.length }
  }

  async reflush(): Promise<Reflushed[]> {
    this.#reach()
    return []
  }

  /** Nothing happens here: tests with the runtime read calls live. */
  async tail(): Promise<TailAnswer> {
    return { after: this.#head.sequence, opened: [], closed: [], skipped: false, epoch: null }
  }

  async chains(): Promise<HeldChain[]> {
    this.#reach()
    const [next] = this.#pending
    const { sequence, hash } = this.#head
    if (sequence === 0) return []
    const flushed = next ? { sequence: next.sequence - 1, hash: next.previousHash } : this.#head
    return [
      {
        shard: 0,
        head: { sequence, hash },
        flushed,
        flushedBalance: next ? null : this.#balance,
        pending: next ? { sequence: next.sequence, hash: next.hash } : null,
        keptFrom: null,
      },
    ]
  }

  async learnEpoch(epoch: number): Promise<void> {
    this.#reach()
    if (this.#ledgers.deaf) throw new Error('the ledger does not listen')
    this.#ledgers.epochs.set(this.#organizationId, epoch)
  }

  announceCatalogue(epoch: number): Promise<void> {
    return this.learnEpoch(epoch)
  }

  admit(): Promise<never> {
    throw new Error('no model call is made here')
  }

  check(): Promise<never> {
    throw new Error('no model call is made here')
  }

  close(): Promise<never> {
    throw new Error('no model call is made here')
  }

  extend(): Promise<never> {
    throw new Error('no model call is made here')
  }

  #reach(): void {
    if (this.#ledgers.away) throw new Error('the ledger cannot be reached')
  }

  #append(id: string, content: string): void {
    const link = nextLink({ organizationId: this.#organizationId, shard: 0 }, this.#head, id, content)
    this.#head = { sequence: link.sequence, hash: link.hash }
    this.#pending.push(link)
  }
}
