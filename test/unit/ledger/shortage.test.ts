import { describe, expect, it } from 'vitest'
import { type CallColumns, type CommitAnswer, emptyCalls } from '../../../src/ledger/commits/commit.ts'
import { decideAgain } from '../../../src/ledger/shards/shortage.ts'

const callsOf = (...ids: string[]): CallColumns => {
  const columns = emptyCalls()
  for (const column of Object.values(columns)) column.push(...Array(ids.length).fill(null))
  return { ...columns, ids }
}

describe('calls that are decided again', () => {
  const noCredits = { kind: 'no_credits', available: 0, required: 1 } as const
  const again: CommitAnswer = {
    refused: [[1, noCredits]],
    unsettled: [],
    rateLimits: { limits: [7, 0], remaining: [4, 0], resetsAt: 2 },
  }
  const decide = ({ ids }: CallColumns) => {
    expect(ids).toEqual(['b', 'c'])
    return again
  }

  it.each([
    [{ limits: [7, 0, 0], remaining: [5, 0, 0], resetsAt: 1 }, [7, 7, 0], [5, 4, 0]],
    [undefined, [0, 7, 0], [0, 4, 0]],
  ])('keep their places, with the rate limits of the others: %j', (rateLimits, limits, remaining) => {
    const answer: CommitAnswer = {
      refused: [
        [1, noCredits],
        [2, noCredits],
      ],
      unsettled: [],
      ...(rateLimits && { rateLimits: structuredClone(rateLimits) }),
    }
    expect(decideAgain(decide, callsOf('a', 'b', 'c'), answer, 'no_credits')).toEqual({
      refused: [[2, noCredits]],
      unsettled: [],
      rateLimits: { limits, remaining, resetsAt: 2 },
    })
  })
})
