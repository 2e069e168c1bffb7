import { randomUUID } from 'node:crypto'

/** An answer of Cloudflare's API: a result, or a refusal with its code. */
export type CloudflareAnswer =
  | { status: number; result: unknown }
  | { status: number; code: number; message: string }

export interface StoredVersion {
  id: string
  number: number
  tag: string | null
  /** Of the class migrations that the script had when it was uploaded. */
  migrationTag: string | null
  bindings: Array<Record<string, unknown> & { type: string; name: string }>
  /** Text of the uploaded main module. */
  code: string
  /** Names of all uploaded modules. */
  modules: string[]
}

interface Shares {
  versions: Array<{ version_id: string; percentage: number }>
}

export interface StoredScript {
  name: string
  migrationTag: string | null
  classes: Set<string>
  versions: StoredVersion[]
  /** Newest first. */
  deployments: Shares[]
  crons: string[]
  workersDev: boolean
  tags: string[]
}

/** The member of an upload that describes it. */
export interface UploadMetadata {
  main_module: string
  bindings: StoredVersion['bindings']
  keep_bindings?: string[]
  migrations?: {
    old_tag?: string
    new_tag: string
    steps: Array<{ new_sqlite_classes?: string[]; deleted_classes?: string[] }>
  }
  annotations?: Record<string, string>
  assets?: { jwt: string }
}

const refuse = (status: number, code: number, message: string): CloudflareAnswer => ({
  status,
  code,
  message,
})

/** Scripts, buckets and domains of one account, with the rules of Cloudflare that a deployment can break. */
export class CloudflareState {
  readonly scripts = new Map<string, StoredScript>()
  readonly buckets = new Set<string>()
  /** Hosts with the Worker of each. */
  readonly domains = new Map<string, string>()
  /** Hashes of static files. */
  readonly assets = new Set<string>()

  /** What the account has in the end, without ids: equal deployments have equal summaries. */
  summary(): unknown {
    return {
      buckets: [...this.buckets].sort(),
      domains: Object.fromEntries(this.domains),
      scripts: [...this.scripts.values()].map((script) => ({
        name: script.name,
        migrationTag: script.migrationTag,
        classes: [...script.classes].sort(),
        crons: script.crons,
        workersDev: script.workersDev,
        serving: this.shares(script).map(({ version, percentage }) => ({
          percentage,
          tag: version.tag,
          bindings: version.bindings.map(({ type, name }) => `${type} ${name}`).sort(),
        })),
      })),
    }
  }

  /** The versions that have traffic or 0 %, as the current deployment says. */
  shares(script: StoredScript): Array<{ version: StoredVersion; percentage: number }> {
    return (script.deployments[0]?.versions ?? []).flatMap(({ version_id: id, percentage }) => {
      const version = script.versions.find((stored) => stored.id === id)
      return version === undefined ? [] : [{ version, percentage }]
    })
  }

  /** PUT of a script: a version that gets all traffic, with changes of classes. */
  putScript(name: string, metadata: UploadMetadata, modules: Map<string, string>): CloudflareAnswer {
    const script = this.scripts.get(name) ?? emptyScript(name)
    const { migrations } = metadata
    if (migrations !== undefined && (migrations.old_tag ?? null) !== script.migrationTag) {
      return refuse(
        412,
        10079,
        `Actor migration tag precondition failed; current tag is '${script.migrationTag}'.`,
      )
    }
    const classes = new Set(script.classes)
    for (const { new_sqlite_classes: added = [], deleted_classes: deleted = [] } of migrations?.steps ?? []) {
      for (const added_ of added) classes.add(added_)
      for (const deleted_ of deleted) classes.delete(deleted_)
    }
    const refusal = this.#refusedBindings(metadata, classes)
    if (refusal !== null) return refusal
    script.classes = classes
    script.migrationTag = migrations?.new_tag ?? script.migrationTag
    this.scripts.set(name, script)
    const version = addVersion(script, metadata, modules)
    script.deployments.unshift({ versions: [{ version_id: version.id, percentage: 100 }] })
    return {
      status: 200,
      result: { id: name, deployment_id: version.id.replaceAll('-', ''), startup_time_ms: 9 },
    }
  }

