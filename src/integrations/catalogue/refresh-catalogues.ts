import { type ChangeScope, changeRights } from '../../ledger/changes/audited-change.ts'
import type { LedgerOf } from '../../ledger/contract.ts'
import { ApiError, notFound } from '../../lib/api-error.ts'
import type { Clock } from '../../lib/clock.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { newId } from '../../lib/ids.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { CredentialsUnavailable, type Integration } from '../types.ts'
import type { PinnedDefinition } from './clean-definition.ts'
import { type ListedTools, type ListedToolsDeps, listedTools } from './listed-tools.ts'
import {
  type CatalogueKey,
  type LeasedCatalogue,
  leaseCatalogue,
  leaseDueCatalogues,
  type RefreshedCatalogue,
  reconcileCatalogues,
  selectKnownDefinitions,
  storeChanged,
  updateFailed,
  updateUnchanged,
} from './refresh-catalogues.store.ts'
import { selectApproval, selectIntegration } from './tool-catalogue.store.ts'

export interface RefreshDeps extends ListedToolsDeps {
  clock: Clock
  ledgerOf: LedgerOf
  configuration: ListedToolsDeps['configuration'] & { KEY_PEPPERS: KeyRing }
}

/** The result of a refresh, for the administrator who requested it. */
export type RefreshOutcome =
  | { kind: 'refreshed'; tools: number; added: number; changed: number; removed: number; pending: number }
  | { kind: 'failed'; error: string }
  /** Another job refreshes it at this moment. */
  | { kind: 'busy' }

const REFRESH_MS = 10 * 60_000
/** After the first failure; doubled by each one that follows it. */
const FIRST_RETRY_MS = 60_000
const LONGEST_RETRY_MS = 60 * 60_000
/** Time of a lease in addition to the time of the list: for the credential, and to store the list. */
const STORING_MS = 60_000
/** Upstreams at a time: an invocation has six connections. */
const AT_A_TIME = 5
/** A run ends before the next one begins. */
const RUN_MS = 4 * 60_000

/**
 * Refreshes the catalogues that are due (for `scheduled`). A failure of one upstream is stored with its catalogue, and
 * delays no other by more than twice its time limit: a list is read again with a credential that was renewed for it.
 * @throws the database's error.
 */
export async function refreshDue(deps: RefreshDeps): Promise<void> {
  const begun = deps.clock()
  await reconcileCatalogues(deps.database, new Date(begun))
  while (deps.clock() - begun < RUN_MS) {
    const restingUntil = new Date(deps.clock() + REFRESH_MS)
    const due = { ...leaseTimes(deps), most: AT_A_TIME, restingUntil }
    const { leases, hasMore } = await leaseDueCatalogues(deps.database, due)
    if (!hasMore) return
    await Promise.all(leases.map((lease) => refreshLeased(deps, lease, jobOf(deps, lease))))
  }
}

/**
 * Refreshes one catalogue now, whether it is due or not.
 * @param by the administrator that requested it. @param connectionId empty for an integration without connections.
 * @throws ApiError not_found, and the database's error.
 */
export async function refreshCatalogue(
  deps: RefreshDeps,
  key: CatalogueKey,
  by: ChangeScope = jobOf(deps, key),
): Promise<RefreshOutcome> {
  const lease = await leaseCatalogue(deps.database, key, leaseTimes(deps))
  return lease ? refreshLeased(deps, lease, by) : { kind: 'busy' }
}

function leaseTimes({ clock, configuration }: RefreshDeps) {
  const now = clock()
  return {
    now: new Date(now),
    leasedUntil: new Date(now + configuration.INTEGRATION_LIST_TIMEOUT_MS + STORING_MS),
  }
}

/** The job acts on its own: its changes are audited without a person. */
function jobOf(deps: RefreshDeps, { organizationId }: Pick<CatalogueKey, 'organizationId'>): ChangeScope {
  const { database, ledgerOf, clock, configuration } = deps
  return {
    ...{ database, ledgerOf, clock, organizationId },
    pepperRing: configuration.KEY_PEPPERS,
    vaultRing: configuration.VAULT_KEYS,
    egressAllow: configuration.EGRESS_ALLOW,
    requestId: newId('request'),
    actor: { userId: null, keyId: null, administrator: 'catalogue_refresh', ip: null },
    propagationDelayed: () => {},
  }
}

async function refreshLeased(
  deps: RefreshDeps,
  lease: LeasedCatalogue,
  by: ChangeScope,
): Promise<RefreshOutcome> {
  const now = new Date(deps.clock())
  try {
    const integration = await integrationOf(deps, lease)
    const listed = await listedTools(deps, integration, lease)
    const nextRefreshAt = new Date(deps.clock() + REFRESH_MS)
    return await storeRefreshed(deps, by, lease, integration, listed, { now, nextRefreshAt })
  } catch (error) {
    const reason = reasonOf(error)
    const wait = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(lease.failures, 10))
    const nextRefreshAt = new Date(deps.clock() + wait)
    const { integrationId, organizationId } = lease
    logEvent('warn', 'integration.refresh_failed', { organizationId, integrationId, error: errorText(error) })
    await updateFailed(deps.database, lease, { error: reason, now, nextRefreshAt })
    return { kind: 'failed', error: reason }
  }
}

