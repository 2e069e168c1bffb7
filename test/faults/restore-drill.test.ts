import { describe, expect, inject, it } from 'vitest'
import { type CopiedPostgres, embeddedPostgres, realPostgres } from '../../scripts/drill/postgres-copies.ts'
import { type DrillPlan, runDrill, WHOLE_DRILL } from '../../scripts/drill/run-drill.ts'
import { startGateway } from '../harness/start-gateway.ts'
import { findRealPostgres, tellSkipped } from '../local/real-servers.ts'

/** A run takes 10 s on an idle machine, and several times that beside others. */
const TIMEOUT = { timeout: 300_000 }

async function expectRestored(make: () => Promise<CopiedPostgres>, plan: DrillPlan): Promise<void> {
  const postgres = await make()
  const system = await startGateway({ bundleDirectory: inject('bundleDirectory'), ...postgres.gateway })
  try {
    const { steps } = await runDrill(system, postgres, plan, () => {})
    expect(steps.filter(({ ok }) => !ok)).toEqual([])
  } finally {
    await system.stop()
    await postgres.remove()
  }
}

const KILLED = { ...WHOLE_DRILL, rounds: 12, kills: true }

describe('after a restore of embedded Postgres', () => {
  it('everything of the ledgers is back', TIMEOUT, () => expectRestored(embeddedPostgres, WHOLE_DRILL))
  it('also when the gateway is killed meanwhile', TIMEOUT, () => expectRestored(embeddedPostgres, KILLED))
})

const hasReal = findRealPostgres() !== undefined
if (!hasReal) tellSkipped('restore drill on a server', 'PostgreSQL')

describe.skipIf(!hasReal)('after a restore of a PostgreSQL server', () => {
  it('everything of the ledgers is back', TIMEOUT, () => expectRestored(realPostgres, WHOLE_DRILL))
  it('also when the gateway is killed meanwhile', TIMEOUT, () => expectRestored(realPostgres, KILLED))
})
