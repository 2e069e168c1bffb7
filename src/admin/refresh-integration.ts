import {
  type RefreshDeps,
  type RefreshOutcome,
  refreshCatalogue,
} from '../integrations/catalogue/refresh-catalogues.ts'
import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import { conflict } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import { selectActiveConnectionIds } from './integration-tools.store.ts'
import { readIntegration } from './integrations.ts'

/** Catalogues that one request refreshes; the job refreshes the others. */
const MOST_CATALOGUES = 20

/**
 * Refreshes the catalogues of an integration now: one, or all of them up to a number.
 * @param connectionId null for every catalogue. @throws ApiError `not_found`; `unprocessable` where there is none yet.
 */
export async function refreshIntegration(
  deps: RefreshDeps,
  scope: ChangeScope,
  integrationId: string,
  connectionId: string | null,
): Promise<Array<{ connection_id: string | null } & RefreshOutcome>> {
  const integration = await readIntegration(scope, integrationId)
  const isForAll = integration.kind === 'openapi' || integration.authorization.kind === 'none'
  const known = isForAll ? [''] : await selectActiveConnectionIds(scope, integrationId)
  if (connectionId !== null && !known.includes(connectionId)) throw notFound('Connection', connectionId)
  if (known.length === 0) throw conflict('The integration has no connection whose tools could be listed.')
  const { organizationId } = scope
  const outcomes = []
  for (const each of connectionId === null ? known.slice(0, MOST_CATALOGUES) : [connectionId]) {
    const key = { organizationId, integrationId, connectionId: each }
    const outcome = await refreshCatalogue(deps, key, scope)
    outcomes.push({ connection_id: each || null, ...outcome })
  }
  return outcomes
}
