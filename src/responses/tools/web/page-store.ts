import type { Clock } from '../../../lib/clock.ts'
import type { HostedCall } from '../hosted-tool.ts'
import type { WebPage } from './load-page.ts'

/** Characters of all pages in an isolate, at most two bytes each. */
const MOST_CHARACTERS = 8_000_000
const MOST_PAGES = 200
const FRESH_MS = 10 * 60_000

interface StoredPage {
  workspace: string
  /** As it was requested. */
  address: string
  page: WebPage
  openedAt: number
}

/** The workspace of a call: what one caller opened in one conversation is not visible in another. */
type Workspace = Pick<HostedCall, 'owner' | 'workspaceId'>

/**
 * The pages that conversations have opened in this isolate, for some minutes: to read on without another request, and to
 * search in them. The oldest are evicted first; a page that is gone is fetched again.
 */
export class PageStore {
  readonly #clock: Clock
  readonly #pages: StoredPage[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(call: Workspace, address: string, page: WebPage): void {
    const workspace = keyOf(call)
    const known = this.#pages.findIndex(
      (stored) => stored.workspace === workspace && stored.address === address,
    )
    if (known >= 0) this.#pages.splice(known, 1)
    this.#pages.push({ workspace, address, page, openedAt: this.#clock() })
    this.#evict()
  }

  get(call: Workspace, address: string): WebPage | null {
    const workspace = keyOf(call)
    return (
      this.#fresh().find((stored) => stored.workspace === workspace && stored.address === address)?.page ??
      null
    )
  }

  /** The pages of a conversation, newest first. */
  all(call: Workspace): WebPage[] {
    const workspace = keyOf(call)
    return this.#fresh()
      .flatMap((stored) => (stored.workspace === workspace ? [stored.page] : []))
      .reverse()
  }

  #fresh(): StoredPage[] {
    const from = this.#clock() - FRESH_MS
    while ((this.#pages[0]?.openedAt ?? from) < from) this.#pages.shift()
    return this.#pages
  }

  #evict(): void {
    let characters = this.#pages.reduce((sum, { page }) => sum + page.text.length, 0)
    while (this.#pages.length > 1 && (characters > MOST_CHARACTERS || this.#pages.length > MOST_PAGES)) {
      characters -= this.#pages.shift()?.page.text.length ?? 0
    }
  }
}

const keyOf = ({ owner, workspaceId }: Workspace): string =>
  JSON.stringify([owner.organizationId, owner.userId, workspaceId])
