import { mayUseTool } from '../identity/integration-rights.ts'
import type { Principal } from '../identity/principal.ts'
import { sha256Hex } from '../lib/crypto.ts'
import type { CallTarget } from './target.ts'

/**
 * Whether a caller may use a target. A model or a tool of an integration needs a grant; a tool of this service is allowed unless
 * its family is switched off.
 */
export function mayUse(
  principal: Pick<Principal, 'models' | 'tools' | 'integrations'>,
  target: CallTarget,
): boolean {
  if (target.kind === 'tool') return !principal.tools.off.includes(target.family)
  if (target.kind === 'integration') return mayUseTool(principal.integrations, target.slug, target.tool)
  return principal.models.all || principal.models.ids.has(target.id)
}

/**
 * A cache key for the set of models that a principal may use: equal for equal sets, however they were granted.
 * @returns 32 hex characters: 128 bits, so that no two sets share a key in practice.
 */
export function grantSetId(principal: Pick<Principal, 'models'>): string {
  const { all, ids } = principal.models
  // Ids cannot hold a quote unescaped in JSON, so no two sets give the same text.
  return sha256Hex(all ? '*' : JSON.stringify([...ids].sort())).slice(0, 32)
}
