import * as z from 'zod'
import { DEPLOYMENT_ORGANIZATION_ID } from '../audit-record.ts'
import type { ChainHead, ChainIdentity } from './chain.ts'
import type { RecordBody } from './record-body.ts'

/**
 * Rows of tables without a chain of their own, which records of the deployment's chain state after they were written: a
 * row that was changed or deleted later differs from its record.
 */

/** A row by the name of its key, with the value that a record states of it. */
export interface StatedRow {
  table: 'audit_checkpoints' | 'rejected_calls'
  name: string
  value: string
}

export const CHECKPOINT_STORED = 'audit_checkpoint.stored'
export const REJECTED_CALLS_COUNTED = 'rejected_calls.counted'

interface StoredCheckpoint {
  id: string
  at: Date
  heads: Array<ChainIdentity & ChainHead>
  pepperId: string
  mac: string
}

/** Rejected calls of an address and surface in a minute, which is ISO 8601 text. */
type StatedCount = [ip: string, minute: string, surface: string, count: number]

/** Without the members of the row in records of earlier versions, and where they were too long. */
const checkpointDetail = z.object({
  checkpoint_id: z.string(),
  mac: z.string(),
  row: z
    .object({
      at: z.iso.datetime(),
      pepper_id: z.string(),
      heads: z.array(
        z.object({ organizationId: z.uuid(), shard: z.int(), sequence: z.int(), hash: z.string() }),
      ),
    })
    .optional(),
})
/** Length of the JSON of the heads that a record states; those of more than a thousand chains are longer. */
const MOST_HEADS_LENGTH = 200_000
const countsDetail = z.object({
  counts: z.array(z.tuple([z.string(), z.iso.datetime(), z.string(), z.number()])),
})

/** The detail of a record with the action `CHECKPOINT_STORED`: the whole row, from which one that was lost is written again. */
export function checkpointStatement({ id, mac, at, pepperId, heads }: StoredCheckpoint) {
  const name = { checkpoint_id: id, mac }
  const statement: z.infer<typeof checkpointDetail> =
    JSON.stringify(heads).length > MOST_HEADS_LENGTH
      ? name
      : { ...name, row: { at: at.toISOString(), pepper_id: pepperId, heads } }
  return statement
}

/** The detail of a record with the action `REJECTED_CALLS_COUNTED`. @param counts minutes are their first millisecond. */
export const countsStatement = (
  counts: ReadonlyArray<{ ip: string; minute: number; surface: string; count: number }>,
) => ({
  counts: counts.map(
    ({ ip, minute, surface, count }): StatedCount => [ip, new Date(minute).toISOString(), surface, count],
  ),
})

export const checkpointRow = (id: string, mac: string): StatedRow => ({
  table: 'audit_checkpoints',
  name: id,
  value: mac,
})

export const rejectedRow = ([ip, minute, surface, count]: StatedCount): StatedRow => ({
  table: 'rejected_calls',
  name: JSON.stringify([ip, minute, surface]),
  value: String(count),
})

/** The minute of a stated row of rejected calls, as ISO 8601 text. */
export const minuteOf = ({ name }: StatedRow): string => String((JSON.parse(name) as string[])[1])

/** The rows that a record states; none for a detail that is no statement. */
export function statedRowsOf(body: RecordBody): StatedRow[] {
  if (body.kind !== 'change' || body.organizationId !== DEPLOYMENT_ORGANIZATION_ID) return []
  if (body.action === CHECKPOINT_STORED) {
    const { data } = checkpointDetail.safeParse(body.detail)
    return data ? [checkpointRow(data.checkpoint_id, data.mac)] : []
  }
  if (body.action !== REJECTED_CALLS_COUNTED) return []
  const { data } = countsDetail.safeParse(body.detail)
  return data?.counts.map(rejectedRow) ?? []
}

/** The checkpoint that a record states; null for any other record, and for a statement without the whole row. */
export function statedCheckpointOf(body: RecordBody): StoredCheckpoint | null {
  if (body.kind !== 'change' || body.action !== CHECKPOINT_STORED) return null
  const { data } = checkpointDetail.safeParse(body.detail)
  if (!data?.row || !z.uuid().safeParse(data.checkpoint_id).success) return null
  const { at, pepper_id: pepperId, heads } = data.row
  return { id: data.checkpoint_id, mac: data.mac, at: new Date(at), pepperId, heads }
}

/** The counts that a record states. */
export function statedCountsOf(body: RecordBody) {
  if (body.kind !== 'change' || body.action !== REJECTED_CALLS_COUNTED) return []
  const { data } = countsDetail.safeParse(body.detail)
  return (data?.counts ?? []).map(([ip, minute, surface, count]) => ({
    ip,
    minute: Date.parse(minute),
    surface,
    count,
  }))
}

export const isSameRow = (left: StatedRow, right: StatedRow): boolean =>
  left.table === right.table && left.name === right.name
