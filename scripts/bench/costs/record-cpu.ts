import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startGateway } from '../../../test/harness/start-gateway.ts'
import { findRealPostgres, startRealPostgres } from '../../../test/local/real-servers.ts'
import { checkLedger } from '../ledger-check.ts'
import { runLoad } from '../load.ts'
import { section, us } from '../markdown.ts'
import { BenchFailure } from '../measure.ts'
import { treeMicroseconds, untilIdle } from '../process-usage.ts'
import type { Call } from '../scenarios.ts'
import { type BenchSystem, grantCredits, STORAGE, VARIABLES } from '../system.ts'

/** The name of this section for `--only`. */
export const RECORDS_SECTION = 'records'

/** Processor time that a PostgreSQL server takes to write the records of calls. */
export interface RecordCpu {
  /** Microseconds for each record, with its usage and credits; null without a server on this machine. */
  microseconds: number | null
  records: number
}

const CONNECTIONS = 16
const CALLS = 4_000
const WARM_UP_CALLS = 1_000
const LIMIT_MS = 60_000
const QUIET_MS = 2_500
const IDLE_LIMIT_MS = 20_000

/**
 * Makes whole chat calls on a system of its own, whose database is a real PostgreSQL in a temporary folder.
 * @throws BenchFailure when a call fails
 */
export async function measureRecordCpu(
  { bundle, scenarios }: BenchSystem,
  log: (line: string) => void,
): Promise<RecordCpu> {
  if (findRealPostgres() === undefined) return { microseconds: null, records: 0 }
  log('processor time of PostgreSQL for each record')
  const folder = mkdtempSync(join(STORAGE, 'headgate-bench-records-'))
  const postgres = await startRealPostgres()
  try {
    const measured = { storage: folder }
    const options = { bundleDirectory: bundle, variables: VARIABLES, measured, postgresUrl: postgres.url }
    const system = await startGateway(options)
    try {
      await grantCredits(system, 'acme')
      const call = callFor(scenarios.find(({ name }) => name === 'chat')?.call, system.keys.owner)
      const load = async (calls: number) => {
        const { port, pid } = system.workerd
        const result = await runLoad({ port, call, connections: CONNECTIONS, calls, milliseconds: LIMIT_MS })
        if (result.failures > 0) throw new BenchFailure(`records: ${result.firstFailure}`)
        await untilIdle(pid, QUIET_MS, IDLE_LIMIT_MS)
        return checkLedger(system, result.calls)
      }
      const before = { records: (await load(WARM_UP_CALLS)).records, cpu: treeMicroseconds(postgres.pid) }
      const records = (await load(CALLS)).records - before.records
      return { microseconds: (treeMicroseconds(postgres.pid) - before.cpu) / records, records }
    } finally {
      await system.stop()
    }
  } finally {
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A call of the scenario for another system, because each upstream has only its own scripts. */
function callFor(call: Call | undefined, key: string): Call {
  if (!call?.body) throw new Error('the scenario chat has no body')
  const headers = { ...call.headers, authorization: `Bearer ${key}` }
  return { ...call, headers, body: call.body.replace(/script:bench-\w+/, 'script:canned') }
}

/** The section as Markdown. */
export const renderRecordCpu = ({ microseconds, records }: RecordCpu): string =>
  section(
    'PostgreSQL for each record of the ledger',
    microseconds === null
      ? 'Skipped: there is no PostgreSQL on this machine.'
      : `${us(microseconds)} of processor time, over ${records} records of whole chat calls with ${CONNECTIONS} connections: all ` +
          'processes of a PostgreSQL server of this machine, without the sync of its files.',
  )