async function integrationOf(deps: RefreshDeps, { organizationId, integrationId }: CatalogueKey) {
  const integration = await selectIntegration(deps.database, organizationId, { id: integrationId })
  if (!integration) throw notFound('Integration', integrationId)
  return integration
}

/** Why a refresh failed, as administrators see it. */
function reasonOf(error: unknown): string {
  if (error instanceof CredentialsUnavailable) return 'The upstream refuses the credential of the connection.'
  return error instanceof ApiError && error.kind !== 'internal'
    ? error.message
    : 'The catalogue could not be stored.'
}

async function storeRefreshed(
  deps: RefreshDeps,
  by: ChangeScope,
  lease: LeasedCatalogue,
  integration: Integration,
  { definitions, protocol, warning }: ListedTools,
  times: Pick<RefreshedCatalogue, 'now' | 'nextRefreshAt'>,
): Promise<RefreshOutcome> {
  const tools = definitions.map(({ definition, hash }) => ({ name: definition.name, hash }))
  const refreshed = { tools, protocol, warning, ...times }
  const known = await selectKnownDefinitions(deps.database, lease)
  const change = changeOf(lease, definitions, known)
  const outcome = { kind: 'refreshed' as const, ...countsOf(change), tools: definitions.length }
  if (isSame(lease, refreshed)) {
    await updateUnchanged(deps.database, lease, refreshed)
    return { ...outcome, pending: pendingOf(definitions, known) }
  }
  const approval = await selectApproval(deps.database, lease)
  const writtenBy = integration.kind === 'openapi' ? (by.actor.administrator ?? by.actor.userId) : null
  const decidedBy = decisionOf(approval, known.length === 0, writtenBy)
  const state = decidedBy === null ? ('pending' as const) : ('approved' as const)
  const intent = {
    action: 'integration.tools_changed',
    resource: `integrations/${lease.integrationId}`,
    detail: { connection_id: lease.connectionId || null, ...shownChange(change), new_definitions: state },
  }
  await changeRights(by, intent, () =>
    storeChanged(by, lease, refreshed, { definitions: change.definitions, state, decidedBy }),
  )
  const pending = pendingOf(definitions, known) + (state === 'pending' ? change.definitions.length : 0)
  return { ...outcome, pending }
}

interface CatalogueChange {
  /** Names of tools. */
  added: string[]
  changed: string[]
  removed: string[]
  /** Definitions that the integration has not had. */
  definitions: PinnedDefinition[]
}

type KnownDefinition = Awaited<ReturnType<typeof selectKnownDefinitions>>[number]

function changeOf(
  lease: LeasedCatalogue,
  definitions: readonly PinnedDefinition[],
  known: readonly KnownDefinition[],
): CatalogueChange {
  const before = new Map(lease.tools?.map(({ name, hash }) => [name, hash]))
  const now = new Set(definitions.map(({ definition }) => definition.name))
  const knownKeys = new Set(known.map(({ name, hash }) => `${hash} ${name}`))
  return {
    added: [...now].filter((name) => !before.has(name)),
    changed: definitions.flatMap(({ definition: { name }, hash }) =>
      before.has(name) && before.get(name) !== hash ? [name] : [],
    ),
    removed: [...before.keys()].filter((name) => !now.has(name)),
    definitions: definitions.filter(({ definition, hash }) => !knownKeys.has(`${hash} ${definition.name}`)),
  }
}

const countsOf = ({ added, changed, removed }: CatalogueChange) => ({
  added: added.length,
  changed: changed.length,
  removed: removed.length,
})

const MOST_NAMES = 50

/** The change in the form of the audit record, which is stored permanently: counts, and the first names. */
const shownChange = (change: CatalogueChange) => ({
  ...countsOf(change),
  names: {
    added: change.added.slice(0, MOST_NAMES),
    changed: change.changed.slice(0, MOST_NAMES),
    removed: change.removed.slice(0, MOST_NAMES),
  },
})

function pendingOf(definitions: readonly PinnedDefinition[], known: readonly KnownDefinition[]): number {
  const pending = new Set(
    known.flatMap(({ name, hash, state }) => (state === 'pending' ? [`${hash} ${name}`] : [])),
  )
  return definitions.filter(({ definition, hash }) => pending.has(`${hash} ${definition.name}`)).length
}

/**
 * The approver of new definitions; null if a person has to approve them.
 * @param writtenBy the administrator that gave the document of an API, which is a decision of a person already.
 */
function decisionOf(
  approval: 'first' | 'automatic' | 'manual',
  isFirst: boolean,
  writtenBy: string | null,
): string | null {
  if (approval === 'manual') return null
  if (writtenBy !== null) return writtenBy
  if (approval === 'automatic') return 'automatic'
  return approval === 'first' && isFirst ? 'first_catalogue' : null
}

const isSame = (lease: LeasedCatalogue, { tools, protocol }: RefreshedCatalogue): boolean =>
  lease.tools !== null &&
  JSON.stringify(lease.tools.map(({ name, hash }) => [name, hash])) ===
    JSON.stringify(tools.map(({ name, hash }) => [name, hash])) &&
  isSameProtocol(lease.protocol, protocol)

/** jsonb does not keep the order of members. */
const isSameProtocol = (left: LeasedCatalogue['protocol'], right: LeasedCatalogue['protocol']): boolean =>
  left?.era === right?.era &&
  left?.version === right?.version &&
  (left?.era === 'legacy' && left.hasSessions) === (right?.era === 'legacy' && right.hasSessions)
