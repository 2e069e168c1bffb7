import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCampaign, startCampaign } from '../harness/ledger-campaign/campaign.ts'

/** Rounds of calls in each trial; the long campaign has four. */
const ROUNDS = 2
const RUNS = Number(process.env.LEDGER_FAULT_RUNS ?? 20)

let campaign: Awaited<ReturnType<typeof startCampaign>>
beforeAll(async () => {
  campaign = await startCampaign(true)
})
afterAll(() => campaign?.stop())

describe('commits whose leader, ledger or answer goes away', () => {
  it('lose, double and overspend nothing, and leave nobody waiting', { timeout: 1_800_000 }, async () => {
    const counts = await runCampaign(campaign.system, RUNS, ROUNDS)
    // Something of everything has to have happened, or the campaign shows nothing.
    for (const kind of ['request admitted', 'object admitted', 'left lost', 'ended lost', 'reset lost']) {
      expect(counts).toHaveProperty(kind)
    }
    console.info(JSON.stringify({ campaign: 'ledger', ...counts }))
  })
})
