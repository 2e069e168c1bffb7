import { query } from '../gateway.ts'
import type { TapeSystem } from './tape-system.ts'

/** An attempt as Postgres has it, with its response. */
export interface AttemptRow {
  run_id: string
  number: number
  attempt: number
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  response_id: string
  output: string | null
  error: { code: string; message: string } | null
  had_effects: boolean
  cost: number
  /** Status of the response; null if it was never started, or was deleted. */
  response_status: string | null
  response_cost: number | null
  response_conversation: string | null
  /** The verdict about it, and what that cost. */
  verdict: string | null
  verdict_cost: number | null
  verdict_details: Record<string, unknown> | null
}

const ATTEMPTS = `SELECT s.run_id, s.number, s.attempt, s.status, s.response_id, s.output, s.error, s.had_effects,
    s.cost::float8 AS cost, r.status AS response_status, (r.body::jsonb ->> 'cost')::float8 AS response_cost,
    r.conversation_id AS response_conversation, v.result AS verdict, v.cost::float8 AS verdict_cost,
    v.details AS verdict_details
  FROM run_steps s LEFT JOIN responses r ON r.id = s.response_id
    LEFT JOIN run_verdicts v ON v.run_id = s.run_id AND v.number = s.number AND v.attempt = s.attempt
  WHERE s.organization_id = $1 ORDER BY s.run_id, s.number, s.attempt`

/** Every attempt of an organization by its run. */
export async function attemptsByRun({ gateway, tenant }: TapeSystem): Promise<Map<string, AttemptRow[]>> {
  const rows = (await query(gateway, ATTEMPTS, [tenant.organizationId])) as unknown as AttemptRow[]
  return Map.groupBy(rows, ({ run_id: id }) => id)
}
