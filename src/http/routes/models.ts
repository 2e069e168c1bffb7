import { Hono } from 'hono'
import { grantSetId, mayUse } from '../../calls/access.ts'
import { modelTarget } from '../../calls/target.ts'
import { type CatalogueModel, loadModelCatalogue } from '../../gateway/catalogue/model-catalogue.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { unknownId } from '../validated-request.ts'

/** Time for which an edge location caches a list; the key changes with the catalogue and with the grants. */
const EDGE_CACHE_SECONDS = 300

/**
 * The models that the caller may use (interface: Models), and one of them by its id. Agents are not among them, because an
 * id of the list can be called on chat completions, responses and messages (interface: General conventions).
 */
export const modelListRoutes = new Hono<AppEnv>()
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
    const model = (await loadModelCatalogue(deps)).models.get(id)
    if (!model || !mayUse(rights.principal, modelTarget(id))) throw unknownId('Model', id)
    return context.json(listed(model))
  })

const matches = (header: string | undefined, etag: string) =>
  header?.split(',').some((part) => part.trim().replace(/^W\//, '') === etag || part.trim() === '*') ?? false

async function modelList(context: AppContext): Promise<string> {
  const [rights, deps] = [context.get('rights'), context.get('deps')]
  const { principal, catalogueEpoch } = rights
  const { origin } = new URL(context.req.url)
  const key = `${origin}/.headgate/models/${principal.organizationId}/${grantSetId(principal)}/${catalogueEpoch}`
  const cached = await readEdge(key)
  if (cached) return cached
  const body = await buildList(context)
  deps.waitUntil(writeEdge(key, body))
  return body
}

async function buildList(context: AppContext): Promise<string> {
  const { rights, deps } = context.var
  const { models } = await loadModelCatalogue(deps)
  const usable = [...models.values()].filter(({ id }) => mayUse(rights.principal, modelTarget(id)))
  return JSON.stringify({ object: 'list', data: usable.map(listed) })
}

const listed = ({ id, created, ownedBy }: Pick<CatalogueModel, 'id' | 'created' | 'ownedBy'>) => ({
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
