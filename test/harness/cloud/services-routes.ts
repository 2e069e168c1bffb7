import { randomUUID } from 'node:crypto'
import type { ApiRequest } from './cloudflare-routes.ts'

export const NEON_KEY = 'neon-key-of-the-tests'
export const UPSTASH_EMAIL = 'upstash@example.com'
export const UPSTASH_KEY = 'upstash-key-of-the-tests'

interface PlainAnswer {
  status: number
  body: unknown
}

type Handler = (names: string[], request: ApiRequest) => PlainAnswer

const ok = (body: unknown, status = 200): PlainAnswer => ({ status, body })
const jsonOf = <Body>({ body }: ApiRequest): Body => JSON.parse(body.toString()) as Body

/** Projects of a Neon account. All have the one database of the tests. */
export class NeonState {
  readonly projects: Array<{ id: string; name: string; branches: string[] }> = []
  readonly #databaseUrl: string

  constructor(databaseUrl: string) {
    this.#databaseUrl = databaseUrl
  }

  routes(): Record<string, Handler> {
    return {
      'GET /projects': () => ok({ projects: this.projects.map(({ id, name }) => ({ id, name })) }),
      'POST /projects': (_names, request) => {
        const { name } = jsonOf<{ project: { name: string } }>(request).project
        const project = { id: `project-${randomUUID().slice(0, 8)}`, name, branches: ['main'] }
        this.projects.push(project)
        return ok({ project, connection_uris: [{ connection_uri: this.#databaseUrl }] }, 201)
      },
      'GET /projects/:id/connection_uri': () => ok({ uri: this.#databaseUrl }),
      'POST /projects/:id/branches': ([id], request) => {
        const branches = this.projects.find((project) => project.id === id)?.branches
        const { name } = jsonOf<{ branch: { name: string } }>(request).branch
        if (branches === undefined) return ok({ message: 'project not found' }, 404)
        if (branches.includes(name)) return ok({ message: 'branch already exists' }, 409)
        branches.push(name)
        return ok({ branch: { name } }, 201)
      },
    }
  }
}

/** Redis databases of an Upstash account. */
export class UpstashState {
  readonly databases: Array<{
    database_id: string
    database_name: string
    endpoint: string
    rest_token: string
  }> = []

  routes(): Record<string, Handler> {
    return {
      'GET /redis/databases': () =>
        ok(this.databases.map(({ database_id, database_name }) => ({ database_id, database_name }))),
      'GET /redis/database/:id': ([id]) => ok(this.databases.find(({ database_id }) => database_id === id)),
      'POST /redis/database': (_names, request) => {
        const { database_name } = jsonOf<{ database_name: string }>(request)
        const id = randomUUID()
        const database = {
          database_id: id,
          database_name,
          endpoint: `${database_name}.upstash.io`,
          rest_token: `canary-redis-token-${id}`,
        }
        this.databases.push(database)
        return ok(database)
      },
    }
  }
}
