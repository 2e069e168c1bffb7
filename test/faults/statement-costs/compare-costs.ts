import type { Execution } from './measured-postgres.ts'

export interface Round {
  /** Rows of the largest tables. */
  size: number
  statistics: boolean
  executions: Execution[]
}

/** Higher trees of indexes, and what a search reads beside its rows. */
const FACTOR = 4
const BLOCKS = 200
/** For each row that is returned or changed: its block, and those of its indexes and of rows that depend on it. */
const BLOCKS_OF_ROW = 25
/** A value that was put together from many rows has this many bytes of each, or more. */
const BYTES_OF_BLOCK = 16

/** Statements whose cost may grow with the tables, in blocks for each row of one user. No other cost may grow. */
const GROWING: ReadonlyArray<{
  why: string
  starts: string
  blocksOfRow: number
  /** Blocks from which on the cost grows no more. */
  most?: number
}> = [
  {
    why: 'sums up what a period has',
    starts: 'select "group_name", count(*), sum("input_tokens")',
    blocksOfRow: 0.2,
  },
  {
    why: 'compares the catalogues of the deployment with its connections',
    starts:
      'INSERT INTO tool_catalogues (integration_id, connection_id, organization_id, next_refresh_at) SELECT',
    blocksOfRow: 0.1,
  },
  {
    why: 'as the one before',
    starts: "DELETE FROM tool_catalogues t WHERE t.connection_id <> ''",
    blocksOfRow: 0.1,
  },
  {
    why: 'searches the newest 20,000 calls, which the copies of this campaign have in as many blocks',
    starts: 'select "organization_id", "id", "at", "request_id", "user_id", "key_id", "surface"',
    blocksOfRow: 1,
    most: 25_000,
  },
  {
    why: 'counts the newest 100,000 calls of a period',
    starts: 'WITH examined AS MATERIALIZED (SELECT "calls"."at"',
    blocksOfRow: 1,
    most: 120_000,
  },
  {
    why: 'counts the newest 100,000 calls of a day, and as many of a week before',
    starts: 'WITH examined AS MATERIALIZED (SELECT at, outcome, cost',
    blocksOfRow: 1,
    most: 240_000,
  },
  {
    why: 'sums up all movements of credits, to compare them with the ledger on request of an administrator',
    starts: 'select "shard", sum("amount") from "credit_entries"',
    blocksOfRow: 0.2,
  },
  {
    why: 'looks up each chain in the partition of each month',
    starts: 'WITH RECURSIVE chains AS ( (SELECT organization_id, shard, sequence AS first',
    blocksOfRow: 4,
  },
  {
    why: 'passes once over the entries of the rows that the erasure of a person has just deleted, 100,000 at the most',
    starts: 'select "content_key", "created_at" from "content_erasures"',
    blocksOfRow: 0.1,
    most: 10_000,
  },
  {
    why: 'searches the names of an organization for a typed text; no index has parts of names. Without statistics, three blocks for each member, who are 2 % of the rows',
    starts: '(SELECT DISTINCT ?::text AS kind, calls.id AS id',
    blocksOfRow: 0.08,
  },
]

/**
 * Finds statements whose cost grows faster than what they return.
 * @param rounds the smallest size first. @returns `dearer` has a line for each statement, `report` also its plan.
 */
export function compareCosts(rounds: readonly Round[]): { dearer: string[]; report: string } {
  const [smallest = 0] = rounds.map(({ size }) => size)
  const first = costsOf(rounds.filter(({ size }) => size === smallest))
  const dearer = new Map<string, string>()
  let report = ''
  for (const { size, statistics, executions } of rounds) {
    for (const [text, worst] of costsOf([{ size, statistics, executions }])) {
      const before = Math.min(first.get(text)?.blocks ?? 0, 1_000)
      const growing = GROWING.find(({ starts }) => text.startsWith(starts))
      const growth = growing ? Math.min(growing.blocksOfRow * size, growing.most ?? Infinity) : 0
      const returned = BLOCKS_OF_ROW * worst.rows + worst.bytes / BYTES_OF_BLOCK
      const allowed = FACTOR * before + BLOCKS + returned + growth
      report += `${worst.blocks} blocks of ${Math.round(allowed)}, ${worst.rows} rows, ${worst.bytes} bytes at ${size} ${statistics ? 'with' : 'without'} statistics: ${text}\n`
      if (worst.blocks <= allowed) continue
      const line = `${worst.blocks} blocks for ${worst.rows} rows at ${size}, ${before} at ${smallest}, ${statistics ? 'with' : 'without'} statistics: ${text}`
      dearer.set(text, line)
      report += `  DEARER ${JSON.stringify(worst.plan, planMember)}\n`
    }
  }
  return { dearer: [...dearer.values()], report }
}

/** The execution of each statement that cost most beyond what it returned. */
function costsOf(rounds: readonly Round[]): Map<string, Execution> {
  const costs = new Map<string, Execution>()
  for (const execution of rounds.flatMap(({ executions }) => executions)) {
    const known = costs.get(execution.text)
    if (!known || excess(execution) > excess(known)) costs.set(execution.text, execution)
  }
  return costs
}

const excess = ({ blocks, rows, bytes }: Execution) => blocks - BLOCKS_OF_ROW * rows - bytes / BYTES_OF_BLOCK

const OF_PLAN =
  /^(Plan|Plans|Node Type|Relation Name|Index Name|Index Cond|Filter|Actual Rows|Actual Loops|Rows Removed.*|Shared Hit Blocks|\d*)$/
const planMember = (name: string, value: unknown) => (OF_PLAN.test(name) ? value : undefined)
