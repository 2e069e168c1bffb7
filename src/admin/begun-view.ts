import { type ChangeScope, type Intent, recordView } from '../ledger/changes/audited-change.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { currentKey, hmacSha256Hex, secretsEqual } from '../lib/crypto.ts'
import type { Page, PagePosition, PageRequest } from '../wire/page-cursor.ts'

/**
 * Reading a list page by page is one view, recorded with its first page. Each cursor proves by a MAC that this caller began the view with
 * this filter, so that scrolling does not fill the chain with views. Nothing is stored for it.
 */

/** A view goes on for so long after its first page, in milliseconds. */
const LASTS_MS = 60 * 60_000

/** What a view is of: a cursor continues no other one. */
interface Viewed {
  list: 'audit' | 'calls'
  filter: object
  limit: number
}

type ViewScope = Pick<ChangeScope, 'organizationId' | 'actor' | 'pepperRing' | 'clock'>

/**
 * Reads a page of a list, after its view is recorded: once for all pages that are read with the cursors of the first one.
 * @throws ApiError `internal` when the view cannot be recorded.
 */
export async function readInView<Row>(
  scope: ChangeScope,
  intent: Pick<Intent, 'action'> & Omit<Viewed, 'limit'>,
  page: PageRequest,
  read: () => Promise<Page<Row>>,
): Promise<Page<Row>> {
  const { action, list, filter } = intent
  const viewed = { list, filter, limit: page.limit }
  let begunAt = viewBegunAt(scope, viewed, page.after)
  if (begunAt === null) {
    begunAt = scope.clock()
    const detail = { filter, limit: page.limit, further_page: page.after !== null }
    await recordView(scope, { action, resource: list, detail })
  }
  const { rows, next } = await read()
  return { rows, next: next && withinView(scope, viewed, next, begunAt) }
}

/**
 * When the view of a page was begun and recorded, in milliseconds since the epoch; null where the page begins one. That is the first
 * page, and one whose cursor is of another caller, list or filter, too old, or not of this gateway.
 * @internal Tests forge cursors.
 */
export function viewBegunAt(scope: ViewScope, viewed: Viewed, after: PageRequest['after']): number | null {
  if (!after?.view) return null
  const { at, mac } = after.view
  if (scope.clock() - at >= LASTS_MS) return null
  const text = statementOf(scope, viewed, after, at)
  const isOurs = [...scope.pepperRing.values()].some((key) => secretsEqual(hmacSha256Hex(key, text), mac))
  return isOurs ? at : null
}

/**
 * A position whose cursor goes on with a view.
 * @internal Tests forge cursors.
 */
export function withinView(
  scope: ViewScope,
  viewed: Viewed,
  next: PagePosition,
  begunAt: number,
): PagePosition {
  const mac = hmacSha256Hex(currentKey(scope.pepperRing).key, statementOf(scope, viewed, next, begunAt))
  return { at: next.at, id: next.id, view: { at: begunAt, mac } }
}

/** The pepper digests keys and attests chains as well; no text of those begins as this one. */
function statementOf(
  { organizationId, actor }: ViewScope,
  viewed: Viewed,
  { at, id }: PagePosition,
  begunAt: number,
): string {
  const caller = [actor.administrator, actor.userId, actor.session ?? null]
  // Values of filters become the texts that a query has them as.
  const stated = JSON.parse(JSON.stringify({ organizationId, caller, viewed, at, id, begunAt }))
  return `view of a list:${canonicalJson(stated)}`
}
