import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import { parse } from 'smol-toml'
import type { Triggers } from './cloudflare-api.ts'
import type { DeploySettings } from './settings.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The members of a wrangler.toml that a deployment reads or changes. */
interface WranglerConfiguration {
  name: string
  main: string
  vars?: Record<string, string>
  routes?: Array<{ pattern: string; custom_domain: true }>
  workers_dev?: boolean
  triggers?: { crons?: string[] }
  assets?: { directory: string; binding?: string }
  durable_objects?: { bindings?: Array<{ name: string; class_name: string }> }
  migrations?: Array<{ tag: string; new_sqlite_classes?: string[]; deleted_classes?: string[] }>
  r2_buckets?: Array<{ binding: string; bucket_name: string }>
  services?: Array<{ binding: string; service: string }>
  version_metadata?: { binding: string }
  [member: string]: unknown
}

/** A step of the class migrations of Durable Objects. */
export interface ClassMigration {
  tag: string
  /** `+Ledger`, `-ResponseStream`. */
  changes: string[]
}

/** A script as this checkout would deploy it. */
export interface ScriptRelease {
  name: string
  /** Of code, static files and configuration; versions carry it, so that an unchanged script is recognized. */
  tag: string
  /** The built file. */
  entry: string
  /** For wrangler, which takes the built file as it is. */
  configuration: WranglerConfiguration
  variables: Record<string, string>
  /** Other bindings, as `ScriptState` describes them. */
  bindings: Record<string, string>
  classMigrations: ClassMigration[]
  triggers: Triggers
}

export interface Release {
  tools: ScriptRelease
  gateway: ScriptRelease
}

/** Folders of what is uploaded. */
export interface BuiltFiles {
  /** Of `buildScripts`. */
  scripts: string
  /** Static files of the gateway. */
  assets: string
}

/** The static files of this checkout, which a build completes. */
export const STATIC_FILES = join(ROOT, 'public')

/**
 * Describes what this checkout would deploy.
 *
 * @param variables more variables of the gateway than those of `wrangler.toml`
 */
export function readRelease(
  settings: DeploySettings,
  { scripts, assets }: BuiltFiles,
  variables: Record<string, string>,
): Release {
  const tools = readConfiguration(join(ROOT, 'workers/tools/wrangler.toml'))
  const gateway = readConfiguration(join(ROOT, 'wrangler.toml'))
  return {
    tools: scriptRelease({ ...tools, name: settings.tools.name }, join(scripts, 'tools/tools.js')),
    gateway: scriptRelease(
      {
        ...gateway,
        name: settings.gateway.name,
        vars: { ...gateway.vars, ...variables },
        workers_dev: settings.gateway.workersDev,
        ...(settings.gateway.hosts.length > 0 && {
          routes: settings.gateway.hosts.map((pattern) => ({ pattern, custom_domain: true as const })),
        }),
        r2_buckets: (gateway.r2_buckets ?? []).map((bucket) => ({ ...bucket, bucket_name: settings.bucket })),
        services: (gateway.services ?? []).map((bound) => ({ ...bound, service: settings.tools.name })),
        ...(gateway.assets && {
          assets: { ...gateway.assets, directory: assets },
        }),
      },
      join(scripts, 'gateway.js'),
    ),
  }
}

/** Without what concerns the build: the built file is uploaded, so that what was planned is what runs. */
function readConfiguration(path: string): WranglerConfiguration {
  const parsed = parse(readFileSync(path, 'utf8')) as WranglerConfiguration
  const { alias: _alias, build: _build, dev: _dev, minify: _minify, keep_names: _names, ...kept } = parsed
  return { ...(kept as WranglerConfiguration), no_bundle: true }
}

function scriptRelease(configuration: WranglerConfiguration, entry: string): ScriptRelease {
  const uploaded = { ...configuration, main: basename(entry) }
  const { vars = {}, workers_dev: workersDev = false, routes = [], triggers, migrations = [] } = uploaded
  return {
    name: uploaded.name,
    tag: tagOf(uploaded, entry),
    entry,
    configuration: uploaded,
    variables: vars,
    bindings: bindingsOf(uploaded),
    classMigrations: migrations.map(
      ({ tag, new_sqlite_classes: added = [], deleted_classes: deleted = [] }) => ({
        tag,
        changes: [...added.map((name) => `+${name}`), ...deleted.map((name) => `-${name}`)],
      }),
    ),
    triggers: { crons: triggers?.crons ?? [], hosts: routes.map(({ pattern }) => pattern), workersDev },
  }
}

/** Cloudflare limits tags of versions to 25 characters. */
const TAG_DIGITS = 16
const TAG_PREFIX = 'hg-'

/** Whether a version with this tag was uploaded by a deployment. Other ones are made by hand, as in the dashboard. */
export const isDeployedTag = (tag: string | null): boolean => tag?.startsWith(TAG_PREFIX) === true

function tagOf(configuration: WranglerConfiguration, entry: string): string {
  const hash = createHash('sha256').update(readFileSync(entry))
  const { assets } = configuration
  // Paths of this machine make no other release.
  hash.update(JSON.stringify({ ...configuration, assets: assets && { ...assets, directory: '' } }))
  for (const file of assets === undefined ? [] : filesBelow(assets.directory)) {
    hash.update(relative(assets?.directory ?? '', file).replaceAll(sep, '/')).update(readFileSync(file))
  }
  return `${TAG_PREFIX}${hash.digest('hex').slice(0, TAG_DIGITS)}`
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

function bindingsOf(configuration: WranglerConfiguration): Record<string, string> {
  const { assets, durable_objects: objects, r2_buckets: buckets = [], services = [] } = configuration
  return Object.fromEntries([
    ...(objects?.bindings ?? []).map((bound) => [bound.name, `class ${bound.class_name}`]),
    ...buckets.map((bound) => [bound.binding, `bucket ${bound.bucket_name}`]),
    ...services.map((bound) => [bound.binding, `Worker ${bound.service}`]),
    ...(assets?.binding === undefined ? [] : [[assets.binding, 'assets']]),
    ...(configuration.version_metadata ? [[configuration.version_metadata.binding, 'version_metadata']] : []),
  ])
}
