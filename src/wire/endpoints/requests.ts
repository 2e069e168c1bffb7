import { agentCreation, agentListQuery, agentUpdate, runListQuery } from '../agents.ts'
import { callHistogramQuery, callListQuery, callTailQuery } from '../calls.ts'
import {
  connectionCreation,
  connectionListQuery,
  connectionUpdate,
  connectStart,
  shareReplacement,
} from '../connections.ts'
import { policyCreation, policyDryRun, policyTrial, policyUpdate } from '../dlp.ts'
import {
  integrationCreation,
  integrationGrantCreation,
  integrationGrantListQuery,
  integrationListQuery,
  integrationRefresh,
  integrationUpdate,
  toolDecision,
  toolSwitch,
} from '../integrations.ts'
import {
  creditGrant,
  grantCreation,
  grantListQuery,
  groupCreation,
  keyCreation,
  keyListQuery,
  keyRotation,
  keyUpdate,
  organizationCreation,
  organizationListQuery,
  organizationModelsQuery,
  organizationUpdate,
  userCreation,
  userListQuery,
  userUpdate,
} from '../management.ts'
import { pageQuery } from '../management-fields.ts'
import { modelReplacement, providerCreation, providerUpdate } from '../model-catalogue.ts'
import {
  auditQuery,
  auditVerificationQuery,
  checkpointPageQuery,
  checkpointQuery,
  deploymentVerificationQuery,
  exportQuery,
  headsQuery,
  unrecordedPageQuery,
  unrecordedQuery,
  usageEventQuery,
  usageQuery,
} from '../records.ts'
import {
  localMember,
  passkeyRegistration,
  setupCompletion,
  setupToken,
  signInCompletion,
} from '../sign-in.ts'
import { toolSettings } from '../tool-settings.ts'
import { vaultRotation } from '../vault.ts'
import type { EndpointRequest } from './endpoint-request.ts'
import type { EndpointName } from './endpoints.ts'

/**
 * What the endpoints of the management API take, and how they answer. One without an entry takes no query and no body. The schemas of
 * answers are in `answers/`.
 */
