import { and, desc, eq, type SQL, sql } from 'drizzle-orm'
import type { BatchItem } from 'drizzle-orm/batch'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { Database } from '../../../schema/database.ts'
import { organizations } from '../../../schema/identity.ts'
import { deploymentEpochs } from '../../../schema/models.ts'
import type { Page, PagePosition, PageRequest } from '../../wire/page-cursor.ts'

// Statements that the stores of management changes share: raised epochs, and pages that are stable while rows are
// added.

/** The database, and the organization whose rows a statement may read and change. */
export interface OrganizationScope {
  database: Database
  organizationId: string
}

/** The result of a change of rights or of the catalogue, and the epoch that makes every isolate read them anew. */
export interface EpochChange<Result> {
  result: Result
  epoch: number
}

type Statement = BatchItem<'pg'>
type LastResult<Statements> = Statements extends readonly [...unknown[], infer Last extends Statement]
  ? Last['_']['result']
  : never

/**
 * Changes an organization's rights and raises its epoch in one transaction, so that no reader sees the one without the
 * other. Raising comes first: its row lock lets one change of an organization run at a time.
 * @returns the result of the last statement.
 */
export async function raisingEpoch<const Statements extends readonly [Statement, ...Statement[]]>(
  { database, organizationId }: OrganizationScope,
  ...statements: Statements
): Promise<EpochChange<LastResult<Statements>>> {
  const raise = database
    .update(organizations)
    .set({ epoch: sql`${organizations.epoch} + 1` })
    .where(eq(organizations.id, organizationId))
    .returning({ epoch: organizations.epoch })
  const [raised, ...results] = await database.batch([raise, ...statements])
  return { result: results.at(-1) as LastResult<Statements>, epoch: raisedEpoch(raised) }
}

/** Raises the epoch of providers and models, deployment-wide. A row that is missing counts as epoch 1. */
export function raiseCatalogueEpoch(database: Database) {
  return database
    .insert(deploymentEpochs)
    .values({ name: 'catalogue', epoch: 2 })
    .onConflictDoUpdate({
      target: deploymentEpochs.name,
      set: { epoch: sql`${deploymentEpochs.epoch} + 1` },
    })
    .returning({ epoch: deploymentEpochs.epoch })
}

/** The epoch that a raising statement returned. @throws if the row was missing. */
export function raisedEpoch(rows: Array<{ epoch: number }>): number {
  const [row] = rows
  if (row === undefined) throw new Error('no epoch was raised')
  return row.epoch
}

/** The row that an insertion returned. @throws if there is none. */
export function insertedRow<Row>([row]: readonly Row[], name: string): Row {
  if (row === undefined) throw new Error(`the ${name} was not inserted`)
  return row
}

/** The value of a `disabled_at` column: the first time of disabling stays, enabling clears it. */
export const disabledSince = (column: PgColumn, disabled: boolean) =>
  disabled ? sql`coalesce(${column}, now())` : null

/** A timestamp read without losing the microseconds that JavaScript's Date has no room for. */
export const microseconds = (column: PgColumn) =>
  sql<number>`(extract(epoch from ${column}) * 1000000)::bigint`.mapWith(Number)

/** Newest first. The id decides between rows of one instant. */
export const newestFirst = (at: PgColumn, id: PgColumn | SQL) => [desc(at), sql`${id}::text desc`]

/** Rows that come after a position in `newestFirst` order. */
export function beyond(at: PgColumn, id: PgColumn | SQL, after: PagePosition | null): SQL | undefined {
  if (after === null) return undefined
  const instant = sql`'epoch'::timestamptz + ${after.at}::double precision * interval '1 microsecond'`
  return sql`(${at}, ${id}::text) < (${instant}, ${after.id})`
}

/** The position of a row in `newestFirst` order, as a member of its selection. */
type PositionColumns = { at: SQL<number>; id: SQL<string> }

interface PageStatement<Row> {
  orderBy(...columns: SQL[]): { limit(limit: number): PromiseLike<Row[]> }
}

/**
 * Selects one page, newest first.
 * @param at when a row was made, `id` its id; both are what a cursor points to.
 * @param select builds the statement: it selects `position` beside the columns of a row, and filters by `isAfter`.
 */
export async function selectPage<Row extends { position: PagePosition }>(
  page: PageRequest,
  { at, id }: { at: PgColumn; id: PgColumn | SQL },
  select: (position: PositionColumns, isAfter: SQL | undefined) => PageStatement<Row>,
): Promise<Page<Row>> {
  const position = { at: microseconds(at), id: sql<string>`${id}::text` }
  const rows = await select(position, beyond(at, id, page.after))
    .orderBy(...newestFirst(at, id))
    .limit(page.limit + 1)
  return toPage(rows, page, (row) => row.position)
}

/** Cuts the row beyond the limit, which exists where there is a next page. */
export function toPage<Row>(
  rows: Row[],
  page: PageRequest,
  positionOf: (row: Row) => PagePosition,
): Page<Row> {
  const shown = rows.slice(0, page.limit)
  const last = shown.at(-1)
  return { rows: shown, next: rows.length > page.limit && last !== undefined ? positionOf(last) : null }
}

/** The first and the last instant of which JavaScript and Postgres have the same text: neither year 0 nor 10000. */
const FIRST_INSTANT = Date.parse('0001-01-01T00:00:00Z')
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

/** Whether Postgres reads the ISO text of a date. */
export const isStorableInstant = (date: Date) =>
  date.getTime() >= FIRST_INSTANT && date.getTime() <= LAST_INSTANT

const nearestStorable = (date: Date) =>
  new Date(Math.min(Math.max(date.getTime(), FIRST_INSTANT), LAST_INSTANT)).toISOString()

/** Conditions of a period over `at`: from inclusive, to exclusive. */
export function within(
  at: PgColumn,
  period: { from?: Date | undefined; to?: Date | undefined },
): SQL | undefined {
  return and(
    period.from && sql`${at} >= ${nearestStorable(period.from)}::timestamptz`,
    period.to && sql`${at} < ${nearestStorable(period.to)}::timestamptz`,
  )
}

/** The condition that a column has a value; none where the filter names none. */
export const equal = (column: PgColumn, value: string | number | undefined): SQL | undefined =>
  value === undefined ? undefined : eq(column, value)
