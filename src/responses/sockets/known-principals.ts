import type { RenewDeps } from '../../identity/identify.ts'
import { keyIdOf, type Principal } from '../../identity/principal.ts'
import { currentPrincipal } from '../model/current-principal.ts'
import type { ConnectionOpening } from './socket-connection.ts'

type PrincipalDeps = RenewDeps & { configuration: { IDENTITY_CACHE_MS: number } }

/**
 * The rights behind the connections of an object, as long as the isolate would trust those of a presented key. A change
 * applies from the next message on, as over HTTP: the admission of a response compares their epoch.
 */
export class KnownPrincipals {
  readonly #deps: PrincipalDeps
  /** Principals by key id. */
  readonly #known = new Map<string, { principal: Principal; readAt: number }>()

  constructor(deps: PrincipalDeps) {
    this.#deps = deps
  }

  /** @throws ApiError unauthorized for a caller that may not call any more, and what the database throws. */
  async of({ owner, credential }: Pick<ConnectionOpening, 'owner' | 'credential'>): Promise<Principal> {
    const name = keyIdOf({ credential }) ?? ''
    const known = this.#known.get(name)
    const readAt = this.#deps.clock()
    const isFresh = known !== undefined && readAt - known.readAt < this.#deps.configuration.IDENTITY_CACHE_MS
    if (!isFresh) this.#known.delete(name)
    const principal = await currentPrincipal(
      this.#deps,
      owner,
      { credential },
      isFresh ? known.principal : null,
    )
    if (!isFresh) this.#known.set(name, { principal, readAt })
    return principal
  }
}