const REQUESTS = {
  'setup.show': { body: setupToken, noStore: true },
  'setup.begin': { body: setupToken, noStore: true },
  'setup.finish': { body: setupCompletion, noStore: true },
  'sign-in.begin': { noStore: true },
  'sign-in.finish': { body: signInCompletion, noStore: true },
  'sign-in.local': { body: setupToken, noStore: true },
  'local-members.switch': { body: localMember, noStore: true },
  'passkeys.begin': { noStore: true },
  'passkeys.finish': { body: passkeyRegistration, status: 201, errors: ['unprocessable'] },
  'users.setup-link': { status: 201, errors: ['unprocessable'], noStore: true },
  'organizations.list': { query: organizationListQuery },
  'organizations.create': { body: organizationCreation, status: 201, errors: ['unprocessable'] },
  'organizations.change': { body: organizationUpdate, errors: ['unprocessable'] },
  'users.list': { query: userListQuery },
  'users.create': { body: userCreation, status: 201, errors: ['unprocessable'] },
  'users.change': { body: userUpdate, errors: ['unprocessable'] },
  'users.disable': { errors: ['unprocessable'] },
  'groups.list': { query: pageQuery },
  'groups.create': { body: groupCreation, status: 201, errors: ['unprocessable'] },
  'groups.remove': { errors: ['unprocessable'] },
  'groups.members': { query: pageQuery },
  'keys.list': { query: keyListQuery },
  'keys.create': { body: keyCreation, status: 201, errors: ['unprocessable'], noStore: true },
  'keys.change': { body: keyUpdate },
  'keys.rotate': { body: keyRotation, status: 201, errors: ['unprocessable'], noStore: true },
  'playground-keys.create': { status: 201, errors: ['unprocessable'], noStore: true },
  'organization-models.list': { query: organizationModelsQuery },
  'grants.list': { query: grantListQuery },
  'grants.create': { body: grantCreation, status: 201, errors: ['unprocessable'] },
  'policies.list': { query: pageQuery },
  'policies.create': { body: policyCreation, status: 201, errors: ['unprocessable'] },
  'policies.change': { body: policyUpdate, errors: ['unprocessable'] },
  'policies.versions': { query: pageQuery },
  'policies.test': { body: policyTrial, errors: ['unprocessable'], noStore: true },
  'policies.dry-run': { body: policyDryRun, errors: ['unprocessable'] },
  'tools.replace': { body: toolSettings, errors: ['unprocessable'] },
  'integrations.list': { query: integrationListQuery },
  'integrations.create': { body: integrationCreation, status: 201, errors: ['unprocessable', 'upstream'] },
  'integrations.change': { body: integrationUpdate, errors: ['unprocessable', 'upstream'] },
  'integrations.refresh': { body: integrationRefresh, errors: ['unprocessable'] },
  'integration-tools.approve': { body: toolDecision, errors: ['unprocessable'] },
  'integration-tools.reject': { body: toolDecision, errors: ['unprocessable'] },
  'integration-tools.enable': { body: toolSwitch },
  'integration-tools.disable': { body: toolSwitch },
  'integration-grants.list': { query: integrationGrantListQuery },
  'integration-grants.create': { body: integrationGrantCreation, status: 201, errors: ['unprocessable'] },
  'connections.list': { query: connectionListQuery },
  'connections.create': { body: connectionCreation, status: 201, errors: ['unprocessable', 'upstream'] },
  'connections.show': { errors: ['upstream'] },
  'connections.change': { body: connectionUpdate, errors: ['unprocessable', 'upstream'] },
  'connections.remove': { errors: ['upstream'] },
  'connections.connect': {
    body: connectStart,
    status: 201,
    errors: ['unprocessable', 'upstream'],
    noStore: true,
  },
  'connections.share': { body: shareReplacement, errors: ['unprocessable'] },
  'agents.list': { query: agentListQuery },
  'agents.create': { body: agentCreation, status: 201, errors: ['unprocessable'] },
  'agents.change': { body: agentUpdate, errors: ['unprocessable'] },
  'agents.versions': { query: pageQuery },
  'agents.renew-secret': { noStore: true },
  'runs.list': { query: runListQuery },
  'runs.cancel': { errors: ['unprocessable'] },
  'runs.rerun': { errors: ['unprocessable'] },
  'credits.show': { query: pageQuery },
  'credits.grant': { body: creditGrant, status: 201, errors: ['unprocessable'] },
  'usage.totals': { query: usageQuery },
  'usage.events': { query: usageEventQuery },
  'calls.list': { query: callListQuery },
  'calls.histogram': { query: callHistogramQuery },
  'calls.tail': { query: callTailQuery, stream: true },
  'audit.list': { query: auditQuery },
  'audit-verification.chain': { query: auditVerificationQuery },
  'audit-export.checkpoints': { query: checkpointPageQuery },
  'audit-export.records': { query: exportQuery },
  'audit-export.unrecorded': { query: unrecordedPageQuery },
  'installation-audit.list': { query: auditQuery },
  'installation-audit-verification.chain': { query: deploymentVerificationQuery },
  'installation-audit-verification.heads': { query: headsQuery },
  'installation-audit-verification.unrecorded': { query: unrecordedQuery },
  'installation-audit.checkpoint': { status: 201 },
  'installation-audit-verification.checkpoints': { query: checkpointQuery },
  'installation-audit-export.checkpoints': { query: checkpointPageQuery },
  'installation-audit-export.records': { query: exportQuery },
  'installation-audit-export.unrecorded': { query: unrecordedPageQuery },
  'providers.list': { query: pageQuery },
  'providers.create': { body: providerCreation, status: 201, errors: ['unprocessable'] },
  'providers.change': { body: providerUpdate, errors: ['unprocessable'] },
  'models.list': { query: pageQuery },
  'models.replace': { body: modelReplacement, mayCreate: true, errors: ['unprocessable'] },
  'vault.rotate': { body: vaultRotation },
} satisfies Partial<Record<EndpointName, EndpointRequest>>

export type Requests = typeof REQUESTS

/** What one endpoint takes; nothing where it has no entry. */
export const requestOf = (name: EndpointName): EndpointRequest =>
  (REQUESTS as Partial<Record<EndpointName, EndpointRequest>>)[name] ?? {}
