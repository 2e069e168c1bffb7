import { operationTools } from '../integrations/catalogue/openapi/operation-tools.ts'
import { checkDocument, serverUrl } from '../integrations/catalogue/openapi/read-document.ts'
import { type RefreshDeps, refreshCatalogue } from '../integrations/catalogue/refresh-catalogues.ts'
import type { AuthorizationMethod } from '../integrations/types.ts'
import { MOST_TOOLS } from '../integrations/types.ts'
import { sealClientSecret } from '../integrations/vault/client-secret.ts'
import { type ChangeScope, changeRights, conflict } from '../ledger/changes/audited-change.ts'
import { notFound, unprocessable } from '../lib/api-error.ts'
import { checkEgress, EgressError } from '../lib/safe-fetch.ts'
import { runSlices } from '../lib/slices.ts'
import type { AuthorizationBody, IntegrationCreation, IntegrationUpdate } from '../wire/integrations.ts'
import {
  deleteIntegration,
  type IntegrationRow,
  insertIntegration,
  selectShownIntegration,
  updateIntegration,
} from './integrations.store.ts'

/**
 * Adds an integration to the organization. Tools of a document are there at once; those of a server are read by the first
 * refresh.
 * @throws ApiError `unprocessable` for an address that may not be called; `unprocessable` for a taken slug.
 */
export async function createIntegration(
  deps: RefreshDeps,
  scope: ChangeScope,
  creation: IntegrationCreation,
): Promise<IntegrationRow> {
  const id = crypto.randomUUID()
  const document = creation.kind === 'openapi' ? await checkedDocument(creation.document) : null
  const address = creation.url ?? serverUrl(document ?? {})
  const url = checkUrl('url', address, scope.egressAllow)
  const { method, clientSecret } = authorizationOf(scope, creation.authorization)
  const { kind, slug, approval, price, disabled } = creation
  const detail = { slug, kind, url, authorization: method, approval, price, disabled }
  const intent = { action: 'integration.created', resource: `integrations/${id}`, detail }
  const row = await changeRights(scope, intent, () =>
    insertIntegration(
      scope,
      {
        ...{ id, kind, slug, url, document, authorization: { ...method } },
        displayName: creation.display_name ?? slug,
        description: creation.description ?? '',
        ...(clientSecret !== null && {
          sealedClientSecret: sealClientSecret(scope.vaultRing, id, clientSecret),
        }),
        ...(approval && { approval }),
        ...(price !== undefined && { price }),
        ...(disabled && { disabledAt: new Date(scope.clock()) }),
      },
      kind === 'openapi' || method.kind === 'none',
    ),
  )
  if (kind === 'openapi') await refreshDocument(deps, scope, id)
  return row
}

async function refreshDocument(deps: RefreshDeps, scope: ChangeScope, id: string): Promise<void> {
  const { organizationId } = scope
  await refreshCatalogue(deps, { organizationId, integrationId: id, connectionId: '' }, scope)
}

/** @throws ApiError `not_found` for one of another organization, too. */
export async function readIntegration(scope: ChangeScope, id: string): Promise<IntegrationRow> {
  const row = await selectShownIntegration(scope, id)
  if (row === null) throw notFound('Integration', id)
  return row
}

/**
 * Changes an integration. After a change of its host or authorization, its connections must be connected again:
 * credentials are not sent to a host for which they were not given (`upstreamCredential`).
 * @throws ApiError `not_found`; `unprocessable` for an address that may not be called and for a document that cannot be
 * used; `unprocessable` if another change was stored meanwhile.
 */
