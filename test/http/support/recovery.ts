import { expect } from 'vitest'
import { gateway } from '../../harness/gateway.ts'
import { callEntries } from '../../harness/records.ts'
import { answered, type Dialect, failed, inTurn } from '../../harness/routed-model.ts'
import { SCRIPTED_TEXT, type watchedFetch } from '../../harness/sdk-clients.ts'
import type { Tenant } from '../../harness/tenant.ts'

const ERRORS: Record<Dialect, object> = {
  chat: { error: { message: 'not now', type: 'server_error', code: null } },
  messages: { type: 'error', error: { type: 'overloaded_error', message: 'not now' } },
}

/** An upstream that fails in turn, and then answers every request. @returns the text that selects it */
export function recovering(
  dialect: Dialect,
  ...failures: Array<{ status: number; headers?: Record<string, string> }>
): Promise<string> {
  const error = JSON.stringify(ERRORS[dialect])
  const refusals = failures.map(({ status, headers }) => failed(status, error, headers))
  return inTurn(gateway(), ...refusals, answered(dialect, SCRIPTED_TEXT, false))
}

/**
 * Expects that a client made these attempts, and that each has its record.
 * @param statuses of which the first came with `Retry-After: 1`
 */
export async function expectRetried(
  tenant: Tenant,
  attempts: ReturnType<typeof watchedFetch>['attempts'],
  statuses: number[],
): Promise<void> {
  const [first, second] = attempts
  expect(attempts.map(({ status }) => status)).toEqual(statuses)
  // Without Retry-After the first wait is at most half a second.
  expect((second?.sentAt ?? 0) - (first?.answeredAt ?? 0)).toBeGreaterThan(900)
  const ids = attempts.map(({ requestId }) => requestId)
  const isAttempt = ({ request_id }: { request_id: string }) => ids.includes(request_id)
  const entries = await callEntries(gateway(), tenant, statuses.length, isAttempt)
  expect(entries.map(({ status }) => status).sort()).toEqual([...statuses].sort())
}
