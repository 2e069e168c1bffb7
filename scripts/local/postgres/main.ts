// node scripts/local/postgres/main.ts --port 5433 --data .headgate/postgres
// node scripts/local/postgres/main.ts --port 5433 --database-url postgres://user@localhost/database
import { OptionError, runAsProcess } from '../stand-in-process.ts'
import { startPostgres } from './start.ts'

await runAsProcess(
  'local postgres',
  { data: { type: 'string' }, template: { type: 'string' }, 'database-url': { type: 'string' } },
  (values, port) => {
    const { data, template } = values
    // By environment it stands on no command line, which every process of the machine can read.
    const databaseUrl = values['database-url'] ?? process.env.REAL_DATABASE_URL
    if (typeof data === 'string' && typeof databaseUrl === 'string') {
      throw new OptionError('--data and --database-url exclude each other')
    }
    if (typeof template === 'string' && data !== 'memory') {
      throw new OptionError('--template takes --data memory')
    }
    return startPostgres({
      port,
      ...(typeof data === 'string' && { folder: data }),
      ...(typeof template === 'string' && { template }),
      ...(typeof databaseUrl === 'string' && { databaseUrl }),
    })
  },
)
