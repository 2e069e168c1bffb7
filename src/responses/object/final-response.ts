import type { Usage } from '../../ledger/audit-record.ts'
import type { ResponseEmitter } from '../emitter/emitter.ts'
import { sealedItems } from '../emitter/output-items.ts'
import { storedItemOf } from '../items/item-bytes.ts'
import type { ResponseEnd } from '../model/response-end.ts'
import type { FinalResponse } from '../model/stored-items.ts'
import type { Owner } from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'

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
