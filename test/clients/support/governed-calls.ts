import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { gateway, query } from '../../harness/gateway.ts'
import { auditEntryOf } from '../../harness/records.ts'
import { seenRequests, type UpstreamRequest } from '../../harness/upstream.ts'
import type { Bench } from './client-bench.ts'
import type { Exchange } from './recording-proxy.ts'

type Json = Record<string, unknown>

/** The model calls among what a client sent. */
export function modelCalls(bench: Bench): Exchange[] {
  return bench.proxy.exchanges.filter(({ method }) => method === 'POST')
}

export function bodyOf(call: Pick<Exchange | UpstreamRequest, 'body'>): Json {
  return JSON.parse(call.body) as Json
}

/** Usage that the ledger counted for one call. */
export interface RecordedUsage {
  provenance: unknown
  input: number
  output: number
}

/**
 * Expects one audit row of this key for every call of a client, with the status it was answered.
 *
 * @returns the usage recorded for each successful call, in order
 */
export async function expectRecorded(bench: Bench): Promise<RecordedUsage[]> {
  const usages: RecordedUsage[] = []
  for (const call of modelCalls(bench)) {
    const entry = await auditEntryOf(gateway(), bench.tenant, call.requestId)
    expect(entry).toMatchObject({ kind: 'call', key_id: bench.tenant.keyId, status: call.status })
    if (call.status !== 200) continue
    const rows = await query(gateway(), 'select * from usage_events where call_id = $1', [entry.id])
    expect(rows).toHaveLength(1)
    const { provenance, key_id: keyId, input_tokens: input, output_tokens: output } = rows[0] ?? {}
    expect(keyId).toBe(bench.tenant.keyId)
    usages.push({ provenance, input: Number(input), output: Number(output) })
  }
  return usages
}

/**
 * The upstream's requests for a client's calls, after expecting that none contains the caller's key.
 *
 * @param text that is in all of their bodies
 */
export async function upstreamCalls(bench: Bench, text: string): Promise<UpstreamRequest[]> {
  const requests = await seenRequests(gateway(), text)
  const { key } = bench.tenant
  // The upstream records a digest of headers that carry credentials.
  const digest = createHash('sha256').update(key).digest('hex')
  for (const { headers, body, bodyBytes } of requests) {
    expect(bodyBytes, 'a body that was recorded whole').toBe(Buffer.byteLength(body))
    const all = JSON.stringify({ headers, body })
    expect(all.includes(key)).toBe(false)
    expect(all.includes(digest)).toBe(false)
  }
  return requests
}
