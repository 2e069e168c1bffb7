import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type Fault, runAgentCampaign } from '../harness/agent-tape/campaign.ts'
import { expectPaidOnce, expectSingleEffects, lastingState } from '../harness/agent-tape/effect-checks.ts'
import { expectSoundRuns } from '../harness/agent-tape/run-checks.ts'
import { buildKillable, startTapeSystem, type TapeSystem } from '../harness/agent-tape/tape-system.ts'
import { Random } from './support/random.ts'

const RUNS = Number(process.env.AGENT_RUNS || 500)
const SEED = Number(process.env.AGENT_SEED || Date.now() % 1_000_000)
const TOGETHER = 20
const FAULTS: Fault[] = ['gateway', 'objects', 'objects', 'postgres', 'postgres', 'queue', 'leases']

const random = new Random(SEED)
let system: TapeSystem
let remove: () => void
beforeAll(async () => {
  console.info(`agent tape: AGENT_SEED=${SEED}`)
  const bundle = await buildKillable(inject('bundleDirectory'))
  remove = bundle.remove
  system = await startTapeSystem(bundle.directory, random)
}, 120_000)
afterAll(async () => {
  await system?.stop()
  remove?.()
})

describe(`runs of agents whose messages, processes, objects and database fail (seed ${SEED})`, () => {
  it('end once, with the effects and costs of their attempts', { timeout: 1_800_000 }, async () => {
    const options = { runs: RUNS, together: TOGETHER, faults: FAULTS }
    const report = await runAgentCampaign(system, random, options)
    const { counts, acceptedForgeries } = system.tape
    expect(acceptedForgeries).toEqual([])
    await expectSoundRuns(system, report.runs)
    const paid = await expectPaidOnce(system, report)
    await expectSingleEffects(system, report)
    const before = await lastingState(system, report)
    await system.tape.replay()
    expect(await lastingState(system, report)).toEqual(before)
    console.info(JSON.stringify({ runs: report.runs.length, ...paid, ...report.happened, ...counts }))
  })
})
