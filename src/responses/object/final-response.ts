import type { Usage } from '../../governance/usage.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import type { ResponseEmitter } from '../emitter/emitter.ts'
import type { ResponseEnd } from '../engine/response-end.ts'
import { sealedItems } from '../items/output-items.ts'
import { storedItemOf } from '../items/stored-items.ts'
import type { StoredItem } from '../store/items.store.ts'
import type { Owner } from '../types.ts'
import type { ResponseDeps } from './response-deps.ts'

/** An ended response, as its object stores it until it is written to Postgres. */
export interface FinalResponse {
  response: ResponseObject
  /** Policies were applied to the output while it was generated. */
  outputItems: StoredItem[]
  /** See `StoredNumbers`. */
  itemNumbers: number[][]
}

/** Fixes the final response. It uses no other service, since a response must end also when all of them are unavailable. */
export function finalResponse(
  deps: ResponseDeps,
  owner: Owner,
  emitter: ResponseEmitter,
  end: ResponseEnd,
  usage: Usage | null,
): FinalResponse {
  const completedSeconds = Math.floor(deps.clock() / 1000)
  const response = emitter.end({ ...end, usage, completedSeconds })
  const items = sealedItems(deps, owner, response.output, emitter)
  return { response, outputItems: items.map(storedItemOf), itemNumbers: emitter.itemNumbers }
}
