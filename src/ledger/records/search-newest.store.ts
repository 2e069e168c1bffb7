import { and, getTableColumns, type SQL, sql } from 'drizzle-orm'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import type { Database } from '../../../schema/database.ts'
import { READ_IN_ORDER } from '../../../schema/read-in-order.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { beyond, microseconds, newestFirst, toPage } from '../changes/scoped-statements.store.ts'

interface Search {
  table: PgTable & { at: PgColumn; id: PgColumn }
  /** The rows of one index, in whose order they are read. */
  bounds: SQL | undefined
  /** What a row has to fulfil besides; none where every row is wanted. */
  wanted: SQL | undefined
  /** Rows that one page examines. */
  most: number
  page: PageRequest
}

type Examined<Row> = Row & { isWanted: boolean; positionAt: number; place: number }

/**
 * Searches rows, newest first. A page may have fewer rows than its limit, or none, although another one follows: no more than `most` are
 * read for it.
 */
export async function searchNewest<Row extends { id: string }>(
  database: Database,
  { table, bounds, wanted, most, page }: Search,
): Promise<Page<Row>> {
  const { at, id } = table
  // The limit bounds what is read only as long as nothing between it and the table, such as a window, needs all rows.
  const examined = database
    .select({
      ...getTableColumns(table),
      isWanted: sql<boolean>`coalesce(${wanted ?? sql`true`}, false)`.as('is_wanted'),
      positionAt: microseconds(at).as('position_at'),
    })
    .from(table)
    .where(and(bounds, beyond(at, id, page.after)))
    .orderBy(...newestFirst(at, id))
    .limit(wanted === undefined ? page.limit + 1 : most)
    .as('examined')
  const numbered = database
    .select({
      ...examined._.selectedFields,
      place: sql<number>`row_number() OVER (ORDER BY examined.at DESC, examined.id DESC)`
        .mapWith(Number)
        .as('place'),
    })
    .from(examined)
    .as('numbered')
  const rows = database
    .select()
    .from(numbered)
    .where(sql`${numbered.isWanted} OR ${numbered.place} = ${most}`)
    .orderBy(numbered.place)
    .limit(page.limit + 1)
  const [, found] = await database.batch([database.execute(READ_IN_ORDER), rows])
  return searchedPage(found as unknown as Array<Examined<Row>>, most, page)
}

/** The wanted rows. The last row that was examined is with them, to go on after it. */
function searchedPage<Row extends { id: string }>(
  rows: Array<Examined<Row>>,
  most: number,
  page: PageRequest,
): Page<Row> {
  const positionOf = ({ positionAt, id }: Examined<Row>) => ({ at: positionAt, id })
  const wanted = rows.filter((row) => row.isWanted)
  const found = toPage(wanted, page, positionOf)
  const last = rows.find(({ place }) => place === most)
  const next = found.next ?? (last ? positionOf(last) : null)
  return {
    rows: found.rows.map(({ isWanted: _, positionAt: __, place: ___, ...row }) => row as unknown as Row),
    next,
  }
}
