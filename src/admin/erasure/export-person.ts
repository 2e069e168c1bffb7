import { type ChangeScope, recordView } from '../../ledger/changes/audited-change.ts'
import { ContentGoneError, type ContentStore } from '../../responses/content/content-store.ts'
import type { Owner } from '../../responses/model/types.ts'
import { readMember } from '../members.ts'
import {
  type ExportedRow,
  selectCallsOf,
  selectItemsOf,
  selectPersonRows,
  selectRowsById,
} from './exported-person.store.ts'
import {
  type Position,
  selectOwnConversations,
  selectOwnResponses,
  selectOwnRuns,
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
/** Responses whose items are read at once. */
const BATCH = 20

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
  deps: ExportDeps,
  { database }: ChangeScope,
  owner: Owner,
): AsyncGenerator<ExportedPart> {
  for (const { type, rows } of await selectPersonRows(database, owner)) {
    for (const data of rows) yield { type, data }
  }
  for await (const ids of pagesOf((after) => selectOwnRuns(database, owner, after, PAGE))) {
    for (const data of await selectRowsById(database, 'runs', owner, ids)) yield { type: 'run', data }
  }
  for await (const ids of pagesOf((after) => selectOwnConversations(database, owner, after, PAGE))) {
    for (const data of await selectRowsById(database, 'conversations', owner, ids)) {
      yield { type: 'conversation', data }
    }
  }
  for await (const ids of pagesOf((after) => selectOwnResponses(database, owner, after, PAGE))) {
    for (let start = 0; start < ids.length; start += BATCH) {
      yield* responsesOf(deps, database, owner, ids.slice(start, start + BATCH))
    }
  }
  let after: Position | null = null
  do {
    const { rows, next }: { rows: ExportedRow[]; next: Position | null } = await selectCallsOf(
      database,
      owner,
      after,
      PAGE,
    )
    for (const data of rows) yield { type: 'call', data }
    after = next
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

async function* responsesOf(
  { contentStore }: ExportDeps,
  database: ChangeScope['database'],
  owner: Owner,
  ids: readonly string[],
): AsyncGenerator<ExportedPart> {
  for (const data of await selectRowsById(database, 'responses', owner, ids)) yield { type: 'response', data }
  for (const { content_key: key, ...item } of await selectItemsOf(database, owner, ids)) {
    const body = key === null ? item.body : await contentOf(contentStore, String(key))
    yield { type: 'item', data: { ...item, body } }
  }
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
