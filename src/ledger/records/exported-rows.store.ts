import { getTableColumns } from 'drizzle-orm'
import { auditRecords, calls, creditEntries, usageEvents } from '../../../schema/governance.ts'
import type { CallRow, CreditRow, RecordWithRows, UsageRow } from './extracted-rows.ts'
import type { StoredRecord } from './record-body.ts'
import type { StatedRow } from './stated-rows.ts'

const TABLES = {
  audit_records: auditRecords,
  calls,
  usage_events: usageEvents,
  credit_entries: creditEntries,
}

interface Rows {
  audit_records: StoredRecord
  calls: CallRow
  usage_events: UsageRow
  credit_entries: CreditRow
}

/** A row under the names of its columns, as an export has it. */
type ExportedRow = Record<string, unknown>

interface ExportedRecord {
  record: ExportedRow
  /** Left out by exports of earlier versions. */
  call?: ExportedRow | null | undefined
  usage: ExportedRow | null
  credits: ExportedRow[]
  stated: StatedRow[]
}

export function exportedRow<Table extends keyof Rows>(table: Table, row: Rows[Table]): ExportedRow {
  const values = new Map(Object.entries(row))
  return Object.fromEntries(columnsOf(table).map(([member, name]) => [name, values.get(member)]))
}

export const exportedRecord = ({ record, call, usage, credits, stated }: RecordWithRows): ExportedRecord => ({
  record: exportedRow('audit_records', record),
  call: call && exportedRow('calls', call),
  usage: usage && exportedRow('usage_events', usage),
  credits: credits.map((row) => exportedRow('credit_entries', row)),
  stated,
})

/** The reverse of `exportedRecord`. Values are not checked: a verification compares each of them. */
export const importedRecord = ({ record, call, usage, credits, stated }: ExportedRecord): RecordWithRows => ({
  record: importedRow('audit_records', record),
  call: call ? importedRow('calls', call) : null,
  usage: usage && importedRow('usage_events', usage),
  credits: credits.map((row) => importedRow('credit_entries', row)),
  stated,
})

function importedRow<Table extends keyof Rows>(table: Table, row: ExportedRow): Rows[Table] {
  const members = columnsOf(table).map(([member, name]) => [
    member,
    member === 'at' ? new Date(String(row[name])) : row[name],
  ])
  return Object.fromEntries(members)
}

const columnsOf = (table: keyof Rows): Array<[member: string, name: string]> =>
  Object.entries(getTableColumns(TABLES[table])).map(([member, { name }]) => [member, name])
