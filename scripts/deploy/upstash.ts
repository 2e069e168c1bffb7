import * as z from 'zod'
import { DeployError } from './deploy-error.ts'
import { type ApiOptions, HttpApi } from './http-api.ts'
import type { DeploySettings } from './settings.ts'

export type UpstashSettings = Exclude<DeploySettings['redis'], 'environment'>['upstash']

const databases = z.array(z.object({ database_id: z.string(), database_name: z.string() }))
const database = z.object({ endpoint: z.string().min(1), rest_token: z.string().min(1) })

export interface UpstashDatabase {
  /** UPSTASH_REDIS_REST_URL. */
  url: string
  /** UPSTASH_REDIS_REST_TOKEN, a secret. */
  token: string
}

/**
 * The Developer API of Upstash, as far as a deployment needs it. It exists for native accounts only.
 * https://upstash.com/docs/devops/developer-api
 */
export class UpstashApi {
  readonly #api: HttpApi

  constructor(
    account: { email: string; key: string },
    options: Pick<ApiOptions, 'fetch' | 'clock'> & { baseUrl?: string | undefined },
  ) {
    this.#api = new HttpApi({
      ...options,
      name: 'Upstash',
      baseUrl: options.baseUrl ?? 'https://api.upstash.com/v2',
      authorization: `Basic ${Buffer.from(`${account.email}:${account.key}`).toString('base64')}`,
      permissionOf: () => 'Redis databases',
    })
  }

  /** @returns the database with this name; null if there is none @throws DeployError if several have it */
  async find({ database: name }: UpstashSettings): Promise<UpstashDatabase | null> {
    const { body } = await this.#api.send('GET', '/redis/databases')
    const found = parse(databases, body).filter((entry) => entry.database_name === name)
    if (found.length > 1) throw new DeployError(`Upstash has ${found.length} databases with the name ${name}`)
    const id = found[0]?.database_id
    return id === undefined ? null : presented((await this.#api.send('GET', `/redis/database/${id}`)).body)
  }

  async create({ database: name, region }: UpstashSettings): Promise<UpstashDatabase> {
    const wanted = { database_name: name, platform: 'aws', primary_region: region, tls: true }
    return presented((await this.#api.send('POST', '/redis/database', wanted)).body)
  }
}

function presented(body: unknown): UpstashDatabase {
  const { endpoint, rest_token: token } = parse(database, body)
  return { url: `https://${endpoint}`, token }
}

function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(body)
  if (!parsed.success) throw new DeployError('Upstash answered in an unknown form')
  return parsed.data
}
