import type { Database } from '../../../schema/database.ts'
import type { OutputItem, ResponseObject } from '../../wire/responses.ts'
import type { ContentStore } from '../content/content-store.ts'
import { itemBytes } from '../items/item-bytes.ts'
import type { StoredNumbers } from '../model/events.ts'
import { outputTextOf } from '../model/response-members.ts'
import type { Owner } from '../model/types.ts'
import { selectResponse } from '../store/read-responses.store.ts'

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/** The JSON of a response in its row. */
export type StoredBody = Omit<ResponseObject, 'output' | 'output_text' | 'compatibility'> & {
  /** `StoredNumbers.items`. */
  item_numbers: number[][]
  /** Micro-credits of its calls; responses of earlier releases have none. */
  cost?: number
}

/** An ended response, and the numbers of its events. */
export interface EndedResponse {
  response: ResponseObject
  numbers: StoredNumbers
  /** Micro-credits of its calls. */
  cost: number
}

/**
 * An ended response from Postgres and the content store.
 * @returns null for one that is missing, another owner's, or has not ended: its object has it then.
 * @throws when either store is not available.
 */
export async function storedResponse(
  deps: { database: Database; contentStore: ContentStore },
  owner: Owner,
  id: string,
): Promise<EndedResponse | null> {
  const row = await selectResponse(deps.database, owner, id)
  if (row === null || row.body === null) return null
  const items = await Promise.all(row.output.map((item) => itemBytes(deps, item)))
  const output = items.map((bytes) => JSON.parse(decoder.decode(bytes)) as OutputItem)
  const { item_numbers: numbers, cost = 0, ...body } = JSON.parse(row.body) as StoredBody
  const { compatibility } = row
  return {
    response: {
      ...body,
      output,
      output_text: outputTextOf(output),
      ...(compatibility !== 'headgate' && { compatibility }),
    },
    numbers: { items: numbers, last: row.lastSequence ?? 0 },
    cost,
  }
}