  /** POST of a version, which gets no traffic. */
  postVersion(name: string, metadata: UploadMetadata, modules: Map<string, string>): CloudflareAnswer {
    const script = this.scripts.get(name)
    if (script === undefined) return notFound()
    if (metadata.migrations !== undefined) {
      return refuse(
        400,
        10211,
        'Version upload failed. Class migrations have to be fully applied by a deployment.',
      )
    }
    const refusal = this.#refusedBindings(metadata, script.classes)
    if (refusal !== null) return refusal
    const version = addVersion(script, metadata, modules)
    const result = { ...presentVersion(version), startup_time_ms: 9, metadata: { has_preview: false } }
    return { status: 200, result }
  }

  postDeployment(name: string, { versions }: Shares): CloudflareAnswer {
    const script = this.scripts.get(name)
    if (script === undefined) return notFound()
    const total = versions.reduce((sum, { percentage }) => sum + percentage, 0)
    const isKnown = versions.every(({ version_id: id }) =>
      script.versions.some((version) => version.id === id),
    )
    if (total !== 100 || versions.length > 2 || !isKnown) return refuse(400, 10013, 'invalid versions')
    const isBefore = versions.some(({ version_id: id }) =>
      script.versions.some((version) => version.id === id && version.migrationTag !== script.migrationTag),
    )
    if (isBefore) return refuse(400, 10013, 'a version from before a change of classes cannot be deployed')
    script.deployments.unshift({ versions })
    return { status: 200, result: { id: randomUUID() } }
  }

  #refusedBindings({ bindings }: UploadMetadata, classes: ReadonlySet<string>): CloudflareAnswer | null {
    for (const binding of bindings) {
      if (binding.type === 'r2_bucket' && !this.buckets.has(String(binding.bucket_name))) {
        return refuse(400, 10085, `R2 bucket '${binding.bucket_name}' not found.`)
      }
      if (binding.type === 'service' && !this.scripts.has(String(binding.service))) {
        return refuse(
          400,
          10144,
          `Could not resolve service binding '${binding.name}'. Target script not found.`,
        )
      }
      if (binding.type === 'durable_object_namespace' && !classes.has(String(binding.class_name))) {
        return refuse(
          400,
          10061,
          `Cannot create binding for class '${binding.class_name}' because it is not configured.`,
        )
      }
    }
    return null
  }
}

const emptyScript = (name: string): StoredScript => ({
  name,
  migrationTag: null,
  classes: new Set(),
  versions: [],
  deployments: [],
  crons: [],
  workersDev: false,
  tags: [],
})

export const notFound = (): CloudflareAnswer =>
  refuse(404, 10007, 'This Worker does not exist on your account.')

/** Bindings of a kept type that the upload does not name come from the newest version. */
function addVersion(
  script: StoredScript,
  metadata: UploadMetadata,
  modules: Map<string, string>,
): StoredVersion {
  const { bindings, keep_bindings: kept = [], annotations = {}, main_module: main } = metadata
  const named = new Set(bindings.map(({ name }) => name))
  const inherited = (script.versions.at(-1)?.bindings ?? []).filter(
    ({ type, name }) => kept.includes(type) && !named.has(name),
  )
  const version = {
    id: randomUUID(),
    number: script.versions.length + 1,
    tag: annotations['workers/tag'] ?? null,
    migrationTag: script.migrationTag,
    bindings: [...bindings, ...inherited],
    code: modules.get(main) ?? '',
    modules: [...modules.keys()],
  }
  script.versions.push(version)
  return version
}

/** A version as the API shows it: without the values of secrets. */
export function presentVersion({ id, number, tag, migrationTag, bindings }: StoredVersion) {
  return {
    id,
    number,
    metadata: { author_email: 'a@example.com', created_on: '2026-11-01T00:00:00Z', source: 'wrangler' },
    annotations: tag === null ? {} : { 'workers/tag': tag },
    resources: {
      bindings: bindings.map(({ type, name, ...rest }) =>
        type === 'secret_text' ? { type, name } : { type, name, ...rest },
      ),
      script: { etag: id, handlers: ['fetch'], last_deployed_from: 'wrangler' },
      script_runtime: {
        compatibility_date: '2026-10-23',
        usage_model: 'standard',
        ...(migrationTag !== null && { migration_tag: migrationTag }),
      },
    },
  }
}
