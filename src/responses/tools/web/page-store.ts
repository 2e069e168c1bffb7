import type { Clock } from '../../../lib/clock.ts'
import type { HostedCall } from '../hosted-tool.ts'
import type { WebPage } from './load-page.ts'

/** Characters of all pages in an isolate, at most two bytes each. */
const MOST_CHARACTERS = 8_000_000
const MOST_PAGES = 200
/** One organization may have this part of the store, so that it cannot evict all pages of the others. */
const SHARE = 1 / 4
/** Memory of a link besides its texts, in characters. */
const LINK_CHARACTERS = 64
const FRESH_MS = 10 * 60_000

interface StoredPage {
  workspace: string
  organizationId: string
  /** The requested address. */
  address: string
  page: WebPage
  /** Size in characters. */
  size: number
  openedAt: number
}

/** The workspace of a call: what one caller opened in one conversation is not visible in another. */
type Workspace = Pick<HostedCall, 'owner' | 'workspaceId'>

/**
 * The pages that conversations have opened in this isolate, for some minutes: to read on without another request, and to
 * search in them. The oldest are evicted first, of an organization that has more than its share, and then of all; a page
 * that is gone is fetched again.
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
    const { organizationId } = call.owner
    const size = sizeOf(page)
    this.#pages.push({ workspace, organizationId, address, page, size, openedAt: this.#clock() })
    this.#evict(SHARE, (stored) => stored.organizationId === organizationId)
    this.#evict(1, () => true)
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

  /** @param part of the store that the counted pages may have. The newest page is never evicted. */
  #evict(part: number, isCounted: (stored: StoredPage) => boolean): void {
    const counted = this.#pages.filter(isCounted)
    let characters = counted.reduce((sum, { size }) => sum + size, 0)
    while (
      counted.length > 1 &&
      (characters > part * MOST_CHARACTERS || counted.length > part * MOST_PAGES)
    ) {
      const [oldest] = counted.splice(0, 1) as [StoredPage]
      characters -= oldest.size
      this.#pages.splice(this.#pages.indexOf(oldest), 1)
    }
  }
}

const sizeOf = ({ title, text, links }: WebPage): number =>
  links.reduce((sum, link) => sum + link.url.length + link.text.length + LINK_CHARACTERS, 0) +
  title.length +
  text.length

const keyOf = ({ owner, workspaceId }: Workspace): string =>
  JSON.stringify([owner.organizationId, owner.userId, workspaceId])
