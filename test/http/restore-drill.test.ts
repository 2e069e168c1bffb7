import { expect, inject, it } from 'vitest'
import { embeddedPostgres } from '../../scripts/drill/postgres-copies.ts'
import { runDrill } from '../../scripts/drill/run-drill.ts'
import { startGateway } from '../harness/start-gateway.ts'

it('ledgers write again what a restore of Postgres loses, and it is verified', {
  timeout: 120_000,
}, async () => {
  const postgres = await embeddedPostgres()
  const system = await startGateway({ bundleDirectory: inject('bundleDirectory'), ...postgres.gateway })
  try {
    const plan = { rounds: 1, shards: 2, users: 3, kills: false }
    const { steps, notCovered } = await runDrill(system, postgres, plan, () => {})
    expect(steps.filter(({ ok }) => !ok)).toEqual([])
    expect(steps.length).toBeGreaterThan(9)
    expect(notCovered).toEqual([
      'a key made after the time: 401',
      'a key revoked after the time, which is valid again: 200',
      expect.stringMatching(/^a response stored after the time: (200|404)$/),
      'a run after the time: 404',
    ])
  } finally {
    await system.stop()
    await postgres.remove()
  }
})
