import { Hono } from 'hono'
import {
  selectVisibleAgent,
  selectVisibleAgents,
  type VisibleAgent,
} from '../../agents/definitions/visible-agents.store.ts'
import { type CatalogModel, loadCatalog } from '../../gateway/catalog/catalog.ts'
import { grantSetId, mayUse } from '../../governance/access.ts'
import { hasScope } from '../../governance/principal.ts'
import { modelTarget } from '../../governance/target.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import { agentIdOf, agentModel, isAgentModel } from '../../wire/agent-model.ts'
import { MOST_AGENTS } from '../../wire/agents.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { unknownId } from '../validated-request.ts'

/** How long an edge location caches a list; the key changes with the catalogue and with the grants. */
const EDGE_CACHE_SECONDS = 300

/** The models that the caller may use and the agents that it may run (interface: Models), and one of them by its id. */
export const modelRoutes = new Hono<AppEnv>()
  .get('/v1/models', async (context) => {
    const body = await modelList(context)
    const etag = `"${sha256Hex(body).slice(0, 32)}"`
    const headers = {
      etag,
      'cache-control': 'private, no-cache',
      vary: 'Authorization, x-api-key, api-key',
    }
    if (matches(context.req.header('if-none-match'), etag)) return context.body(null, 304, headers)
    return context.body(body, 200, { ...headers, 'content-type': 'application/json' })
  })
  // An id can contain slashes, encoded or not.
  .get('/v1/models/:modelId{.+}', async (context) => {
    const { rights, deps } = context.var
    const id = context.req.param('modelId')
    if (isAgentModel(id)) return context.json(listedAgent(await callableAgent(context, id)))
    const model = (await loadCatalog(deps)).models.get(id)
    if (!model || !mayUse(rights.principal, modelTarget(id))) throw unknownId('Model', id)
    return context.json(listed(model))
  })

const matches = (header: string | undefined, etag: string) =>
  header?.split(',').some((part) => part.trim().replace(/^W\//, '') === etag || part.trim() === '*') ?? false

async function modelList(context: AppContext): Promise<string> {
  const [rights, deps] = [context.get('rights'), context.get('deps')]
  const { principal, catalogueEpoch } = rights
  const { origin } = new URL(context.req.url)
  // Every change of an agent, of a group or of its members raises the epoch of the organization.
  const agents = listsAgents(context) ? `${principal.userId}/${principal.epoch}` : 'none'
  const key = `${origin}/.headgate/models/${principal.organizationId}/${grantSetId(principal)}/${catalogueEpoch}/${agents}`
  const cached = await readEdge(key)
  if (cached) return cached
  const body = await buildList(context)
  deps.waitUntil(writeEdge(key, body))
  return body
}

async function buildList(context: AppContext): Promise<string> {
  const { rights, deps } = context.var
  const { models } = await loadCatalog(deps)
  const usable = [...models.values()].filter(({ id }) => mayUse(rights.principal, modelTarget(id)))
  const { items } = listsAgents(context)
    ? await selectVisibleAgents(deps.database, rights.principal, { limit: MOST_AGENTS, offset: 0 })
    : { items: [] }
  return JSON.stringify({ object: 'list', data: [...usable.map(listed), ...items.map(listedAgent)] })
}

/** Whether a caller can run agents here: the host of chat completions serves no responses. */
const listsAgents = (context: AppContext): boolean =>
  context.get('host') === 'base' && hasScope(context.get('rights').principal, 'agents')

/** The agent that an id of the list stands for. @throws ApiError not_found */
async function callableAgent(context: AppContext, model: string): Promise<VisibleAgent> {
  const { deps, rights } = context.var
  const id = agentIdOf(model).toLowerCase()
  const isListed = isUuid(id) && listsAgents(context)
  const agent = isListed ? await selectVisibleAgent(deps.database, rights.principal, id) : null
  if (agent === null) throw unknownId('Model', model)
  return agent
}

const listedAgent = ({ id, name, createdAt, creatorName }: VisibleAgent) => ({
  ...listed({ id: agentModel(id), created: Math.floor(createdAt.getTime() / 1_000), ownedBy: creatorName }),
  display_name: name,
})

const listed = ({ id, created, ownedBy }: Pick<CatalogModel, 'id' | 'created' | 'ownedBy'>) => ({
  id,
  object: 'model',
  created,
  owned_by: ownedBy,
  // Members of the messages protocol, whose SDKs list models at the same path
  // (https://docs.anthropic.com/en/api/models-list).
  type: 'model',
  display_name: id,
  created_at: new Date(created * 1_000).toISOString(),
})

/** Null also without the Cache API, which a self-hosted workerd may lack. */
async function readEdge(key: string): Promise<string | null> {
  try {
    return (await (await caches.default.match(key))?.text()) ?? null
  } catch {
    return null
  }
}

async function writeEdge(key: string, body: string): Promise<void> {
  const headers = {
    'cache-control': `public, max-age=${EDGE_CACHE_SECONDS}`,
    'content-type': 'application/json',
  }
  try {
    await caches.default.put(key, new Response(body, { headers }))
  } catch {
    // The next list is built again.
  }
}
