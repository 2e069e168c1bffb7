import type { Database } from '../../../schema/database.ts'
import type { OutputItem, ResponseObject } from '../../wire/responses.ts'
import type { ContentStore } from '../content/content-store.ts'
import { itemBytes } from '../items/stored-items.ts'
import { selectResponse } from '../response-queries.store.ts'
import type { Owner } from '../types.ts'
import { outputTextOf } from './response-members.ts'

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/**
 * A response as Postgres and the content store have it.
 * @returns null for one that is not the owner's, and for one that has not ended: only its object knows that.
 * @throws when either store is away.
 */
export async function storedResponse(
  deps: { database: Database; contentStore: ContentStore },
  owner: Owner,
  id: string,
): Promise<ResponseObject | null> {
  const row = await selectResponse(deps.database, owner, id)
  if (row === null || row.body === null) return null
  const items = await Promise.all(row.output.map((item) => itemBytes(deps, item)))
  const output = items.map((bytes) => JSON.parse(decoder.decode(bytes)) as OutputItem)
  return { ...(JSON.parse(row.body) as ResponseObject), output, output_text: outputTextOf(output) }
}
