import { toolName } from '../integrations/catalogue/tool-name.ts'
import { type ChangeScope, changeRights, conflict } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import type { ToolDecision } from '../wire/integrations.ts'
import {
  type CatalogueStateRow,
  type DefinitionState,
  type ListedDefinition,
  selectCatalogueStates,
  selectListedDefinitions,
  updateDefinitions,
} from './integration-tools.store.ts'
import { updateDisabledTools } from './integrations.store.ts'
import { readIntegration } from './integrations.ts'

/** The state of a catalogue, as administrators see it. */
interface CatalogueState {
  connection_id: string | null
  /** `ok`, `stale` while refreshes fail, `empty` before the first good one. */
  state: 'ok' | 'stale' | 'empty'
  tools: number
  protocol: string | null
  refreshed_at: Date | null
  stale_since: Date | null
  failures: number
  error: string | null
  next_refresh_at: Date
}

/** A tool of an integration with the state of its definitions. */
interface ToolState {
  /** Name of the tool at the upstream. */
  name: string
  /** The name under which callers call it. */
  exposed_name: string
  /** `approved`: callers see it. `pending`: it is new. `changed`: it was approved, and is hidden since it changed. */
  state: 'approved' | 'pending' | 'changed' | 'rejected' | 'disabled' | 'removed'
  hash: string
  definition: unknown
  /** The definition that was approved last, where the listed one is another. */
  approved_definition: unknown
  /** Members that differ between the two. */
  changes: Array<{ member: string; before: unknown; after: unknown }>
  decided_by: string | null
  decided_at: Date | null
  seen_at: Date
}

export async function readCatalogues(scope: ChangeScope, integrationId: string): Promise<CatalogueState[]> {
  return (await selectCatalogueStates(scope, integrationId)).map(presentCatalogue)
}

function presentCatalogue(row: CatalogueStateRow): CatalogueState {
  const { protocol } = row
  return {
    connection_id: row.connectionId || null,
    state:
      row.staleSince !== null
        ? row.refreshedAt === null
          ? 'empty'
          : 'stale'
        : row.refreshedAt === null
          ? 'empty'
          : 'ok',
    tools: row.toolCount,
    protocol: protocol && `${protocol.version} (${protocol.era})`,
    refreshed_at: row.refreshedAt,
    stale_since: row.staleSince,
    failures: row.failures,
    error: row.error,
    next_refresh_at: row.nextRefreshAt,
  }
}

/** The tools of an integration, in order of name. @throws ApiError `not_found`. */
export async function readTools(scope: ChangeScope, integrationId: string): Promise<ToolState[]> {
  const integration = await readIntegration(scope, integrationId)
  const rows = await selectListedDefinitions(scope, integrationId)
  const byName = Map.groupBy(rows, ({ name }) => name)
  return [...byName].flatMap(([name, versions]) => {
    const approved = versions.findLast(({ state }) => state === 'approved')
    const listed = versions.filter(({ isListed }) => isListed)
    const shown = listed.length > 0 ? listed : versions.slice(-1)
    const isDisabled = integration.disabledTools.includes(name)
    return shown.map((version) => ({
      name,
      exposed_name: toolName(integration.slug, name),
      state: stateOf(version, approved, isDisabled),
      ...presentVersion(version, approved),
    }))
  })
}

function stateOf(
  { state, isListed }: ListedDefinition,
  approved: ListedDefinition | undefined,
  isDisabled: boolean,
): ToolState['state'] {
  if (!isListed) return 'removed'
  if (state === 'approved') return isDisabled ? 'disabled' : 'approved'
  return state === 'pending' && approved ? 'changed' : state
}

function presentVersion(version: ListedDefinition, approved: ListedDefinition | undefined) {
  const before = approved && approved.hash !== version.hash && version.state !== 'approved' ? approved : null
  return {
    hash: version.hash,
    definition: version.definition,
    approved_definition: before?.definition ?? null,
    changes: before ? differences(before, version) : [],
    decided_by: version.decidedBy,
    decided_at: version.decidedAt,
    seen_at: version.createdAt,
  }
}

/** Members of a definition, and of the request that it becomes, that differ. */
function differences(before: ListedDefinition, after: ListedDefinition): ToolState['changes'] {
  const left: Record<string, unknown> = {
    ...before.definition,
    ...(before.binding && { request: before.binding }),
  }
  const right: Record<string, unknown> = {
    ...after.definition,
    ...(after.binding && { request: after.binding }),
  }
  return [...new Set([...Object.keys(left), ...Object.keys(right)])]
    .filter((member) => JSON.stringify(left[member]) !== JSON.stringify(right[member]))
    .map((member) => ({ member, before: left[member] ?? null, after: right[member] ?? null }))
}

/**
 * Approves or rejects listed definitions: those of the named tools, one of them by its hash, or every pending one. The
 * decision is about the definitions listed when the request came: one that changes meanwhile has another hash, and stays pending.
 * @returns the names that were decided, in order.
 * @throws ApiError `not_found` for a tool that the integration does not have; `unprocessable` when nothing is pending.
 */
export async function decideTools(
  scope: ChangeScope,
  integrationId: string,
  state: 'approved' | 'rejected',
  { tools, hash }: ToolDecision,
): Promise<string[]> {
  await readIntegration(scope, integrationId)
  const rows = await selectListedDefinitions(scope, integrationId)
  const missing = tools?.find((name) => !rows.some((row) => row.name === name))
  if (missing !== undefined) throw notFound('Tool', missing)
  const chosen = rows.filter((row) => isChosen(row, state, { tools, hash }))
  if (chosen.length === 0) throw conflict(`There is no listed definition to be ${state}.`)
  const keys = chosen.map(({ name, hash: version }) => ({ name, hash: version }))
  const { actor, clock } = scope
  const intent = {
    action: state === 'approved' ? 'integration.tools_approved' : 'integration.tools_rejected',
    resource: `integrations/${integrationId}`,
    detail: { count: keys.length, definitions: keys.slice(0, MOST_RECORDED) },
  }
  const decidedBy = actor.administrator ?? actor.userId ?? 'unknown'
  const decided = await changeRights(scope, intent, () =>
    updateDefinitions(scope, integrationId, keys, {
      state,
      decidedBy,
      decidedAt: new Date(clock()),
    }),
  )
  return [...new Set(decided.map(({ name }) => name))].sort()
}

/** Definitions in an audit record, which is stored permanently. */
const MOST_RECORDED = 100

function isChosen(row: ListedDefinition, state: DefinitionState, { tools, hash }: ToolDecision): boolean {
  if (!row.isListed || row.state === state) return false
  if (hash !== undefined && row.hash !== hash) return false
  // Without names, an earlier rejection is kept.
  return tools === undefined ? row.state === 'pending' : tools.includes(row.name)
}

/**
 * Switches tools of an integration off, or on again. A name that the upstream does not have may be switched off: it holds
 * when the tool appears.
 * @returns all names that are switched off now. @throws ApiError `not_found`.
 */
export async function switchTools(
  scope: ChangeScope,
  integrationId: string,
  change: { disable: readonly string[] } | { enable: readonly string[] },
): Promise<string[]> {
  await readIntegration(scope, integrationId)
  const intent = {
    action: 'disable' in change ? 'integration.tools_disabled' : 'integration.tools_enabled',
    resource: `integrations/${integrationId}`,
    detail: { tools: 'disable' in change ? change.disable : change.enable },
  }
  await changeRights(scope, intent, () => updateDisabledTools(scope, integrationId, change))
  return (await readIntegration(scope, integrationId)).disabledTools
}
