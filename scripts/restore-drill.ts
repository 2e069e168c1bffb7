// npm run restore-drill: takes the Postgres of a local system back in time, and proves that ledgers write again what it lost.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startGateway } from '../test/harness/start-gateway.ts'
import { findRealPostgres } from '../test/local/real-servers.ts'
import { runAdmin } from './admin/run-admin.ts'
import { processTerminal } from './admin/terminal.ts'
import { buildScripts } from './build.ts'
import { type CopiedPostgres, embeddedPostgres, realPostgres } from './drill/postgres-copies.ts'
import { runDrill, WHOLE_DRILL } from './drill/run-drill.ts'

const USAGE = `npm run restore-drill -- [options]
  --postgres NAME       embedded, real, or both where one is installed (the default)
  --check               compare the ledgers of an installation with its database instead, and change nothing: HEADGATE_URL and
                        ADMIN_TOKEN, or the system of npm run dev
  --organization NAME   with --check: only this organization
  --help                print this
Exit code 0: all that ledgers had is back, or agrees. 1: the drill failed. 3: the check found a difference.`

const { values } = parseArgs({
  options: {
    postgres: { type: 'string' },
    check: { type: 'boolean', default: false },
    organization: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) console.log(USAGE)
else if (values.check) {
  const { organization } = values
  const words = ['audit', 'check', ...(organization === undefined ? [] : ['--organization', organization])]
  process.exitCode = await runAdmin(words, processTerminal())
} else process.exitCode = await drill(values.postgres)

async function drill(postgres: string | undefined): Promise<number> {
  const hasReal = findRealPostgres() !== undefined
  const makers = { embedded: [embeddedPostgres], real: [realPostgres] }
  const both = hasReal ? [embeddedPostgres, realPostgres] : [embeddedPostgres]
  const chosen = postgres === undefined ? both : makers[postgres as keyof typeof makers]
  if (chosen === undefined) {
    console.error(USAGE)
    return 2
  }
  if (!hasReal && postgres === undefined)
    console.log('There is no PostgreSQL server on this machine: embedded only.')
  const bundle = mkdtempSync(join(tmpdir(), 'headgate-drill-bundle-'))
  try {
    await buildScripts(bundle)
    let failed = false
    for (const make of chosen) failed = !(await drillOn(bundle, await make())) || failed
    return failed ? 1 : 0
  } finally {
    rmSync(bundle, { recursive: true, force: true })
  }
}

async function drillOn(bundleDirectory: string, postgres: CopiedPostgres): Promise<boolean> {
  console.log(`\nDrill on ${postgres.name}`)
  try {
    const system = await startGateway({ bundleDirectory, ...postgres.gateway })
    try {
      const { ok, notCovered, duration } = await runDrill(system, postgres, WHOLE_DRILL, (line) =>
        console.log(line),
      )
      console.log('Not covered, because only Postgres had it (status of a request for it now):')
      for (const line of notCovered) console.log(`        ${line}`)
      console.log(`${ok ? 'Passed' : 'FAILED'} in ${(duration / 1_000).toFixed(1)} s.`)
      return ok
    } finally {
      await system.stop()
    }
  } finally {
    await postgres.remove()
  }
}
