import * as z from 'zod'
import { DeployError } from './deploy-error.ts'
import { type ApiOptions, HttpApi } from './http-api.ts'

/** A version of a script that can be deployed. */
export interface ScriptVersion {
  id: string
  /** What `wrangler --tag` gave it; null without one. */
  tag: string | null
}

/** A share of the traffic, in percent. */
export interface TrafficShare {
  versionId: string
  percentage: number
}

export interface Triggers {
  crons: string[]
  hosts: string[]
  workersDev: boolean
}

/** A custom domain with its Worker. */
export interface DomainOwner {
  hostname: string
  service: string
}

/** A script as the account has it. */
export interface ScriptState {
  /** Tag of the last class migration; null if it has none. */
  migrationTag: string | null
  /** Newest first. */
  versions: ScriptVersion[]
  /** Of the current deployment, the largest share first. */
  traffic: TrafficShare[]
  /** Variables of the version with most of the traffic. */
  variables: Record<string, string>
  /** Its other bindings that are no secret: `LEDGER` to `class Ledger`. */
  bindings: Record<string, string>
  /** Names of the secrets of the newest version, which the next one inherits. */
  secrets: string[]
  triggers: Triggers
  /** The version that passed its test last; null if there is none that can be deployed again. */
  testedVersion: string | null
}

const account = z.object({ result: z.object({ name: z.string() }) })
const service = z.object({
  result: z.object({
    default_environment: z.object({ script: z.object({ migration_tag: z.string().nullish() }) }),
  }),
})
const versions = z.object({
  result: z.object({
    items: z.array(
      z.object({
        id: z.string(),
        number: z.number(),
        annotations: z.record(z.string(), z.unknown()).nullish(),
      }),
    ),
  }),
})
const deployments = z.object({
  result: z.object({
    deployments: z.array(
      z.object({ versions: z.array(z.object({ version_id: z.string(), percentage: z.number() })) }),
    ),
  }),
})
const binding = z.object({ type: z.string(), name: z.string() }).loose()
const version = z.object({
  result: z.object({
    resources: z.object({
      bindings: z.array(binding),
      script_runtime: z.object({ migration_tag: z.string().nullish() }).nullish(),
    }),
  }),
})
const schedules = z.object({ result: z.object({ schedules: z.array(z.object({ cron: z.string() })) }) })
const subdomain = z.object({ result: z.object({ enabled: z.boolean() }) })
const domains = z.object({ result: z.array(z.object({ hostname: z.string(), service: z.string() })) })

/** What a path needs; named in the message of a 403, also of wrangler's requests. */
export function cloudflarePermission(_method: string, path: string): string {
  if (path.includes('/r2/')) return 'Account: Workers R2 Storage: Edit'
  if (/\/domains|\/routes|^\/zones/.test(path))
    return 'Zone: Workers Routes: Edit, for the zones of the hosts'
  if (path.includes('/workers/')) return 'Account: Workers Scripts: Edit'
  return 'Account: Account Settings: Read'
}

/** Reads a Cloudflare account. Writing is wrangler's. https://developers.cloudflare.com/api/ */
export class CloudflareApi {
  readonly #api: HttpApi
  readonly #account: string

