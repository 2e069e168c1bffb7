import { describe, expect, it } from 'vitest'
import type { CatalogModel } from '../../../src/gateway/catalog/catalog.ts'
import { NOTHING_METERED } from '../../../src/gateway/metering.ts'
import { Settlement } from '../../../src/gateway/settlement.ts'
import type { CallOutcome } from '../../../src/governance/audit-record.ts'
import { NO_USAGE } from '../../../src/governance/credits.ts'
import type { Ledger } from '../../../src/governance/ledger/ledger.ts'
import { ApiError } from '../../../src/lib/api-error.ts'

/** One micro-credit for each token, so that cost and tokens are the same number. */
const price = 1_000_000
const prices = {
  input: price,
  output: price,
  cacheRead: price,
  cacheWrite5Minutes: price,
  cacheWrite1Hour: price,
}
const model: CatalogModel = {
  id: 'm',
  ownedBy: 'o',
  created: 0,
  contextWindow: 1_000,
  maxOutputTokens: 1_000,
  prices,
  capabilities: [],
  routes: [],
}
/** Of the request, by its length. */
const INPUT = 100

function someSettlement(reserve: number) {
  const outcomes: CallOutcome[] = []
  const told: unknown[] = []
  const ledger = {
    close: async (_callId: string, outcome: CallOutcome) => {
      outcomes.push(outcome)
    },
  } as Partial<Ledger> as Ledger
  const record = { callId: 'c', requestId: 'r', startedAt: 0, flags: [] as string[] }
  const settlement = new Settlement(
    { clock: () => 0, ledgerOf: () => ledger, configuration: { LEDGER_LEASE_MS: 1_000 } },
    {
      record: record as unknown as ConstructorParameters<typeof Settlement>[1]['record'],
      organizationId: 'o',
      model,
      bounds: { inputTokens: 1_000, outputTokens: 1_000, reserve },
      requestBytes: 3 * INPUT,
      policy: () => null,
      onSettled: (usage) => told.push(usage),
    },
  )
  const settled = async () => {
    await settlement.done
    expect(outcomes).toHaveLength(1)
    const { cost, provenance, usage } = outcomes[0] as CallOutcome
    expect(told).toEqual([usage])
    return { cost, provenance, input: usage?.input ?? null }
  }
  return { settlement, settled }
}

const reported = (input: number) => ({ ...NO_USAGE, input })
const unreachable = new ApiError('upstream', 'nobody is there')

describe('attempts that gave nothing', () => {
  it('are paid for with the answer', async () => {
    const { settlement, settled } = someSettlement(1_000)
    settlement.lose()
    settlement.lose({ usage: reported(30), provenance: 'reported', cost: 30 })
    settlement.close(200, null, settlement.answerUse(reported(7), 0))
    expect(await settled()).toEqual({ cost: 137, provenance: 'estimated', input: 137 })
  })

  it('change nothing where there were none', async () => {
    const { settlement, settled } = someSettlement(1_000)
    settlement.lose(NOTHING_METERED)
    settlement.close(200, null, settlement.answerUse(reported(7), 0))
    expect(await settled()).toEqual({ cost: 7, provenance: 'reported', input: 7 })
  })

  it.each([
    { used: 90, reserve: 190, cost: 190, provenance: 'estimated' },
    { used: 90, reserve: 189, cost: INPUT, provenance: 'estimated' },
    { used: 110, reserve: 150, cost: 110, provenance: 'reported' },
    // What an upstream reports is its word, also beyond what was put aside.
    { used: 170, reserve: 150, cost: 170, provenance: 'reported' },
  ])('cost no more than what was put aside: %j', async ({ used, reserve, cost, provenance }) => {
    const { settlement, settled } = someSettlement(reserve)
    settlement.lose()
    settlement.close(200, null, settlement.answerUse(reported(used), 0))
    expect(await settled()).toMatchObject({ cost, provenance })
  })

  it('are paid for when no other answers, each of them', async () => {
    const { settlement, settled } = someSettlement(1_000)
    settlement.lose()
    settlement.lose()
    settlement.fail(unreachable)
    expect(await settled()).toEqual({ cost: 2 * INPUT, provenance: 'estimated', input: 2 * INPUT })
  })

  it('are paid for beside the one that a leaving caller ends', async () => {
    const { settlement, settled } = someSettlement(1_000)
    settlement.lose()
    settlement.sent = true
    settlement.callerLeft()
    expect((await settled()).cost).toBe(2 * INPUT)
  })

  it('cost nothing when nobody could be reached', async () => {
    const { settlement, settled } = someSettlement(1_000)
    settlement.fail(unreachable)
    expect(await settled()).toEqual({ cost: 0, provenance: null, input: null })
  })
})
