// node scripts/local/postgres/main.ts --port 5433 --data .headgate/postgres
// node scripts/local/postgres/main.ts --port 5433 --database-url postgres://user@localhost/database
import { OptionError, runAsProcess } from '../stand-in-process.ts'
import { startPostgres } from './start.ts'

await runAsProcess(
  'local postgres',
  { data: { type: 'string' }, 'database-url': { type: 'string' }, 'lock-timeout': { type: 'string' } },
  (values, port) => {
    const { data, 'lock-timeout': lockTimeout = '5000' } = values
    // By environment it stands on no command line, which every process of the machine can read.
    const databaseUrl = values['database-url'] ?? process.env.REAL_DATABASE_URL
    if (typeof data === 'string' && typeof databaseUrl === 'string') {
      throw new OptionError('--data and --database-url exclude each other')
    }
    if (!/^\d+$/.test(String(lockTimeout))) throw new OptionError('--lock-timeout takes milliseconds')
    return startPostgres({
      port,
      lockTimeoutMs: Number(lockTimeout),
      ...(typeof data === 'string' && { folder: data }),
      ...(typeof databaseUrl === 'string' && { databaseUrl }),
    })
  },
)
