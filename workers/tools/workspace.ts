import { DurableObject } from 'cloudflare:workers'
import { isHostAllowed } from '../../src/identity/tool-rights.ts'
import { logFailuresOf } from '../../src/lib/logged-methods.ts'
import { safeFetch } from '../../src/lib/safe-fetch.ts'
import { answerRequest } from '../../src/workspace/answer-request.ts'
import { guardedNetwork } from '../../src/workspace/shell/guarded-network.ts'
import { Workspace } from '../../src/workspace/workspace.ts'

export interface WorkspaceBindings {
  /** Bound in a self-hosted runtime only: a network that connects to public addresses. */
  PUBLIC_WEB?: Fetcher
}

/** The Durable Object behind a workspace. It has storage and alarm; the code is in `src`. */
export class WorkspaceObject extends DurableObject<WorkspaceBindings> {
  readonly #workspace: Workspace

  constructor(context: DurableObjectState, environment: WorkspaceBindings) {
    super(context, environment)
    const { PUBLIC_WEB: network = null } = environment
    this.#workspace = new Workspace(context.storage, (egress) =>
      guardedNetwork(
        (host) => isHostAllowed(egress, host),
        (address, init) => safeFetch(address, { ...init, allow: [], network }),
      ),
    )
  }

  override fetch(request: Request): Promise<Response> {
    return answerRequest(this.#workspace, request)
  }

  override alarm(): Promise<void> {
    return this.#workspace.alarm()
  }
}

logFailuresOf(WorkspaceObject, 'WorkspaceObject')
