import { type Answer, jsonOf, send } from '../../harness/send.ts'
import type { StartedGateway } from '../../harness/start-gateway.ts'
import { bearer } from '../../harness/tenant.ts'
import { registeredRoutes } from '../../matrices/routes.ts'

export type Json = Record<string, unknown>

export interface Created extends Json {
  id: string
}

/** Requests to a gateway by every route, which remembers the routes that were used. */
export class Surfaces {
  readonly address: StartedGateway
  /** Answers that no caller should get, as text. */
  readonly failures: string[] = []
  readonly #used = new Set<string>()
  readonly #patterns = registeredRoutes().map(({ method, pattern }) => ({
    name: `${method} ${pattern}`,
    method,
    expression: new RegExp(`^${pattern.replace(/:\w+\{\.\+\}/g, '.+').replace(/:\w+/g, '[^/]+')}$`),
  }))

  constructor(address: StartedGateway) {
    this.address = address
  }

  /** Routes that no request was made to. */
  unused(): string[] {
    return this.#patterns.map(({ name }) => name).filter((name) => !this.#used.has(name))
  }

  async request(
    method: string,
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: unknown } = {},
  ): Promise<Answer> {
    const [plain = ''] = path.split('?')
    for (const { name, method: of, expression } of this.#patterns)
      if (of === method && expression.test(plain)) this.#used.add(name)
    const answer = await send(this.address.baseUrl + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    if (answer.status >= 500)
      this.failures.push(`${method} ${path}: ${answer.status} ${answer.text.slice(0, 300)}`)
    return answer
  }

  /** A request by a key. @throws unless the answer is a success. */
  async ask<Body = Json>(
    key: string,
    method: string,
    path: string,
    body?: unknown,
    headers = {},
  ): Promise<Body> {
    const answer = await this.request(method, path, { headers: { ...bearer(key), ...headers }, body })
    return bodyOf<Body>(answer, `${method} ${path}`)
  }

  /** A request of the administrator. @param path below `/api`. @throws unless the answer is a success. */
  async manage<Body = Json>(method: string, path: string, body?: unknown): Promise<Body> {
    const answer = await this.request(method, `/api${path}`, {
      headers: bearer(this.address.adminToken),
      body,
    })
    return bodyOf<Body>(answer, `${method} ${path}`)
  }
}

export type Manage = <Body = Json>(method: string, path: string, body?: unknown) => Promise<Body>

/** `manage` of surfaces as a function. */
export const managing = (surfaces: Surfaces): { manage: Manage } => ({
  manage: (method, path, body) => surfaces.manage(method, path, body),
})

function bodyOf<Body>(answer: Answer, name: string): Body {
  if (answer.status >= 300) throw new Error(`${name}: ${answer.status} ${answer.text.slice(0, 500)}`)
  const isJson = String(answer.headers['content-type']).includes('application/json')
  return (isJson && answer.text !== '' ? jsonOf(answer) : {}) as Body
}
