import type { StoredItem } from './stored-items.ts'
import type { ContextItem } from './types.ts'

/** The context that a response continues, and the items that its request adds. */
export interface ResponseContext {
  /** The conversation that the response is added to; null when it is not stored. */
  conversationId: string | null
  /** Whether the conversation has to be created. */
  creates: boolean
  /** The response whose context is copied into a conversation that is created. */
  forkOf: string | null
  /** The conversation's next position as it was read; undefined for one that is created. */
  position: number | undefined
  previousResponseId: string | null
  /** A response whose items are missing in this context, because it is not written to Postgres yet. */
  writer: string | null
  history: ContextItem[]
  /** New items and referenced ones, in the order of the request. */
  input: ContextItem[]
  /** The items of `input` that were stored before, by their ids. */
  referenced: ReadonlyMap<string, StoredItem>
  /** The stored items of `history`, without their JSON. */
  historyHeads: readonly StoredItem[]
}
