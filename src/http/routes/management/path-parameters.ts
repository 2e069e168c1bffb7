import { invalidRequest, notFound } from '../../../lib/api-error.ts'
import { isConnectionId } from '../../../wire/connections.ts'
import type { Endpoint } from '../../../wire/endpoints/endpoints.ts'
import { ENTITLEMENTS } from '../../../wire/management.ts'
import { isModelId, isUuid } from '../../../wire/management-fields.ts'
import type { AppContext } from '../../context.ts'
import { unknownId } from '../../validated-request.ts'

/** A parameter of a path: the entity that it names, and its value; null for a text that can name nothing. */
interface PathParameter<Value> {
  entity: string
  parse: (text: string) => Value | null
}

const matching =
  (isId: (text: string) => boolean) =>
  (text: string): string | null =>
    isId(text) ? text : null

const uuidOf = (entity: string) => ({ entity, parse: matching(isUuid) })

const PARAMETERS = {
  organizationId: uuidOf('Organization'),
  userId: uuidOf('User'),
  groupId: uuidOf('Group'),
  grantId: uuidOf('Grant'),
  policyId: uuidOf('Policy'),
  providerId: uuidOf('Provider'),
  integrationId: uuidOf('Integration'),
  agentId: uuidOf('Agent'),
  runId: uuidOf('Run'),
  callId: { entity: 'Call', parse: matching((text) => /^[0-9A-Za-z_-]{1,100}$/.test(text)) },
  keyId: { entity: 'Key', parse: matching((text) => /^[0-9A-Za-z]{1,40}$/.test(text)) },
  passkeyId: uuidOf('Passkey'),
  erasureId: { entity: 'Erasure', parse: matching((text) => /^erasure_[0-9A-Za-z]{22}$/.test(text)) },
  sessionId: { entity: 'Session', parse: matching((text) => /^[0-9A-Za-z]{12}$/.test(text)) },
  connectionId: { entity: 'Connection', parse: matching(isConnectionId) },
  modelId: { entity: 'Model', parse: matching(isModelId) },
  entitlement: { entity: 'Entitlement', parse: (text) => ENTITLEMENTS.find((name) => name === text) ?? null },
  // The name is looked up in the agent.
  trigger: { entity: 'Trigger', parse: (text) => text },
  // From 1 to the largest integer of Postgres.
  version: { entity: 'Version', parse: (text) => (/^[1-9]\d{0,8}$/.test(text) ? Number(text) : null) },
} satisfies Record<string, PathParameter<unknown>>

type ParameterName = keyof typeof PARAMETERS

type NamesIn<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never

/** The parameters of a path with their values. */
export type PathParameters<Path extends string> = {
  [Name in NamesIn<Path> & ParameterName]: NonNullable<ReturnType<(typeof PARAMETERS)[Name]['parse']>>
}

/**
 * The parameters in the path of a request.
 * @throws ApiError `not_found` for text that can be no id of anything; `invalid_request` for the id of a model that a request
 * would create.
 */
export function pathParameters({ req }: AppContext, { path, method }: Endpoint): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g)) {
    const text = req.param(name) ?? ''
    const { entity, parse } = PARAMETERS[name as ParameterName]
    const value = parse(text)
    if (value === null) throw refusal(entity, text, method)
    values[name] = value
  }
  return values
}

function refusal(entity: string, text: string, method: string) {
  if (entity === 'Model' && method === 'PUT') {
    return invalidRequest('The model id must be letters, digits and . _ : @ / -, and not begin with agent/.')
  }
  return entity === 'Version' ? notFound(entity, text.slice(0, 20)) : unknownId(entity, text)
}
