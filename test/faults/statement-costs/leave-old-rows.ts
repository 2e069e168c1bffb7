import { randomUUID } from 'node:crypto'
import { drizzle } from 'drizzle-orm/node-postgres'
import type { Database } from '../../../schema/database.ts'
import { monthsAgo, writeOldCalls } from '../../harness/old-records.ts'
import { managing } from './surfaces.ts'
import type { World } from './world.ts'

const DAYS = 30
const OLD = `now() - ${DAYS + 1} * interval '1 day'`

/**
 * An organization of the round's own, with few rows, that its retention removes or has to look at. The job of the hour comes to it first,
 * because it has not been swept before.
 */
export async function leaveOldRows({ postgres, surfaces, unique }: World): Promise<void> {
  const { manage } = managing(surfaces)
  const organizationId = randomUUID()
  const userId = randomUUID()
  await postgres.query('INSERT INTO organizations (id, name, slug) VALUES ($1, $2, $2)', [
    organizationId,
    unique('aged'),
  ])
  const times = [5, 4, 3].flatMap((months) => [monthsAgo(months), monthsAgo(months, 1)])
  // A ledger that was not used before continues these.
  await writeOldCalls(drizzle({ client: postgres }) as unknown as Database, organizationId, [
    ...times,
    new Date(),
  ])
  const days = {
    audit_records: DAYS,
    usage_events: DAYS,
    responses: DAYS,
    runs: DAYS,
    connect_sessions: DAYS,
  }
  await manage('PUT', `/organizations/${organizationId}/retention`, days)
  const name = unique('old')
  // The first five have a response that goes, the next five one that stays, the others none.
  await postgres.query(
    `INSERT INTO conversations (id, organization_id, user_id, created_at)
      SELECT $1 || '_' || n, $2::uuid, $3::uuid, ${OLD} FROM generate_series(1, 15) AS n`,
    [name, organizationId, userId],
  )
  await postgres.query(
    `INSERT INTO responses (id, organization_id, user_id, key_id, conversation_id, model, status, policy_version, created_at)
      SELECT 'resp_' || $1 || '_' || n, $2::uuid, $3::uuid, 'key', $1 || '_' || n, 'm', 'completed', 'v',
        CASE WHEN n <= 5 THEN ${OLD} ELSE now() END FROM generate_series(1, 10) AS n`,
    [name, organizationId, userId],
  )
  await postgres.query(
    `INSERT INTO response_items (id, organization_id, user_id, response_id, type, body, created_at)
      SELECT 'item_' || id, organization_id, user_id, id, 'message', '{}', created_at FROM responses WHERE organization_id = $1`,
    [organizationId],
  )
}
