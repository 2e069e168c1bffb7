import { readdirSync } from 'node:fs'
import type { WorkerdOptions } from './workerd.ts'

const GATEWAY_OBJECTS = {
  LEDGER: 'Ledger',
  RESPONSE_STREAMS: 'ResponseStream',
  RESPONSE_POOLS: 'ResponsePool',
  RESPONSE_SOCKETS: 'ResponseSockets',
  CONNECTION_CREDENTIALS: 'ConnectionCredentials',
}

/** The configuration of the runtime in Cap'n Proto's text. @param cachePort of the stand-in of the Cache API; null for none. */
export function configOf(
  options: WorkerdOptions,
  bindings: Record<string, string>,
  storage: string,
  port: number,
  cachePort: number | null,
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
    `(name = ${text(name)}, external = (address = ${text(new URL(url).host)}, http = ())),`
  const externals = [
    ...buckets.map(([name, url]) => external(`bucket-${name}`, url)),
    ...services.map(([name, url]) => external(`service-${name}`, url)),
  ]
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
      bindings = ${list([...variables, ...reached, ...stores, ...bound, PUBLIC_WEB])},
      durableObjectNamespaces = ${list(namespaces)},
      durableObjectStorage = (localDisk = "storage"),
      ${cachePort === null ? '' : 'cacheApiOutbound = "cache",'}
    )),
    (name = "storage", disk = (path = ${text(storage)}, writable = true)),
    (name = "internet", network = (allow = ${list(network.map(text))}, tlsOptions = (trustBrowserCas = true))),
    (name = "public-web", network = (allow = ["public"], tlsOptions = (trustBrowserCas = true))),
    ${externals.join('\n    ')}
    ${options.scheduled ? SCHEDULE_WORKER : ''}
    ${cachePort === null ? '' : `(name = "cache", external = (address = "127.0.0.1:${cachePort}", http = ())),`}
  ],
  sockets = [
    (name = "http", address = "127.0.0.1:${port}", http = (), service = "main"),
    ${options.scheduled ? '(name = "schedule", address = "127.0.0.1:0", http = (), service = "schedule"),' : ''}
  ],
);
`
}

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

/** Binds the network for pages and commands of the shell: it connects to no private address, whatever a name resolves to. */
const PUBLIC_WEB = '(name = "PUBLIC_WEB", service = "public-web")'

/** The module of the bundle that holds the Worker. */
export const entryOf = (options: WorkerdOptions): string => options.entry ?? 'gateway.js'

/** The entry module first, since workerd runs the first one, then what the bundler put beside it. */
function modulesOf(options: WorkerdOptions): string[] {
  const entry = entryOf(options)
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
