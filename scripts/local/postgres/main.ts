// node scripts/local/postgres/main.ts --port 5433 --data .headgate/postgres
// node scripts/local/postgres/main.ts --port 5433 --database-url postgres://user@localhost/database
import { OptionError } from '../../node/start-error.ts'
import { runAsProcess } from '../stand-in-process.ts'
import { startPostgres } from './start.ts'

await runAsProcess(
  'local postgres',
  { data: { type: 'string' }, template: { type: 'string' }, 'database-url': { type: 'string' } },
  (values, port) => {
    const { data, template } = values
    // The environment hides it from other processes, which can read every command line.
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
