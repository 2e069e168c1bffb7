import type pg from 'pg'
import { omitFromLog, rebuildIndexes, suspendIndexes } from './bulk-load.ts'

/**
 * Grows every table by copies of the rows that the gateway wrote, so that a new table grows without being listed here. A copy
 * gets ids of its own where its owner's are kept: rows of the same user, of other users, and of other organizations.
 */

/** Tables whose rows people administer. An organization has few of them; all others get a row with a call, a run or an hour. */
const CONFIGURATION = [
  'organizations',
  'users',
  'memberships',
  'groups',
  'group_memberships',
  'entitlements',
  'api_keys',
  'passkeys',
  // Deleted within a week of their beginning.
  'sessions',
  'setup_links',
  'providers',
  'models',
  'model_routes',
  'grants',
  'deployment_epochs',
  'integrations',
  'integration_grants',
  'tool_definitions',
  'tool_catalogues',
  'connections',
  'connection_shares',
  'connection_preferences',
  'agents',
  'agent_versions',
  'agent_triggers',
  'dlp_policies',
  'dlp_policy_versions',
  // One for each chain.
  'prunings',
]

/** Tables of the deployment or of an organization, independent of its users. */
const DEPLOYMENT = ['providers', 'models', 'model_routes', 'deployment_epochs']
const OF_ORGANIZATION = [
  'organizations',
  'groups',
  'integrations',
  'tool_definitions',
  'dlp_policies',
  'dlp_policy_versions',
  'agents',
  'agent_versions',
  'agent_triggers',
]

interface Family {
  /** Tables whose rows the copies share. */
  shared: readonly string[]
  /** Whether the shared tables get rows too: those of an organization or of the deployment that people have made. */
  growsShared: boolean
  /** Rows of each table, of so many of the largest tables. */
  rows: (size: number) => number
}

const FAMILIES: readonly Family[] = [
  { shared: CONFIGURATION, growsShared: false, rows: (size) => size },
  {
    shared: [...DEPLOYMENT, ...OF_ORGANIZATION],
    growsShared: true,
    rows: (size) => Math.min(size / 20, 2_000),
  },
  { shared: DEPLOYMENT, growsShared: false, rows: (size) => size / 10 },
]

interface Column {
  name: string
  type: string
}

interface Table {
  name: string
  columns: Column[]
  /** Columns of each unique index, the primary key first. */
  keys: string[][]
}

type Row = Record<string, string | null>

const SECONDS_APART = 10
/** Rows of each table that are copied, besides those that they name. */
const ROWS_OF_TABLE = 3
/** Distance between the numbers of copies; the gateway's own numbers stay below it. */
const STRIDE = 100_000
/** Distance for columns of 32 bits. */
const SMALL_STRIDE = 1_000

/** The rows that copies are made of. Taken once, so that copies are not copied. */
export class TableGrowth {
  readonly #client: pg.Client
  readonly #tables: Array<Table & { rows: Row[] }>
  /** For each family, how many copies of each row there are. */
  readonly #copies = new Map<string, number>()

  private constructor(client: pg.Client, tables: Array<Table & { rows: Row[] }>) {
    this.#client = client
    this.#tables = tables
  }

  static async begin(client: pg.Client, isKept: (table: string, row: Row) => boolean): Promise<TableGrowth> {
    await omitFromLog(client)
    const tables = await readTables(client)
    const withRows = []
    for (const table of tables) {
      const columns = table.columns.map(({ name }) => `"${name}"::text`).join(', ')
      const { rows } = await client.query<Row>(`SELECT ${columns} FROM "${table.name}" LIMIT 1000`)
      withRows.push({ ...table, rows: rows.filter((row) => isKept(table.name, row)) })
    }
    return new TableGrowth(client, withParents(withRows))
  }

  /** Names of tables that the gateway has written nothing into. */
  get empty(): string[] {
    return this.#tables.filter(({ rows }) => rows.length === 0).map(({ name }) => name)
  }