  constructor(
    token: string,
    accountId: string,
    options: Pick<ApiOptions, 'fetch' | 'clock'> & { baseUrl?: string | undefined },
  ) {
    this.#account = `/accounts/${accountId}`
    this.#api = new HttpApi({
      ...options,
      name: 'Cloudflare',
      baseUrl: options.baseUrl ?? 'https://api.cloudflare.com/client/v4',
      authorization: `Bearer ${token}`,
      permissionOf: cloudflarePermission,
    })
  }

  /** @throws DeployError if the token does not reach the account */
  async accountName(): Promise<string> {
    return (await this.#read(account, '')).result.name
  }

  async hasBucket(name: string): Promise<boolean> {
    return (await this.#readIfPresent(z.unknown(), `/r2/buckets/${name}`)) !== null
  }

  /** @returns the Worker that has each custom domain of the account */
  async hosts(): Promise<DomainOwner[]> {
    return (await this.#read(domains, '/workers/domains')).result
  }

  /**
   * @param hosts those of the account
   * @param tested the version that passed its test last; null if it is not known
   * @returns null if there is no script with this name
   */
  async script(
    name: string,
    hosts: readonly DomainOwner[],
    tested: string | null,
  ): Promise<ScriptState | null> {
    const found = await this.#readIfPresent(service, `/workers/services/${name}`)
    if (found === null) return null
    const path = `/workers/scripts/${name}`
    const [listed, deployed, crons, address] = await Promise.all([
      this.#read(versions, `${path}/versions?deployable=true`),
      this.#read(deployments, `${path}/deployments`),
      this.#read(schedules, `${path}/schedules`),
      this.#read(subdomain, `${path}/subdomain`),
    ])
    const known = listed.result.items
      .sort((left, right) => right.number - left.number)
      .map(({ id, annotations }) => ({ id, tag: textOf(annotations?.['workers/tag']) }))
    const traffic = trafficOf(deployed.result.deployments[0]?.versions ?? [])
    const migrationTag = found.result.default_environment.script.migration_tag ?? null
    return {
      migrationTag,
      versions: known,
      traffic,
      ...(await this.#bindings(path, known[0]?.id, traffic[0]?.versionId)),
      triggers: {
        crons: crons.result.schedules.map(({ cron }) => cron),
        hosts: hosts.filter((domain) => domain.service === name).map(({ hostname }) => hostname),
        workersDev: address.result.enabled,
      },
      testedVersion: known.some(({ id }) => id === tested)
        ? await this.#deployable(path, tested, migrationTag)
        : null,
    }
  }

  /** @returns the version; null if it is from before the last change of classes, past which Cloudflare does not roll back */
  async #deployable(path: string, id: string | null, migrationTag: string | null): Promise<string | null> {
    const { resources } = (await this.#read(version, `${path}/versions/${id}`)).result
    const tag = resources.script_runtime?.migration_tag ?? null
    return tag === null || tag === migrationTag ? id : null
  }

  /** Secrets of the newest version; the rest of the one that serves. */
  async #bindings(path: string, newest: string | undefined, serving: string | undefined) {
    const ofVersion = async (id: string | undefined) =>
      id === undefined ? [] : (await this.#read(version, `${path}/versions/${id}`)).result.resources.bindings
    const current = await ofVersion(serving)
    const latest = newest === serving ? current : await ofVersion(newest)
    const secrets = latest.filter(({ type }) => type === 'secret_text').map(({ name }) => name)
    const variables = current.filter(({ type }) => type === 'plain_text')
    const others = current.filter(({ type }) => !['plain_text', 'secret_text'].includes(type))
    return {
      secrets,
      variables: Object.fromEntries(variables.map(({ name, text }) => [name, String(text ?? '')])),
      bindings: Object.fromEntries(others.map((found) => [found.name, describeBinding(found)])),
    }
  }

  async #read<Schema extends z.ZodType>(schema: Schema, path: string): Promise<z.infer<Schema>> {
    const found = await this.#readIfPresent(schema, path)
    if (found !== null) return found
    throw new DeployError(
      path === '' ? 'Cloudflare has no account with the id of deploy.json' : `Cloudflare has no ${path}`,
    )
  }

  async #readIfPresent<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
  ): Promise<z.infer<Schema> | null> {
    const { status, body } = await this.#api.send('GET', `${this.#account}${path}`)
    if (status === 404) return null
    const parsed = schema.safeParse(body)
    if (status === 200 && parsed.success) return parsed.data
    throw new DeployError(
      `Cloudflare answered ${status} in an unknown form (GET ${path.split('?', 1)[0] || 'the account'})`,
    )
  }
}

/** A binding in the words of the plan; configurations are described alike (`release.ts`). */
function describeBinding(found: z.infer<typeof binding>): string {
  const { type } = found
  if (type === 'durable_object_namespace') return `class ${found.class_name}`
  if (type === 'r2_bucket') return `bucket ${found.bucket_name}`
  if (type === 'service') return `Worker ${found.service}`
  return type
}

const trafficOf = (shares: Array<{ version_id: string; percentage: number }>): TrafficShare[] =>
  shares
    .map(({ version_id, percentage }) => ({ versionId: version_id, percentage }))
    .sort((left, right) => right.percentage - left.percentage)

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
