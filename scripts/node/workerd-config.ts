import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkerdOptions } from './workerd.ts'

const GATEWAY_OBJECTS = {
  LEDGER: 'Ledger',
  RESPONSE_STREAMS: 'ResponseStream',
  RESPONSE_POOLS: 'ResponsePool',
  RESPONSE_SOCKETS: 'ResponseSockets',
  CONNECTION_CREDENTIALS: 'ConnectionCredentials',
}

/**
 * The configuration of the runtime in Cap'n Proto's text. @param addresses where its sockets listen, as workerd takes them.
 * @param cache URL of the server behind the Cache API; null for none
 */
export function configOf(
  options: WorkerdOptions,
  bindings: Record<string, string>,
  storage: string,
  addresses: { http: string; schedule: string },
  cache: string | null,
): string {
  const objects = Object.entries(options.durableObjects ?? GATEWAY_OBJECTS)
  const buckets = Object.entries(options.buckets ?? {})
  const services = Object.entries(options.services ?? {})
  const network = options.network ?? ['public', 'private']
  const text = (value: string) => JSON.stringify(value)
  const list = (values: string[]) => `[${values.join(', ')}]`
  const variables = Object.keys(bindings).map(
    (name) => `(name = ${text(name)}, fromEnvironment = ${text(name)})`,
  )
  const reached = objects.map(
    ([name, type]) => `(name = ${text(name)}, durableObjectNamespace = ${text(type)})`,
  )
  const stores = buckets.map(([name]) => `(name = ${text(name)}, r2Bucket = ${text(`bucket-${name}`)})`)
  const bound = services.map(([name]) => `(name = ${text(name)}, service = ${text(`service-${name}`)})`)
  const external = (name: string, url: string) =>
    `(name = ${text(name)}, external = (address = ${text(externalAddress(url))}, http = ())),`
  const assets = assetsFolderOf(options)
  const externals = [
    ...buckets.map(([name, url]) => external(`bucket-${name}`, url)),
    ...services.map(([name, url]) => external(`service-${name}`, url)),
  ]
  // The key is part of each object's id and of the name of its folder: another one would leave all stored objects behind.
  const namespaces = objects.map(
    ([, type]) => `(className = ${text(type)}, uniqueKey = ${text(`headgate-${type}`)}, enableSql = true)`,
  )
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = ${list(modulesOf(options))},
      compatibilityDate = ${text(options.compatibilityDate)},
      compatibilityFlags = ${list(options.flags.map(text))},
      bindings = ${list([...variables, ...reached, ...stores, ...bound, PUBLIC_WEB, ...(assets ? [ASSETS] : [])])},
      durableObjectNamespaces = ${list(namespaces)},
      durableObjectStorage = (localDisk = "storage"),
      ${cache === null ? '' : 'cacheApiOutbound = "cache",'}
    )),
    (name = "storage", disk = (path = ${text(storage)}, writable = true)),
    (name = "internet", network = (allow = ${list(network.map(text))}, tlsOptions = (trustBrowserCas = true))),
    (name = "public-web", network = (allow = ["public"], tlsOptions = (trustBrowserCas = true))),
    ${externals.join('\n    ')}
    ${options.scheduled ? SCHEDULE_WORKER : ''}
    ${assets === null ? '' : assetsServices(assets)}
    ${cache === null ? '' : external('cache', cache)}
  ],
  sockets = [
    (name = "http", address = ${text(addresses.http)}, http = (), service = "main"),
    ${options.scheduled ? `(name = "schedule", address = ${text(addresses.schedule)}, http = (), service = "schedule"),` : ''}
  ],
);
`
}

/** `unix:/path` as it is, and `host:port` of an http URL. */
const externalAddress = (url: string): string => (url.startsWith('unix:') ? url : new URL(url).host)

/** Calls the handler of scheduled events of the Worker beside it. */
const SCHEDULE_SOURCE = `export default {
  async fetch(request, { MAIN }) {
    const cron = new URL(request.url).searchParams.get('cron')
    return Response.json(await MAIN.scheduled({ cron, scheduledTime: new Date() }))
  },
}`

const SCHEDULE_WORKER = `(name = "schedule", worker = (
      modules = [(name = "schedule.js", esModule = ${JSON.stringify(SCHEDULE_SOURCE)})],
      compatibilityDate = "2026-10-23",
      compatibilityFlags = ["service_binding_extra_handlers"],
      bindings = [(name = "MAIN", service = "main")],
    )),`

const PUBLIC_FOLDER = join(import.meta.dirname, '../../public')

/** The folder of static files; null for none. */
const assetsFolderOf = ({ assets, durableObjects }: WorkerdOptions): string | null =>
  assets ?? (durableObjects === undefined ? PUBLIC_FOLDER : null)

const ASSETS = '(name = "ASSETS", service = "assets")'

/**
 * Static files as the platform serves them, with a type and an ETag: the runtime's own service of a folder has neither, and lists
 * folders (https://developers.cloudflare.com/workers/static-assets/headers/).
 */
const ASSETS_SOURCE = `const TYPES = { json: 'application/json', html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', woff2: 'font/woff2' }
export default {
  async fetch(request, { FILES }) {
    const { pathname } = new URL(request.url)
    const type = TYPES[pathname.slice(pathname.lastIndexOf('.') + 1)]
    const file = type && (await FILES.fetch('http://files' + pathname))
    if (!file?.ok) return new Response(null, { status: 404 })
    const bytes = await file.arrayBuffer()
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
    const etag = '"' + digest.toHex().slice(0, 32) + '"'
    const headers = { 'content-type': type, etag, 'cache-control': 'public, max-age=0, must-revalidate' }
    if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
    return new Response(bytes, { headers })
  },
}`

const assetsServices = (folder: string) => `(name = "asset-files", disk = (path = ${JSON.stringify(folder)})),
    (name = "assets", worker = (
      modules = [(name = "assets.js", esModule = ${JSON.stringify(ASSETS_SOURCE)})],
      compatibilityDate = "2026-10-23",
      bindings = [(name = "FILES", service = "asset-files")],
    )),`

/** Binds the network for pages and commands of the shell: it connects to no private address, whatever a name resolves to. */
const PUBLIC_WEB = '(name = "PUBLIC_WEB", service = "public-web")'

/** The module of the bundle that holds the Worker. */
export const entryModule = (options: WorkerdOptions): string => options.entry ?? 'gateway.js'

/** The entry module first, since workerd runs the first one, then what the bundler put beside it. */
function modulesOf(options: WorkerdOptions): string[] {
  const entry = entryModule(options)
  const kinds: Record<string, string> = {
    js: 'esModule',
    mjs: 'esModule',
    wasm: 'wasm',
    txt: 'text',
    html: 'text',
  }
  const others = readdirSync(options.bundleDirectory).filter((name) => name !== entry && name !== 'README.md')
  return [entry, ...others].flatMap((name) => {
    const kind = kinds[name.slice(name.lastIndexOf('.') + 1)]
    return kind === undefined
      ? []
      : [`(name = ${JSON.stringify(name)}, ${kind} = embed ${JSON.stringify(`bundle/${name}`)})`]
  })
}
