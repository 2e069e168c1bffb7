import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { Random } from '../faults/support/random.ts'
import { runAgentCampaign } from '../harness/agent-tape/campaign.ts'
import { expectPaidOnce, expectSingleEffects } from '../harness/agent-tape/effect-checks.ts'
import { expectSoundRuns } from '../harness/agent-tape/run-checks.ts'
import { startTapeSystem, type TapeSystem } from '../harness/agent-tape/tape-system.ts'

/** `test:faults` runs more, and kills the gateway and the objects of responses. */
const RUNS = Number(process.env.AGENT_RUNS || 12)

const random = new Random(1)
let system: TapeSystem
beforeAll(async () => {
  system = await startTapeSystem(inject('bundleDirectory'), random)
}, 60_000)
afterAll(() => system?.stop())

describe('runs of agents whose messages are lost, repeated, late and forged', () => {
  it('end, once, with what they did and paid for', { timeout: 240_000 }, async () => {
    const options = { runs: RUNS, together: RUNS, faults: ['queue', 'postgres', 'leases'] } as const
    const report = await runAgentCampaign(system, random, options)
    expect(system.tape.acceptedForgeries).toEqual([])
    await expectSoundRuns(system, report.runs)
    await expectPaidOnce(system, report)
    await expectSingleEffects(system, report)
  })
})
