/**
 * The endpoints of the management API: method, path, permission and one line of text of each. A route that is not in this table does
 * not exist. Plain data without schemas, so that a browser can load it; `contracts.ts` has the schemas of each endpoint.
 */

import type { Permission } from './permissions.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

export interface Endpoint {
  method: Method
  /** Below `/api`, with parameters in braces. */
  path: string
  /** The right that a caller needs; null for an endpoint that anyone may call. */
  permission: Permission | null
  /** What it does, as one sentence. */
  text: string
}

const get = define('GET')
const post = define('POST')
const put = define('PUT')
const remove = define('DELETE')

const ORGANIZATION = '/organizations/{organizationId}'
const IDENTITY_PROVIDER = `${ORGANIZATION}/identity-provider` as const
const USER = `${ORGANIZATION}/users/{userId}` as const
const GROUP = `${ORGANIZATION}/groups/{groupId}` as const
const KEY = `${ORGANIZATION}/keys/{keyId}` as const
const POLICY = `${ORGANIZATION}/dlp/policies/{policyId}` as const
const INTEGRATION = `${ORGANIZATION}/integrations/{integrationId}` as const
const CONNECTION = `${ORGANIZATION}/connections/{connectionId}` as const
const AGENT = `${ORGANIZATION}/agents/{agentId}` as const
const RUN = `${ORGANIZATION}/runs/{runId}` as const

