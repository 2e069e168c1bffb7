import type pg from 'pg'

// How millions of rows are inserted in minutes: without a write-ahead log, and with each index built once, after the rows.

/** Makes every table unlogged. */
export async function omitFromLog(client: pg.Client): Promise<void> {
  const { rows: references } = await client.query<{ from: string; to: string }>(`
    SELECT conrelid::regclass::text AS from, confrelid::regclass::text AS to FROM pg_constraint
    WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conrelid <> confrelid`)
  const logged = new Set(await tableNames(client))
  while (logged.size > 0) {
    // A logged table may not name rows of an unlogged one.
    const free = [...logged].filter(
      (name) => !references.some(({ from, to }) => to === name && logged.has(from)),
    )
    if (free.length === 0) throw new Error(`tables that name each other: ${[...logged].join(', ')}`)
    for (const name of free) {
      await client.query(`ALTER TABLE ${name} SET UNLOGGED`)
      logged.delete(name)
    }
  }
}

/** Inserts leave the indexes as they are until `rebuildIndexes`, also those of primary keys. Only the load may run meanwhile. */
export async function suspendIndexes(client: pg.Client): Promise<void> {
  await client.query(`UPDATE pg_index SET indisready = false FROM pg_class
    WHERE pg_class.oid = indrelid AND relnamespace = 'public'::regnamespace AND relkind = 'r'`)
}

/** @throws if rows that were inserted meanwhile have a key in common. */
export async function rebuildIndexes(client: pg.Client): Promise<void> {
  for (const name of await tableNames(client)) await client.query(`REINDEX TABLE ${name}`)
}

async function tableNames(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`,
  )
  return rows.map(({ name }) => name)
}
