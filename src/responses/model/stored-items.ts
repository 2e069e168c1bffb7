import type { ResponseObject } from '../../wire/responses.ts'

/** An item as Postgres has it. */
export interface StoredItem {
  id: string
  type: string
  role: string | null
  /** Call id of calls and of their outputs. */
  callId: string | null
  /** The item as JSON, its id included; null when the content store has it under `contentKey`. */
  body: string | null
  contentKey: string | null
}

/** A part of an ordered list of items. */
export interface ItemPageRequest {
  limit: number
  order: 'asc' | 'desc'
  /** Id of the item before the page, in that order. Without it, the page is the first one. */
  after?: string | null | undefined
}

export interface ItemPage {
  items: StoredItem[]
  hasMore: boolean
}

/** An ended response, as its object stores it until it is written to Postgres. */
export interface FinalResponse {
  response: ResponseObject
  /** Policies were applied to the output while it was generated. */
  outputItems: StoredItem[]
  /** See `StoredNumbers`. */
  itemNumbers: number[][]
}