  /** Grows the tables to a size: rows of one user in the tables that grow with use. */
  async growTo(size: number): Promise<void> {
    // Triggers of foreign keys would look up the rows that each copy names.
    await this.#client.query('SET session_replication_role = replica')
    await suspendIndexes(this.#client)
    for (const [index, family] of FAMILIES.entries()) {
      const shared = sharedValues(this.#tables, family)
      const ids = idValues(this.#tables)
      for (const table of this.#tables) {
        if (table.rows.length === 0) continue
        if (family.shared.includes(table.name) && !family.growsShared) continue
        const name = `${index} ${table.name}`
        const from = (this.#copies.get(name) ?? 0) + 1
        const to = Math.ceil(family.rows(size) / ROWS_OF_TABLE)
        if (to < from) continue
        this.#copies.set(name, to)
        for (const row of table.rows) {
          const statement = copyStatement(table, row, { shared, ids, family: index })
          if (statement !== null) await this.#client.query(statement, [from, to])
        }
      }
    }
    await rebuildIndexes(this.#client)
  }
}

/** Some rows of each table, and those that they name, so that copies belong together. */
function withParents(tables: ReadonlyArray<Table & { rows: Row[] }>): Array<Table & { rows: Row[] }> {
  const chosen = new Set(tables.flatMap(({ rows }) => lastOfKinds(rows)))
  const byId = new Map(
    tables.flatMap(({ keys, rows }) => {
      const [column, ...others] = keys[0] ?? []
      return column !== undefined && others.length === 0
        ? rows.map((row) => [row[column] ?? '', row] as const)
        : []
    }),
  )
  for (const row of chosen)
    for (const value of Object.values(row)) {
      const parent = byId.get(value ?? '')
      // A set that grows while it is iterated is iterated to its end.
      if (parent) chosen.add(parent)
    }
  return tables.map((table) => ({ ...table, rows: table.rows.filter((row) => chosen.has(row)) }))
}

/** The last row of each kind, and others where there are few kinds. */
function lastOfKinds(rows: readonly Row[]): Row[] {
  const last = rows.toReversed()
  const ofKinds = new Map(rows.map((row) => [row.kind, row]))
  return [...new Set([...ofKinds.values(), ...last])].slice(0, ROWS_OF_TABLE)
}

/** Values by which rows of shared tables are known. */
function sharedValues(tables: ReadonlyArray<Table & { rows: Row[] }>, { shared }: Family): Set<string> {
  const values = tables
    .filter(({ name }) => shared.includes(name))
    .flatMap(({ keys, rows }) => rows.flatMap((row) => (keys[0] ?? []).map((column) => row[column])))
  return new Set(values.filter((value) => value != null))
}

/** Every value that is the whole primary key of a row. */
function idValues(tables: ReadonlyArray<Table & { rows: Row[] }>): Set<string> {
  const values = tables.flatMap(({ keys, rows }) => {
    const [column, ...others] = keys[0] ?? []
    return column !== undefined && others.length === 0 ? rows.map((row) => row[column]) : []
  })
  return new Set(values.filter((value) => value != null))
}

/** A name with a number that counts, as that of a transfer between shards of a ledger. */
const NUMBERED = /^(\d+:)(\d+)(:[a-z]+)$/

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** @returns null where the copies would be the row itself. */
function copyStatement(
  { name, columns, keys }: Table,
  row: Row,
  { shared, ids, family }: { shared: Set<string>; ids: Set<string>; family: number },
): string | null {
  const values = new Map<string, string>()
  const changed = new Set<string>()
  for (const { name: column, type } of columns) {
    const value = row[column] ?? null
    const text = literal(value)
    const isId = value !== null && (type === 'uuid' || (type === 'text' && ids.has(value)))
    if (isId && !shared.has(value)) {
      changed.add(column)
      const copy = UUID.test(value)
        ? `md5(${text} || ':${family}:' || k)::uuid`
        : `${text} || '-${family}-' || k`
      values.set(column, `(${copy})::${type}`)
    } else if (type === 'timestamp with time zone' && value !== null) {
      const distance = `(k * ${SECONDS_APART} * CASE WHEN ${text}::timestamptz > now() THEN 1 ELSE -1 END) * interval '1 second'`
      values.set(column, `${text}::timestamptz + ${distance}`)
    } else values.set(column, `${text}::${type}`)
  }
  for (const key of keys) {
    if (key.some((column) => changed.has(column))) continue
    const typed = key.map((column) => columns.find((each) => each.name === column))
    const free = typed.findLast((column) => column?.type === 'text' || /int/.test(column?.type ?? ''))
    if (!free) return null
    changed.add(free.name)
    const text = literal(row[free.name] ?? null)
    const stride = free.type === 'integer' ? SMALL_STRIDE : STRIDE
    const [, before, number, after] = NUMBERED.exec(row[free.name] ?? '') ?? []
    const copy =
      number !== undefined
        ? `'${before}' || ${number} + k * ${SMALL_STRIDE} + ${family * (SMALL_STRIDE / 10)} || '${after}'`
        : free.type === 'text'
          ? `${text} || '-${family}-' || k`
          : `${text}::bigint + k * ${stride} + ${family * (stride / 10)}`
    values.set(free.name, `(${copy})::${free.type}`)
  }
  const list = columns.map((column) => values.get(column.name)).join(', ')
  const names = columns.map((column) => `"${column.name}"`).join(', ')
  return `INSERT INTO "${name}" (${names}) SELECT ${list} FROM generate_series($1::bigint, $2::bigint) AS k`
}

const literal = (value: string | null): string =>
  value === null ? 'NULL' : `E'${value.replace(/\\/g, '\\\\').replace(/'/g, "''")}'`

/** Tables with the unique keys of each; a partitioned one has those of its partitions. */
async function readTables(client: pg.Client): Promise<Table[]> {
  const { rows: columns } = await client.query<{ table: string; name: string; type: string }>(`
    SELECT relname AS table, attname AS name, format_type(atttypid, NULL) AS type
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
      AND attnum > 0 AND NOT attisdropped
    ORDER BY relname, attnum`)
  const { rows: keys } = await client.query<{ table: string; columns: string[] }>(`
    SELECT coalesce((SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = indrelid), relname) AS table, array(SELECT attname::text FROM unnest(indkey) WITH ORDINALITY AS key(number, place)
      JOIN pg_attribute ON attrelid = indrelid AND attnum = key.number ORDER BY place) AS columns
    FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
    WHERE relnamespace = 'public'::regnamespace AND indisunique
      AND (NOT relispartition OR pg_get_expr(relpartbound, indrelid) = 'DEFAULT') ORDER BY relname, indisprimary DESC`)
  return [...new Set(columns.map(({ table }) => table))].map((name) => ({
    name,
    columns: columns.filter(({ table }) => table === name),
    keys: keys.filter(({ table }) => table === name).map((key) => key.columns),
  }))
}
