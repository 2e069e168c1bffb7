import { expect } from 'vitest'
import { NO_USAGE } from '../../../src/calls/usage.ts'
import type { CallOpening, CallOutcome } from '../../../src/ledger/audit-record.ts'
import type { Harness, Organization } from './harness.ts'

export const NOON = Date.UTC(2026, 10, 20, 12)
export const DAY = 86_400_000

export interface Call {
  at: number
  model?: string
  keyId?: string | null
  status?: number
  cost?: number
}

/** Makes the ledger of a tenant record calls, as the gateway would. */
export async function recordCalls(harness: Harness, of: Organization, calls: Call[]): Promise<void> {
  const ledger = harness.ledgers.of(of.organization.id)
  for (const { at, model = 'small', keyId = of.key.id, status = 200, cost = 10 } of calls) {
    const opening: CallOpening = {
      callId: `call_${crypto.randomUUID()}`,
      requestId: 'req_1',
      organizationId: of.organization.id,
      at,
      actor: { userId: keyId === null ? null : of.user.id, keyId, administrator: null, ip: null },
      surface: model === 'small' ? 'messages' : 'chat_completions',
      action: 'POST /v1/messages',
      modelId: model,
    }
    const outcome: CallOutcome = {
      status,
      errorCode: null,
      provider: 'acme',
      attempts: [],
      usage: { ...NO_USAGE, input: 100, output: 7 },
      provenance: 'reported',
      cost,
      durationMilliseconds: 5,
      request: null,
      response: null,
      dlp: null,
      connectionId: null,
      flags: [],
    }
    await ledger.record(opening, outcome)
  }
  await ledger.flush()
}

/** Reads a list to its end. @param between what happens after each page. */
export async function readAll(
  harness: Harness,
  path: string,
  limit: number,
  between: () => Promise<unknown> = async () => {},
) {
  const items = []
  let cursor: string | null = null
  do {
    const query = `limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`
    const answer = await harness.request('GET', `${path}${path.includes('?') ? '&' : '?'}${query}`)
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json.has_more).toBe(answer.json.next_cursor !== null)
    expect(answer.json.data.length).toBeLessThanOrEqual(limit)
    items.push(...answer.json.data)
    cursor = answer.json.next_cursor
    await between()
  } while (cursor !== null && items.length < 100)
  return items
}
