import { WORKSPACE_LIFETIME_MS } from '../../workspace/limits.ts'
import { workspaceIdOf } from '../model/response-head.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { ResponseState } from '../store/response-state.ts'
import { removeFilesOfEmpty, removeWorkspace } from '../tools/workspace/remove-workspace.ts'

/**
 * The files of a response without a conversation, which only its own tools can reach, and those of the next response of its
 * connection. They are deleted when neither can any more.
 */
export class ResponseFiles {
  readonly #deps: ResponseDeps
  readonly #state: ResponseState

  constructor(deps: ResponseDeps, state: ResponseState) {
    this.#deps = deps
    this.#state = state
  }

  /** Whether the response may have files that it has to delete. */
  get areOwned(): boolean {
    const { head } = this.#state
    if (!head || head.conversationId !== null || head.filesGone) return false
    return head.passedWorkspaceId !== undefined || (head.progress.toolCalls ?? 0) > 0
  }

  /**
   * Removes what only this response can reach: its own files, or those of a conversation that is empty without it.
   * @returns whether there is nothing of it any more; if not, it has to be repeated.
   */
  async remove(): Promise<boolean> {
    const { head } = this.#state
    if (!head) return true
    // The workspace has deleted itself by then.
    if (this.#deps.clock() > (head.endedAt ?? head.createdAt) + WORKSPACE_LIFETIME_MS) return true
    if (this.areOwned) return removeWorkspace(this.#deps, head.owner, workspaceIdOf(head))
    if (head.conversationId === null || !head.progress.toolCalls) return true
    return removeFilesOfEmpty(this.#deps, head.owner, head.conversationId).catch(() => false)
  }

  /** Removes the files of a response that has ended, unless it is held. A failure is repeated after its window. */
  removeUnreachable(): void {
    if (!this.areOwned || this.#state.head?.heldUntil) return
    const removal = this.remove().then((removed) => {
      if (removed && this.#state.head) this.#state.change({ filesGone: true })
    })
    this.#deps.waitUntil(removal)
  }
}
