import * as z from 'zod'
import { DeployError } from './deploy-error.ts'
import { type ApiOptions, HttpApi } from './http-api.ts'
import type { DeploySettings } from './settings.ts'

export type NeonSettings = Exclude<DeploySettings['database'], 'environment'>['neon']

const projects = z.object({ projects: z.array(z.object({ id: z.string(), name: z.string() })) })
const created = z.object({
  project: z.object({ id: z.string() }),
  connection_uris: z.array(z.object({ connection_uri: z.string() })).min(1),
})
const connection = z.object({ uri: z.string() })

/** Neon's API, as far as a deployment needs it. https://api-docs.neon.tech/reference */
export class NeonApi {
  readonly #api: HttpApi

  constructor(key: string, options: Pick<ApiOptions, 'fetch' | 'clock'> & { baseUrl?: string | undefined }) {
    this.#api = new HttpApi({
      ...options,
      name: 'Neon',
      baseUrl: options.baseUrl ?? 'https://console.neon.tech/api/v2',
      authorization: `Bearer ${key}`,
      permissionOf: () => 'access to the project',
    })
  }

  /**
   * @returns the id of the project with this name or id; null if there is none
   * @throws DeployError if several have the name
   */
  async findProject({ project, organization }: NeonSettings): Promise<string | null> {
    const query = new URLSearchParams({
      limit: '400',
      ...(organization !== undefined && { org_id: organization }),
    })
    const { body } = await this.#api.send('GET', `/projects?${query}`)
    const found = parse(projects, body).projects.filter(({ id, name }) => id === project || name === project)
    if (found.length > 1) {
      const ids = found.map(({ id }) => id).join(', ')
      throw new DeployError(
        `Neon has ${found.length} projects with the name ${project}: give the id instead (${ids})`,
      )
    }
    return found[0]?.id ?? null
  }

  /** Creates the project. @returns its id and connection string, a secret */
  async createProject(settings: NeonSettings): Promise<{ id: string; url: string }> {
    const { project, region, organization, database, role } = settings
    const wanted = {
      name: project,
      region_id: region,
      branch: { database_name: database, role_name: role },
      ...(organization !== undefined && { org_id: organization }),
    }
    const answer = parse(created, (await this.#api.send('POST', '/projects', { project: wanted })).body)
    return { id: answer.project.id, url: answer.connection_uris[0]?.connection_uri ?? '' }
  }

  /** @returns the direct connection string of a project, a secret */
  async connectionString(projectId: string, { database, role }: NeonSettings): Promise<string> {
    const query = new URLSearchParams({ database_name: database, role_name: role, pooled: 'false' })
    const { body } = await this.#api.send('GET', `/projects/${projectId}/connection_uri?${query}`)
    return parse(connection, body).uri
  }

  /** Creates a branch of the present data, to return to. @throws DeployError, also if there is one with this name, which has older data */
  async createBranch(projectId: string, name: string): Promise<void> {
    const { status } = await this.#api.send('POST', `/projects/${projectId}/branches`, { branch: { name } })
    if (status >= 400) throw new DeployError(`Neon answered ${status} to the branch ${name}`)
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, body: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(body)
  if (!parsed.success) throw new DeployError('Neon answered in an unknown form')
  return parsed.data
}
