import {
  type CloudflareAnswer,
  type CloudflareState,
  notFound,
  presentVersion,
  type UploadMetadata,
} from './cloudflare-state.ts'

export interface ApiRequest {
  method: string
  /** Without the query. */
  path: string
  headers: Headers
  body: Buffer
}

export const ACCOUNT = '0123456789abcdef0123456789abcdef'
export const CLOUDFLARE_TOKEN = 'cloudflare-token-of-the-tests'

type Handler = (names: string[], request: ApiRequest) => CloudflareAnswer | Promise<CloudflareAnswer>

const ok = (result: unknown): CloudflareAnswer => ({ status: 200, result })
const jsonOf = <Body>({ body }: ApiRequest): Body => JSON.parse(body.toString()) as Body

/** The paths that wrangler and the deployment use; `:name` stands for a part. Every other one is unknown. */
export function cloudflareRoutes(state: CloudflareState): Record<string, Handler> {
  const account = `/accounts/${ACCOUNT}`
  const script = `${account}/workers/scripts/:name`
  return {
    'GET /user/tokens/verify': () => ok({ id: 'token', status: 'active' }),
    'GET /user': () => ok({ email: 'a@example.com' }),
    'GET /accounts': () => ok([{ id: ACCOUNT, name: 'Acme' }]),
    'GET /memberships': () => ok([]),
    [`GET ${account}`]: () => ok({ id: ACCOUNT, name: 'Acme' }),
    ...bucketRoutes(state, account),
    ...domainRoutes(state, account, script),
    ...assetRoutes(state, account, script),
    ...versionRoutes(state, script),
    [`GET ${account}/workers/services/:name`]: ([name = '']) => service(state, name),
    [`GET ${account}/workers/workers/:name`]: ([name = '']) =>
      ok({ id: name, name, subdomain: { enabled: false, previews_enabled: false } }),
    [`GET ${account}/workers/subdomain`]: () => ok({ subdomain: 'acme' }),
    [`GET ${script}/subdomain`]: ([name = '']) => {
      const enabled = state.scripts.get(name)?.workersDev ?? false
      return ok({ enabled, previews_enabled: false })
    },
    [`POST ${script}/subdomain`]: ([name = ''], request) => {
      const stored = state.scripts.get(name)
      if (stored === undefined) return notFound()
      stored.workersDev = jsonOf<{ enabled: boolean }>(request).enabled
      return ok({ enabled: stored.workersDev, previews_enabled: false })
    },
    [`GET ${script}/schedules`]: ([name = '']) =>
      ok({ schedules: (state.scripts.get(name)?.crons ?? []).map((cron) => ({ cron })) }),
    [`PUT ${script}/schedules`]: ([name = ''], request) => {
      const stored = state.scripts.get(name)
      if (stored === undefined) return notFound()
      stored.crons = jsonOf<Array<{ cron: string }>>(request).map(({ cron }) => cron)
      return ok({})
    },
    [`GET ${script}/settings`]: ([name = '']) => {
      const version = state.scripts.get(name)?.versions.at(-1)
      return version === undefined ? notFound() : ok({ bindings: presentVersion(version).resources.bindings })
    },
    [`PATCH ${script}/script-settings`]: () => ok({}),
  }
}

function service(state: CloudflareState, name: string): CloudflareAnswer {
  const stored = state.scripts.get(name)
  if (stored === undefined) {
    return { status: 404, code: 10090, message: 'workers.api.error.service_not_found' }
  }
  const script = {
    tag: `tag-of-${name}`,
    tags: [],
    migration_tag: stored.migrationTag,
    last_deployed_from: 'wrangler',
  }
  return ok({ id: name, default_environment: { environment: 'production', script } })
}

function bucketRoutes({ buckets }: CloudflareState, account: string): Record<string, Handler> {
  return {
    [`GET ${account}/r2/buckets/:name`]: ([name = '']) =>
      buckets.has(name)
        ? ok({ name, creation_date: '2026-11-01T00:00:00Z', location: 'WEUR' })
        : { status: 404, code: 10006, message: 'The specified bucket does not exist.' },
    [`POST ${account}/r2/buckets`]: (_names, request) => {
      const { name } = jsonOf<{ name: string }>(request)
      if (buckets.has(name)) return { status: 409, code: 10004, message: 'The bucket already exists.' }
      buckets.add(name)
      return ok({ name })
    },
  }
}

