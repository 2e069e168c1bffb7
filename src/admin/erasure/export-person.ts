import { type ChangeScope, recordView } from '../../ledger/changes/audited-change.ts'
import { ContentGoneError, type ContentStore } from '../../responses/content/content-store.ts'
import type { Owner } from '../../responses/model/types.ts'
import { readMember } from '../members.ts'
import {
  type ExportedRow,
  type ListedType,
  type RowSize,
  selectCallsOf,
  selectItemSizes,
  selectPersonRows,
  selectRowsById,
  selectSizes,
} from './exported-person.store.ts'
import {
  type Position,
  selectOwnConversations,
  selectOwnResponses,
  selectOwnRuns,
  selectRunsInProgress,
} from './person-rows.store.ts'

/** A line of an export. */
interface ExportedPart {
  type: string
  data: ExportedRow
}

interface ExportDeps {
  contentStore: Pick<ContentStore, 'get'>
}

const PAGE = 5_000
/** Responses whose items are listed at once. */
const BATCH = 20
/** Rows that are read at once, and the bytes that their long texts may have together. */
const PORTION = 500
const PORTION_BYTES = 4 * 1024 * 1024

/**
 * Reads the data of a person in the organization, part by part, without credentials. That it is read is recorded before.
 * @throws ApiError `not_found`; `internal` when the view cannot be recorded.
 */
export async function exportPerson(
  deps: ExportDeps,
  scope: ChangeScope,
  userId: string,
): Promise<AsyncGenerator<ExportedPart>> {
  await readMember(scope, userId)
  await recordView(scope, { action: 'user.exported', resource: `users/${userId}`, detail: {} })
  return partsOf(deps, scope, { organizationId: scope.organizationId, userId })
}

async function* partsOf(
  { contentStore }: ExportDeps,
  { database }: ChangeScope,
  owner: Owner,
): AsyncGenerator<ExportedPart> {
  for (const { type, rows } of await selectPersonRows(database, owner)) {
    for (const data of rows) yield { type, data }
  }
  yield* runsOf(database, owner)
  for await (const ids of pagesOf((after) => selectOwnConversations(database, owner, after, PAGE))) {
    yield* rowsOf(database, 'conversation', owner, await selectSizes(database, 'conversation', owner, ids))
  }
  for await (const ids of pagesOf((after) => selectOwnResponses(database, owner, after, PAGE))) {
    for (let start = 0; start < ids.length; start += BATCH) {
      const batch = ids.slice(start, start + BATCH)
      yield* rowsOf(database, 'response', owner, await selectSizes(database, 'response', owner, batch))
      const items = rowsOf(database, 'item', owner, await selectItemSizes(database, owner, batch))
      for await (const { data } of items) yield { type: 'item', data: await withContent(contentStore, data) }
    }
  }
  yield* callsOf(database, owner)
}

/** Runs that have ended, then those that were in progress at the beginning and were not among them. */
async function* runsOf(database: ChangeScope['database'], owner: Owner): AsyncGenerator<ExportedPart> {
  const left = new Set(await selectRunsInProgress(database, owner))
  for await (const ids of pagesOf((after) => selectOwnRuns(database, owner, after, PAGE))) {
    for (const id of ids) left.delete(id)
    yield* rowsOf(database, 'run', owner, await selectSizes(database, 'run', owner, ids))
  }
  const ids = [...left]
  for (let start = 0; start < ids.length; start += PORTION) {
    const portion = ids.slice(start, start + PORTION)
    yield* rowsOf(database, 'run', owner, await selectSizes(database, 'run', owner, portion))
  }
}

/** Reads rows in portions: their sizes are known before, so that long texts of many rows are never in memory together. */
async function* rowsOf(
  database: ChangeScope['database'],
  type: ListedType,
  owner: Owner,
  sizes: readonly RowSize[],
): AsyncGenerator<ExportedPart> {
  for (const ids of portionsOf(sizes)) {
    for (const data of await selectRowsById(database, type, owner, ids)) yield { type, data }
  }
}

/** Ids of rows that are read at once: of `PORTION_BYTES` together, or of one row that has more. */
function* portionsOf(sizes: readonly RowSize[]): Generator<string[]> {
  let [ids, total]: [string[], number] = [[], 0]
  for (const { id, bytes } of sizes) {
    if (ids.length === PORTION || (ids.length > 0 && total + bytes > PORTION_BYTES)) {
      yield ids
      ;[ids, total] = [[], 0]
    }
    ids.push(id)
    total += bytes
  }
  if (ids.length > 0) yield ids
}

async function* callsOf(database: ChangeScope['database'], owner: Owner): AsyncGenerator<ExportedPart> {
  let after: Position | null = null
  do {
    const page: Awaited<ReturnType<typeof selectCallsOf>> = await selectCallsOf(database, owner, after, PAGE)
    for (const data of page.rows) yield { type: 'call', data }
    after = page.next
  } while (after !== null)
}

async function* pagesOf(
  read: (after: Position | null) => Promise<{ rows: Position[]; next: Position | null }>,
): AsyncGenerator<string[]> {
  let after: Position | null = null
  do {
    const { rows, next }: { rows: Position[]; next: Position | null } = await read(after)
    yield rows.map(({ id }) => id)
    after = next
  } while (after !== null)
}

/** The item with its content, also where the content store has it, which is read one item at a time. */
async function withContent(
  contentStore: ExportDeps['contentStore'],
  { content_key: key, ...item }: ExportedRow,
): Promise<ExportedRow> {
  return key === null ? item : { ...item, body: await contentOf(contentStore, String(key)) }
}

/** @returns null for content that was erased meanwhile. */
async function contentOf(contentStore: Pick<ContentStore, 'get'>, key: string): Promise<string | null> {
  try {
    return new TextDecoder().decode(await contentStore.get(key))
  } catch (error) {
    if (error instanceof ContentGoneError) return null
    throw error
  }
}