export async function changeIntegration(
  deps: RefreshDeps,
  scope: ChangeScope,
  id: string,
  update: IntegrationUpdate,
): Promise<IntegrationRow> {
  const before = await readIntegration(scope, id)
  const url = update.url === undefined ? undefined : checkUrl('url', update.url, scope.egressAllow)
  const authorization = update.authorization && authorizationOf(scope, update.authorization)
  const { approval, price, disabled, display_name: displayName, description } = update
  if (update.document !== undefined && before.kind !== 'openapi') {
    throw unprocessable('document: goes with the kind openapi')
  }
  const document = update.document && (await checkedDocument(update.document))
  const detail = {
    ...{ slug: before.slug, display_name: displayName, url, authorization: authorization?.method },
    ...{ approval, price, disabled, document_replaced: document === undefined ? undefined : true },
  }
  const action = disabled === true ? 'integration.disabled' : 'integration.updated'
  await changeRights(scope, { action, resource: `integrations/${id}`, detail }, async () => {
    const raised = await updateIntegration(scope, id, before, {
      ...(displayName !== undefined && { displayName }),
      ...(description !== undefined && { description }),
      ...(url !== undefined && { url }),
      ...(document !== undefined && { document }),
      ...(approval !== undefined && { approval }),
      ...(price !== undefined && { price }),
      ...(authorization && {
        authorization: { ...authorization.method },
        sealedClientSecret:
          authorization.clientSecret === null
            ? null
            : sealClientSecret(scope.vaultRing, id, authorization.clientSecret),
      }),
      disabled,
    })
    if (raised === null) throw conflict(CHANGED_MEANWHILE)
    return raised
  })
  if (document !== undefined) await refreshDocument(deps, scope, id)
  return readIntegration(scope, id)
}

const CHANGED_MEANWHILE = 'The integration was changed at the same time; look at it again.'

/** Deletes an integration with its connections and grants. @throws ApiError `not_found`. */
export async function removeIntegration(scope: ChangeScope, id: string): Promise<void> {
  const row = await readIntegration(scope, id)
  const intent = { action: 'integration.deleted', resource: `integrations/${id}`, detail: { slug: row.slug } }
  await changeRights(scope, intent, () => deleteIntegration(scope, row))
}

/** @throws ApiError `unprocessable` for a document without an operation that can be a tool, too. */
async function checkedDocument(document: Record<string, unknown>): Promise<Record<string, unknown>> {
  checkDocument(document)
  const { operations, left } = await runSlices(operationTools(document))
  if (operations.length > MOST_TOOLS) {
    throw unprocessable(`document: has ${operations.length} operations, and may have ${MOST_TOOLS}`)
  }
  if (operations.length === 0) {
    throw unprocessable(
      `document: has no operation that can be a tool${left[0] === undefined ? '' : ` (${left[0]})`}`,
    )
  }
  return document
}

function authorizationOf(
  { egressAllow }: ChangeScope,
  body: AuthorizationBody,
): { method: AuthorizationMethod; clientSecret: string | null } {
  if (body.kind === 'header') return { method: { kind: 'header', header: body.header }, clientSecret: null }
  if (body.kind !== 'oauth') return { method: { kind: body.kind }, clientSecret: null }
  const { authorization_server: server, client_id: clientId, client_secret: clientSecret, scopes } = body
  if (clientSecret !== undefined && clientId === undefined) {
    throw unprocessable('authorization.client_secret: needs the client_id that it belongs to')
  }
  const method = {
    kind: 'oauth' as const,
    ...(server !== undefined && {
      authorizationServer: checkUrl('authorization.authorization_server', server, egressAllow),
    }),
    ...(clientId !== undefined && { clientId }),
    ...(scopes !== undefined && { scopes }),
  }
  return { method, clientSecret: clientSecret ?? null }
}

/** Checks an address by the rules of outbound calls. @returns its normal form. */
function checkUrl(member: string, address: string, egressAllow: readonly string[]): string {
  try {
    const url = checkEgress(address, egressAllow)
    if (url.hash !== '') throw new EgressError('a fragment is not allowed')
    return url.href
  } catch (error) {
    if (error instanceof EgressError) throw unprocessable(`${member}: ${error.message}`)
    throw error
  }
}
