import {
  type Administration,
  changeRights,
  conflict,
} from '../../governance/administration/administration.ts'
import { invalidRequest, notFound } from '../../lib/api-error.ts'
import { seal } from '../../lib/crypto.ts'
import { checkEgress, EgressError } from '../../lib/safe-fetch.ts'
import type { AuthorizationBody, IntegrationCreation, IntegrationUpdate } from '../../wire/integrations.ts'
import type { AuthorizationMethod } from '../types.ts'
import {
  deleteIntegration,
  type IntegrationRow,
  insertIntegration,
  selectIntegrations,
  selectShownIntegration,
  updateIntegration,
} from './integrations.store.ts'

export type { IntegrationRow } from './integrations.store.ts'

/** What the secret of an OAuth client is sealed for. */
export const clientSecretContext = (integrationId: string) => `integration-client/${integrationId}`

/**
 * Adds an integration to the organization. Its tools are read by the first refresh.
 * @throws ApiError `invalid_request` for an address that may not be called; `unprocessable` for a taken slug.
 */
export async function createIntegration(
  administration: Administration,
  creation: IntegrationCreation,
): Promise<IntegrationRow> {
  const id = crypto.randomUUID()
  if (creation.kind === 'openapi') throw invalidRequest('OpenAPI documents are not supported yet.')
  const url = checkUrl('url', creation.url, administration.egressAllow)
  const { method, clientSecret } = authorizationOf(administration, creation.authorization)
  const { kind, slug, approval, price, disabled } = creation
  const detail = { slug, kind, url, authorization: method, approval, price, disabled }
  const intent = { action: 'integration.created', resource: `integrations/${id}`, detail }
  return changeRights(administration, intent, () =>
    insertIntegration(
      administration,
      {
        ...{ id, kind, slug, url, authorization: { ...method } },
        displayName: creation.display_name ?? slug,
        description: creation.description ?? '',
        ...(clientSecret !== null && {
          sealedClientSecret: seal(administration.vaultRing, clientSecret, clientSecretContext(id)),
        }),
        ...(approval && { approval }),
        ...(price !== undefined && { price }),
        ...(disabled && { disabledAt: new Date(administration.clock()) }),
      },
      method.kind === 'none',
    ),
  )
}

export const listIntegrations = selectIntegrations

/** @throws ApiError `not_found` for one of another organization, too. */
export async function readIntegration(administration: Administration, id: string): Promise<IntegrationRow> {
  const row = await selectShownIntegration(administration, id)
  if (row === null) throw notFound('Integration', id)
  return row
}

/**
 * Changes an integration. Another host, or another way to authorize, takes effect only for integrations without
 * connections: credentials would be sent to an address that they were not given for.
 * @throws ApiError `not_found`; `invalid_request` for an address that may not be called; `unprocessable` where connections
 * would be sent elsewhere.
 */
export async function changeIntegration(
  administration: Administration,
  id: string,
  update: IntegrationUpdate,
): Promise<IntegrationRow> {
  const before = await readIntegration(administration, id)
  const url = update.url === undefined ? undefined : checkUrl('url', update.url, administration.egressAllow)
  const authorization = update.authorization && authorizationOf(administration, update.authorization)
  const { approval, price, disabled, display_name: displayName, description } = update
  const detail = {
    ...{ slug: before.slug, display_name: displayName, url, authorization: authorization?.method },
    ...{ approval, price, disabled },
  }
  const action = disabled === true ? 'integration.disabled' : 'integration.updated'
  await changeRights(administration, { action, resource: `integrations/${id}`, detail }, async () => {
    const raised = await updateIntegration(administration, id, before, {
      ...(displayName !== undefined && { displayName }),
      ...(description !== undefined && { description }),
      ...(url !== undefined && { url }),
      ...(approval !== undefined && { approval }),
      ...(price !== undefined && { price }),
      ...(authorization && {
        authorization: { ...authorization.method },
        sealedClientSecret:
          authorization.clientSecret === null
            ? null
            : seal(administration.vaultRing, authorization.clientSecret, clientSecretContext(id)),
      }),
      disabled,
    })
    if (raised === null)
      throw conflict('Somebody changed the integration at the same time; look at it again.')
    return raised
  })
  return readIntegration(administration, id)
}

/** Deletes an integration with its connections and grants. @throws ApiError `not_found`. */
export async function removeIntegration(administration: Administration, id: string): Promise<void> {
  const row = await readIntegration(administration, id)
  const intent = { action: 'integration.deleted', resource: `integrations/${id}`, detail: { slug: row.slug } }
  await changeRights(administration, intent, () => deleteIntegration(administration, row))
}

function authorizationOf(
  { egressAllow }: Administration,
  body: AuthorizationBody,
): { method: AuthorizationMethod; clientSecret: string | null } {
  if (body.kind === 'header') return { method: { kind: 'header', header: body.header }, clientSecret: null }
  if (body.kind !== 'oauth') return { method: { kind: body.kind }, clientSecret: null }
  const { authorization_server: server, client_id: clientId, client_secret: clientSecret, scopes } = body
  if (clientSecret !== undefined && clientId === undefined) {
    throw invalidRequest('authorization.client_secret: needs the client_id that it belongs to')
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
export function checkUrl(member: string, address: string, egressAllow: readonly string[]): string {
  try {
    const url = checkEgress(address, egressAllow)
    if (url.hash !== '') throw new EgressError('a fragment is not allowed')
    return url.href
  } catch (error) {
    if (error instanceof EgressError) throw invalidRequest(`${member}: ${error.message}`)
    throw error
  }
}
