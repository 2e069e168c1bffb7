// node test/harness/migrated-postgres.ts --parent
// The Postgres stand-in in memory, with the newest schema: a process of its own.
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import { runAsProcess } from '../../scripts/local/stand-in-process.ts'
import { migratedDatabase } from './migrated-database.ts'

await runAsProcess('migrated postgres', {}, async (_values, port) =>
  startPostgres({ port, template: await migratedDatabase() }),
)
