import type { IncomingMessage, ServerResponse } from 'node:http'
import { VERSION_HEADER } from '../../../scripts/deploy/smoke-test.ts'
import { type LoopbackServer, listenOnLoopback, sendJson } from '../../../scripts/node/loopback-server.ts'
import { TOOLS_VERSION_HEADER } from '../../../src/workspace/contract.ts'
import type { CloudflareState, StoredVersion } from './cloudflare-state.ts'

/** A call of the deployed gateway. */
export interface GatewayCall {
  path: string
  /** Tag of the version that answered. */
  tag: string | null
  /** Its share of the traffic in percent. */
  percentage: number
  /** Whether the caller asked for the version. */
  isOverridden: boolean
}

/**
 * Answers as the version of the gateway that Cloudflare would choose: the one of the override, if it is in the current
 * deployment, else the one with most of the traffic. It stands in for the few paths that a smoke test calls;
 * `test/http/deploy-smoke-test.test.ts` calls them on the real one.
 */
export class DeployedGateway {
  readonly calls: GatewayCall[] = []
  /** Decides which versions fail. */
  isBroken: (version: StoredVersion, percentage: number) => boolean = () => false
  /** Decides which versions of the script of tools answer nothing. */
  areToolsBroken: (version: StoredVersion) => boolean = () => false
  readonly #state: CloudflareState
  #server: LoopbackServer | undefined

  constructor(state: CloudflareState) {
    this.#state = state
  }

  get url(): string {
    return this.#server?.url ?? ''
  }

  async start(): Promise<void> {
    this.#server = await listenOnLoopback(0, async (request, response) => this.#handle(request, response))
  }

  async stop(): Promise<void> {
    await this.#server?.close()
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const override = String(request.headers['cloudflare-workers-version-overrides'] ?? '')
    const [, name = 'headgate', id] = /^([a-z0-9-]+)="([^"]+)"$/.exec(override) ?? []
    const script = this.#state.scripts.get(name)
    const shares = script === undefined ? [] : this.#state.shares(script)
    const wanted = shares.find(({ version }) => version.id === id)
    const most = [...shares].sort((left, right) => right.percentage - left.percentage)[0]
    const chosen = wanted ?? most
    if (chosen === undefined) {
      sendJson(response, 522, {})
      return
    }
    const { version, percentage } = chosen
    const path = request.url ?? ''
    this.calls.push({ path, tag: version.tag, percentage, isOverridden: wanted !== undefined })
    response.setHeader(VERSION_HEADER, version.id)
    const isBroken = path !== '/health' && this.isBroken(version, percentage)
    const degraded = path === '/health/ready' ? this.#askTools(response, version) : {}
    sendJson(response, isBroken ? 500 : statusOf(path, request, version), { status: 'ok', ...degraded })
  }

  /** The version of the tools that a service binding reaches, which has no override. */
  #askTools(response: ServerResponse, { bindings }: StoredVersion): { degraded?: ['tools'] } {
    const bound = bindings.find(({ name }) => name === 'TOOLS')?.service
    const tools = this.#state.scripts.get(String(bound))
    const [serving] = tools === undefined ? [] : this.#state.shares(tools)
    if (serving === undefined || this.areToolsBroken(serving.version)) return { degraded: ['tools'] }
    response.setHeader(TOOLS_VERSION_HEADER, serving.version.id)
    return {}
  }
}

function statusOf(path: string, request: IncomingMessage, { bindings }: StoredVersion): number {
  const secret = bindings.find(({ name }) => name === 'ADMIN_TOKEN')?.text
  const isAdmin = request.headers.authorization === `Bearer ${secret}`
  const statuses: Record<string, number> = {
    '/health': 200,
    '/health/ready': 200,
    '/v1/models': 401,
    '/api/organizations': isAdmin ? 200 : 401,
  }
  return statuses[path] ?? 404
}