export const ENDPOINTS = {
  'setup.show': post('/setup', null, 'Shows whom a setup link is for, and how it can be used.'),
  'setup.begin': post('/setup/passkey/begin', null, 'Begins to register the passkey of a setup link.'),
  'setup.finish': post('/setup/passkey/finish', null, 'Registers the passkey of a setup link, and signs in.'),
  'sign-in.begin': post('/sign-in/passkey/begin', null, 'Begins to sign in with a passkey.'),
  'sign-in.finish': post('/sign-in/passkey/finish', null, 'Signs in with a passkey.'),
  'sign-in.methods': get('/sign-in/methods', null, 'Shows the ways to sign in that this gateway has.'),
  'sign-in.oidc-begin': post(
    '/sign-in/oidc/begin',
    null,
    "Begins to sign in with an account of an organization's identity provider.",
  ),
  'sign-in.local': post('/sign-in/local', null, 'Signs in to a local system with its start token, once.'),
  'me.show': get('/me', 'session.read', 'Shows the user of the session with its permissions.'),
  'me.sign-out': post('/me/sign-out', 'session.end', 'Ends the session.'),
  'sessions.list': get('/me/sessions', 'session.read', 'Lists the open sessions of the user.'),
  'sessions.end': remove('/me/sessions/{sessionId}', 'session.end', 'Ends a session of the user.'),
  'passkeys.list': get('/me/passkeys', 'passkey.read', 'Lists the passkeys of the user.'),
  'passkeys.begin': post('/me/passkeys/begin', 'passkey.create', 'Begins to register another passkey.'),
  'passkeys.finish': post('/me/passkeys/finish', 'passkey.create', 'Registers another passkey.'),
  'passkeys.remove': remove('/me/passkeys/{passkeyId}', 'passkey.end', 'Removes a passkey of the user.'),

  'local-members.list': get(
    '/me/local-members',
    'session.read',
    'Lists the members that a session of a local system can become.',
  ),
  'local-members.switch': post(
    '/me/local-members/switch',
    'session.read',
    'Signs in as another member of a local system.',
  ),

  'organizations.list': get('/organizations', 'organizations.read', 'Lists the organizations.'),
  'organizations.create': post('/organizations', 'installation.organizations', 'Creates an organization.'),
  'organizations.show': get(ORGANIZATION, 'organizations.read', 'Shows an organization.'),
  'organizations.change': put(
    ORGANIZATION,
    'organizations.change',
    'Changes the given members of an organization.',
  ),
  'retention.show': get(
    `${ORGANIZATION}/retention`,
    'retention.read',
    'Shows how long an organization keeps its rows.',
  ),
  'retention.replace': put(
    `${ORGANIZATION}/retention`,
    'retention.change',
    'Replaces how long an organization keeps its rows.',
  ),
  'identity-provider.show': get(
    IDENTITY_PROVIDER,
    'sso.read',
    'Shows with whose accounts the members of an organization sign in.',
  ),
  'identity-provider.replace': put(
    IDENTITY_PROVIDER,
    'sso.change',
    'Sets the identity provider of an organization, after a test of its discovery.',
  ),
  'identity-provider.remove': remove(
    IDENTITY_PROVIDER,
    'sso.change',
    'Removes the identity provider: its accounts sign in no more.',
  ),

  'users.list': get(`${ORGANIZATION}/users`, 'users.read', 'Lists the users of an organization.'),
  'users.create': post(`${ORGANIZATION}/users`, 'users.create', 'Adds a user to an organization.'),
  'users.show': get(USER, 'users.read', 'Shows a user of an organization.'),
  'users.change': put(USER, 'users.change', 'Changes the given members of a user.'),
  'users.disable': remove(USER, 'users.disable', 'Disables a user: its keys fail from the next call on.'),
  'users.setup-link': post(
    `${USER}/setup-link`,
    'users.setup-link',
    'Makes a link with which a user registers its first passkey; the answer is the only one that holds it.',
  ),
  'users.entitle': put(`${USER}/entitlements/{entitlement}`, 'users.entitle', 'Gives a user an entitlement.'),
  'users.withdraw': remove(
    `${USER}/entitlements/{entitlement}`,
    'users.entitle',
    'Takes an entitlement from a user.',
  ),

  'erasures.create': post(
    `${USER}/erase`,
    'users.erase',
    'Disables a user, and begins to erase its data in the organization.',
  ),
  'erasures.list': get(
    `${USER}/erasures`,
    'users.erase',
    'Lists the erasures of a user, with their reports.',
  ),
  'erasures.show': get(
    `${USER}/erasures/{erasureId}`,
    'users.erase',
    'Shows how far the erasure of a user is, and what it has erased.',
  ),
  'users.export': get(
    `${USER}/export`,
    'users.export',
    'Exports the data of a user in the organization, one JSON object a line.',
  ),

  'groups.list': get(`${ORGANIZATION}/groups`, 'groups.read', 'Lists the groups of an organization.'),
  'groups.create': post(`${ORGANIZATION}/groups`, 'groups.change', 'Creates a group.'),
  'groups.show': get(GROUP, 'groups.read', 'Shows a group.'),
  'groups.remove': remove(GROUP, 'groups.change', 'Removes a group with its grants.'),
  'groups.members': get(`${GROUP}/members`, 'groups.read', 'Lists the members of a group.'),
  'groups.add': put(`${GROUP}/members/{userId}`, 'groups.change', 'Adds a user to a group.'),
  'groups.withdraw': remove(`${GROUP}/members/{userId}`, 'groups.change', 'Takes a user out of a group.'),

  'keys.list': get(`${ORGANIZATION}/keys`, 'keys.read', 'Lists the API keys of an organization.'),
  'keys.create': post(
    `${ORGANIZATION}/keys`,
    'keys.create',
    'Creates an API key; the answer is the only one that holds it.',
  ),
  'keys.show': get(KEY, 'keys.read', 'Shows an API key, without its secret.'),
  'keys.change': put(KEY, 'keys.change', 'Changes the label or the compatibility of an API key.'),
  'keys.rotate': post(
    `${KEY}/rotate`,
    'keys.rotate',
    'Creates an API key in the place of another one, which works on for a time.',
  ),
  'keys.revoke': remove(KEY, 'keys.revoke', 'Revokes an API key: it fails from the next call on.'),
  'playground-keys.create': post(
    `${ORGANIZATION}/playground-keys`,
    'playground.use',
    'Creates a key with which the page of a session calls models; it ends with the session, at most ten minutes later.',
  ),

  'organization-models.list': get(
    `${ORGANIZATION}/models`,
    'models.read',
    'Lists the models that an organization can call, or those that a user may use, with the rights to them.',
  ),
  'grants.list': get(`${ORGANIZATION}/grants`, 'models.read', 'Lists the rights to use models.'),
  'grants.create': post(`${ORGANIZATION}/grants`, 'models.grant', 'Gives a right to use a model.'),
  'grants.remove': remove(
    `${ORGANIZATION}/grants/{grantId}`,
    'models.grant',
    'Takes a right to use a model.',
  ),

  'detectors.list': get('/dlp/detectors', 'policies.read', 'Lists the built-in detectors.'),
  'policies.list': get(
    `${ORGANIZATION}/dlp/policies`,
    'policies.read',
    'Lists the policies of an organization.',
  ),
  'policies.create': post(`${ORGANIZATION}/dlp/policies`, 'policies.change', 'Creates a policy.'),
  'policies.show': get(POLICY, 'policies.read', 'Shows a policy in its current version.'),
  'policies.change': put(POLICY, 'policies.change', 'Makes the next version of a policy.'),
  'policies.remove': remove(POLICY, 'policies.change', 'Removes a policy.'),
  'policies.versions': get(
    `${POLICY}/versions`,
    'policies.read',
    'Lists the versions of a policy, newest first.',
  ),
  'policies.version': get(`${POLICY}/versions/{version}`, 'policies.read', 'Shows a version of a policy.'),
  'policies.test': post(
    `${ORGANIZATION}/dlp/test`,
    'policies.test',
    'Applies a policy to a text; nothing is stored.',
  ),
  'policies.dry-run': post(
    `${ORGANIZATION}/dlp/dry-run`,
    'policies.test',
    'Counts the findings of a policy in samples.',
  ),

  'tools.show': get(`${ORGANIZATION}/tools`, 'tools.read', 'Shows the rules for hosted tools.'),
  'tools.replace': put(`${ORGANIZATION}/tools`, 'tools.change', 'Replaces the rules for hosted tools.'),

  'integrations.list': get(`${ORGANIZATION}/integrations`, 'integrations.read', 'Lists the integrations.'),
  'integrations.create': post(
    `${ORGANIZATION}/integrations`,
    'integrations.change',
    'Creates an integration.',
  ),
  'integrations.show': get(INTEGRATION, 'integrations.read', 'Shows an integration with its catalogues.'),
  'integrations.change': put(
    INTEGRATION,
    'integrations.change',
    'Changes the given members of an integration.',
  ),
  'integrations.remove': remove(
    INTEGRATION,
    'integrations.change',
    'Removes an integration with its connections.',
  ),
  'integrations.refresh': post(
    `${INTEGRATION}/refresh`,
    'integrations.change',
    'Reads the tools of an integration again.',
  ),
  'integration-tools.list': get(
    `${INTEGRATION}/tools`,
    'integrations.read',
    'Lists the tools of an integration.',
  ),
  'integration-tools.approve': post(
    `${INTEGRATION}/tools/approve`,
    'integrations.approve',
    'Approves definitions of tools.',
  ),
  'integration-tools.reject': post(
    `${INTEGRATION}/tools/reject`,
    'integrations.approve',
    'Rejects definitions of tools.',
  ),
  'integration-tools.enable': post(
    `${INTEGRATION}/tools/enable`,
    'integrations.change',
    'Switches tools on.',
  ),
  'integration-tools.disable': post(
    `${INTEGRATION}/tools/disable`,
    'integrations.change',
    'Switches tools off.',
  ),

  'integration-grants.list': get(
    `${ORGANIZATION}/integration-grants`,
    'integrations.read',
    'Lists the rights to use tools.',
  ),
  'integration-grants.create': post(
    `${ORGANIZATION}/integration-grants`,
    'integrations.grant',
    'Gives a right to use tools.',
  ),
  'integration-grants.remove': remove(
    `${ORGANIZATION}/integration-grants/{grantId}`,
    'integrations.grant',
    'Takes a right to use tools.',
  ),

  'connections.list': get(`${ORGANIZATION}/connections`, 'connections.read', 'Lists the connections.'),
  'connections.create': post(`${ORGANIZATION}/connections`, 'connections.create', 'Creates a connection.'),
  'connections.show': get(
    CONNECTION,
    'connections.read',
    'Shows a connection and its last attempt to connect.',
  ),
  'connections.change': put(CONNECTION, 'connections.change', 'Changes the given members of a connection.'),
  'connections.remove': remove(CONNECTION, 'connections.remove', 'Removes a connection with its credential.'),
  'connections.connect': post(
    `${CONNECTION}/connect`,
    'connections.connect',
    'Begins to connect an account.',
  ),
  'connections.share': put(
    `${CONNECTION}/shares/{groupId}`,
    'connections.share',
    'Shares a connection with a group.',
  ),
  'connections.unshare': remove(
    `${CONNECTION}/shares/{groupId}`,
    'connections.share',
    'Ends a share of a connection.',
  ),

  'agents.list': get(`${ORGANIZATION}/agents`, 'agents.read', 'Lists the agents of an organization.'),
  'agents.create': post(`${ORGANIZATION}/agents`, 'agents.create', 'Creates an agent.'),
  'agents.show': get(AGENT, 'agents.read', 'Shows an agent with its definition and triggers.'),
  'agents.change': put(AGENT, 'agents.change', 'Makes the next version of an agent.'),
  'agents.remove': remove(AGENT, 'agents.remove', 'Removes an agent; its runs remain.'),
  'agents.versions': get(`${AGENT}/versions`, 'agents.read', 'Lists the versions of an agent, newest first.'),
  'agents.version': get(`${AGENT}/versions/{version}`, 'agents.read', 'Shows a version of an agent.'),
  'agents.renew-secret': post(
    `${AGENT}/triggers/{trigger}/secret`,
    'agents.change',
    'Makes a new secret of a webhook.',
  ),
  'runs.list': get(`${AGENT}/runs`, 'runs.read', 'Lists the runs of an agent, newest first.'),
  'runs.show': get(RUN, 'runs.read', 'Shows a run with its attempts and verdicts.'),
  'runs.cancel': post(`${RUN}/cancel`, 'runs.cancel', 'Cancels a run that is in progress.'),
  'runs.rerun': post(`${RUN}/rerun`, 'runs.rerun', 'Runs the failed step of a run again.'),

  'credits.show': get(`${ORGANIZATION}/credits`, 'credits.read', 'Shows the balance and its newest entries.'),
  'credits.grant': post(
    `${ORGANIZATION}/credits`,
    'credits.grant',
    'Adds micro-credits to the balance, or takes some.',
  ),
  'usage.totals': get(`${ORGANIZATION}/usage`, 'usage.read', 'Sums usage by model, key, user or day.'),
  'usage.events': get(
    `${ORGANIZATION}/usage/events`,
    'usage.read',
    'Lists the usage of single calls, newest first.',
  ),

  'calls.list': get(
    `${ORGANIZATION}/calls`,
    'calls.read',
    'Lists calls, newest first. A page with few calls may be followed by others.',
  ),
  'calls.histogram': get(
    `${ORGANIZATION}/calls/histogram`,
    'calls.read',
    'Counts calls of a period by time and outcome.',
  ),
  'calls.tail': get(
    `${ORGANIZATION}/calls/tail`,
    'calls.read',
    'Streams calls as they are admitted and end, for ten minutes.',
  ),
  'calls.show': get(
    `${ORGANIZATION}/calls/{callId}`,
    'calls.read',
    'Shows a call with its record. The view of the call of another user is recorded.',
  ),
  'find.list': get(
    `${ORGANIZATION}/find`,
    'overview.read',
    'Finds what a text names: calls, responses and runs by their id, others also by a part of their name.',
  ),
  'overview.show': get(
    `${ORGANIZATION}/overview`,
    'calls.read',
    'Shows how calls are going: of today, UTC, and of the last 24 hours.',
  ),
  'attention.list': get(
    `${ORGANIZATION}/attention`,
    'overview.read',
    'Lists what needs somebody: failed runs, refused connections, keys that expire, tools to approve, credits that are used up.',
  ),
  'audit.list': get(
    `${ORGANIZATION}/audit`,
    'audit.read',
    'Lists audit records, newest first. The view is recorded.',
  ),
  'audit.chains': get(`${ORGANIZATION}/audit/chains`, 'audit.verify', 'Lists the chains of an organization.'),
  'audit-verification.chain': get(
    `${ORGANIZATION}/audit/verify`,
    'audit.verify',
    'Verifies a page of a chain.',
  ),
  'audit-export.heads': get(
    `${ORGANIZATION}/audit/export/heads`,
    'audit.export',
    'Exports the heads of the chains.',
  ),
  'audit-export.checkpoints': get(
    `${ORGANIZATION}/audit/export/checkpoints`,
    'audit.export',
    'Exports checkpoints.',
  ),
  'audit-export.records': get(
    `${ORGANIZATION}/audit/export/records`,
    'audit.export',
    'Exports records of a chain.',
  ),
  'audit-export.unrecorded': get(
    `${ORGANIZATION}/audit/export/unrecorded`,
    'audit.export',
    'Exports rows of usage and credits without a record.',
  ),
  'ledger.flush': post(
    `${ORGANIZATION}/ledger/flush`,
    'ledger.flush',
    'Writes pending records to the database.',
  ),

  'installation-audit.list': get(
    '/audit',
    'installation.audit',
    "Lists the installation's own audit records.",
  ),
  'installation-audit.chains': get(
    '/audit/chains',
    'installation.audit',
    'Lists the chains of all organizations.',
  ),
  'installation-audit-verification.chain': get(
    '/audit/verify',
    'installation.audit',
    'Verifies a page of any chain.',
  ),
  'installation-audit-verification.heads': get(
    '/audit/heads',
    'installation.audit',
    'Compares chains with their ledger.',
  ),
  'installation-audit-verification.unrecorded': get(
    '/audit/unrecorded',
    'installation.audit',
    'Finds rows without a record.',
  ),
  'installation-audit.checkpoint': post(
    '/audit/checkpoints',
    'installation.audit',
    'Stores the heads of all chains.',
  ),
  'installation-audit-verification.checkpoints': get(
    '/audit/checkpoints/verify',
    'installation.audit',
    'Verifies checkpoints.',
  ),
  'installation-audit-export.heads': get(
    '/audit/export/heads',
    'installation.audit-export',
    'Exports the heads of the chain.',
  ),
  'installation-audit-export.checkpoints': get(
    '/audit/export/checkpoints',
    'installation.audit-export',
    'Exports checkpoints.',
  ),
  'installation-audit-export.records': get(
    '/audit/export/records',
    'installation.audit-export',
    'Exports records of the chain.',
  ),
  'installation-audit-export.unrecorded': get(
    '/audit/export/unrecorded',
    'installation.audit-export',
    'Exports rows of usage and credits without a record.',
  ),
  'installation-ledger.flush': post(
    '/ledger/flush',
    'installation.audit',
    'Writes pending records of the installation.',
  ),
  'installation-ledger.check': get(
    '/ledger/check',
    'installation.audit',
    'Compares the ends of chains and the balances of a ledger with the database.',
  ),
  'installation-ledger.reflush': post(
    '/ledger/reflush',
    'installation.audit',
    'Has a ledger write again what the database has lost, after it was restored.',
  ),

  'providers.list': get('/providers', 'installation.catalogue', 'Lists the providers.'),
  'providers.create': post('/providers', 'installation.catalogue-change', 'Creates a provider.'),
  'providers.show': get(
    '/providers/{providerId}',
    'installation.catalogue',
    'Shows a provider with its health.',
  ),
  'providers.change': put(
    '/providers/{providerId}',
    'installation.catalogue-change',
    'Changes the given members of a provider.',
  ),
  'providers.disable': remove(
    '/providers/{providerId}',
    'installation.catalogue-change',
    'Disables a provider.',
  ),
  'models.list': get('/models', 'installation.catalogue', 'Lists the models of the catalogue.'),
  'models.show': get('/models/{modelId}', 'installation.catalogue', 'Shows a model of the catalogue.'),
  'models.replace': put('/models/{modelId}', 'installation.catalogue-change', 'Creates or replaces a model.'),
  'models.disable': remove('/models/{modelId}', 'installation.catalogue-change', 'Disables a model.'),
  'vault.rotate': post(
    '/vault/rotate',
    'installation.vault',
    'Seals a page of secrets under the current key.',
  ),
} satisfies Record<string, Endpoint>

export type EndpointName = keyof typeof ENDPOINTS

function define<const Verb extends Method>(method: Verb) {
  return <const Path extends string>(path: Path, permission: Permission | null, text: string) => ({
    method,
    path,
    permission,
    text,
  })
}
