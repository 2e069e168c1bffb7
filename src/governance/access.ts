import { sha256Hex } from '../lib/crypto.ts'
import type { Principal } from './principal.ts'
import type { CallTarget } from './target.ts'

/**
 * Whether the user behind the call was granted a target: a model by its exact id, or by a grant on every model. A grant
 * on models gives no integration.
 */
export function mayUse(principal: Pick<Principal, 'models'>, target: CallTarget): boolean {
  if (target.kind !== 'model') return false
  return principal.models.all || principal.models.ids.has(target.id)
}

/**
 * Names the set of models a principal may use: equal for equal sets, however they were granted.
 * @returns 32 hex characters, for cache keys. 128 bits, because two sets under one name would show one the other's list.
 */
export function grantSetId(principal: Pick<Principal, 'models'>): string {
  const { all, ids } = principal.models
  // Ids cannot hold a quote unescaped in JSON, so no two sets give the same text.
  return sha256Hex(all ? '*' : JSON.stringify([...ids].sort())).slice(0, 32)
}