function domainRoutes(
  { domains }: CloudflareState,
  account: string,
  script: string,
): Record<string, Handler> {
  return {
    [`GET ${account}/workers/domains`]: () =>
      ok([...domains].map(([hostname, owner]) => ({ hostname, service: owner, environment: 'production' }))),
    [`POST ${script}/domains/changeset`]: () => ok({ added: [], removed: [], updated: [], conflicting: [] }),
    [`PUT ${script}/domains/records`]: ([name = ''], request) => {
      for (const [hostname, owner] of domains) if (owner === name) domains.delete(hostname)
      const { origins } = jsonOf<{ origins: Array<{ hostname: string }> }>(request)
      for (const { hostname } of origins) domains.set(hostname, name)
      return ok({})
    },
  }
}

function assetRoutes({ assets }: CloudflareState, account: string, script: string): Record<string, Handler> {
  return {
    [`POST ${script}/assets-upload-session`]: (_names, request) => {
      const { manifest } = jsonOf<{ manifest: Record<string, { hash: string }> }>(request)
      const missing = Object.values(manifest)
        .map(({ hash }) => hash)
        .filter((hash) => !assets.has(hash))
      return ok({ jwt: 'assets-session', buckets: missing.length === 0 ? [] : [missing] })
    },
    [`POST ${account}/workers/assets/upload`]: async (_names, { headers, body }) => {
      const form = await formOf(headers, body)
      for (const name of form.keys()) assets.add(name)
      return { status: 201, result: { jwt: 'assets-complete' } }
    },
  }
}

function versionRoutes(state: CloudflareState, script: string): Record<string, Handler> {
  const upload =
    (
      store: (name: string, metadata: UploadMetadata, modules: Map<string, string>) => CloudflareAnswer,
    ): Handler =>
    async ([name = ''], { headers, body }) => {
      const { metadata, modules } = await uploadOf(headers, body)
      return store(name, metadata, modules)
    }
  const found = (name: string) => state.scripts.get(name)
  return {
    [`PUT ${script}`]: upload((...parameters) => state.putScript(...parameters)),
    [`POST ${script}/versions`]: upload((...parameters) => state.postVersion(...parameters)),
    [`GET ${script}/versions`]: ([name = '']) => {
      const stored = found(name)
      return stored === undefined ? notFound() : ok({ items: stored.versions.map(presentVersion).reverse() })
    },
    [`GET ${script}/versions/:id`]: ([name = '', id]) => {
      const version = found(name)?.versions.find((stored) => stored.id === id)
      return version === undefined ? notFound() : ok(presentVersion(version))
    },
    [`GET ${script}/deployments`]: ([name = '']) => {
      const stored = found(name)
      if (stored === undefined) return notFound()
      const shown = {
        id: 'deployment',
        source: 'wrangler',
        strategy: 'percentage',
        author_email: 'a@example.com',
      }
      return ok({
        deployments: stored.deployments.map(({ versions }) => ({
          ...shown,
          created_on: '2026-11-01T00:00:00Z',
          annotations: {},
          versions,
        })),
      })
    },
    [`POST ${script}/deployments`]: ([name = ''], request) => state.postDeployment(name, jsonOf(request)),
    [`GET ${script}/secrets`]: ([name = '']) => {
      const stored = found(name)
      const secrets = stored?.versions.at(-1)?.bindings.filter(({ type }) => type === 'secret_text')
      return secrets === undefined
        ? notFound()
        : ok(secrets.map(({ name: secret, type }) => ({ name: secret, type })))
    },
  }
}

async function uploadOf(
  headers: Headers,
  body: Buffer,
): Promise<{ metadata: UploadMetadata; modules: Map<string, string> }> {
  const form = await formOf(headers, body)
  const modules = new Map<string, string>()
  let metadata: UploadMetadata | undefined
  for (const [name, part] of form) {
    const text = typeof part === 'string' ? part : await (part as unknown as Blob).text()
    if (name === 'metadata') metadata = JSON.parse(text) as UploadMetadata
    else modules.set(name, text)
  }
  if (metadata === undefined) throw new Error('an upload without metadata')
  return { metadata, modules }
}

const formOf = (headers: Headers, body: Buffer): Promise<FormData> =>
  new Response(new Uint8Array(body), {
    headers: { 'content-type': headers.get('content-type') ?? '' },
  }).formData()
