import type { LedgerAccount } from './account.ts'
import { type CallColumns, type CommitAnswer, type CommitBatch, emptyClosings } from './commit.ts'

/** How often a batch is decided again after credits came: others may have taken them meanwhile. */
const MOST_DRAWS = 5

/** Brings credits of other shards here. @returns whether some came; it never rejects. */
export type Draw = (least: number, all: number) => Promise<boolean>

/**
 * Decides the calls of a batch again that were refused for lack of credits, while credits can be had from other shards
 * of the organization. What else was refused stays refused.
 */
export async function coverShortage(
  account: LedgerAccount,
  draw: Draw,
  { calls }: CommitBatch,
  answer: CommitAnswer,
): Promise<CommitAnswer> {
  let { refused } = answer
  for (let round = 0; round < MOST_DRAWS; round += 1) {
    const short = refused.flatMap(([index, verdict]) =>
      verdict.kind === 'no_credits' ? [{ index, required: verdict.required }] : [],
    )
    if (short.length === 0) break
    const { available } = account.balance()
    const least = Math.min(...short.map(({ required }) => required)) - available
    const all = short.reduce((sum, { required }) => sum + required, 0) - available
    if (least > 0 && !(await draw(least, all))) break
    const indices = short.map(({ index }) => index)
    const again = account.commit({ calls: pick(calls, indices), closings: emptyClosings(), learned: null })
    const others = refused.filter(([index]) => !indices.includes(index))
    refused = [
      ...others,
      ...again.refused.map(([at, verdict]) => [indices[at] as number, verdict] as const),
    ].map(([index, verdict]) => [index, verdict])
  }
  return { ...answer, refused }
}

/** Some of the calls, by their indices. */
function pick(calls: CallColumns, indices: readonly number[]): CallColumns {
  const columns = Object.entries(calls).map(([name, column]) => [name, indices.map((index) => column[index])])
  return Object.fromEntries(columns) as CallColumns
}
