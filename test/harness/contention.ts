import { expect, vi } from 'vitest'
import { upstreamControl } from './gateway.ts'
import { expectWholeLedger } from './invariants.ts'
import { type CallKind, type CallResult, callModel, errorOf, streamEnded } from './model-calls.ts'
import { credits } from './records.ts'
import type { GatewayAddress } from './start-gateway.ts'
import { administrator, createTenant, type Tenant, uniqueName } from './tenant.ts'

export interface Contention {
  kinds: readonly CallKind[]
  /** Calls that are made at once, in equal parts of the kinds. */
  calls: number
  /** How many of the dearest kind's calls the balance is for. */
  affordable: number
  /** How many of the admitted ones leave before their answer. */
  leaving?: number
}

/** A tenant that no rate limit stands in the way of. */
export function createBusyTenant(address: GatewayAddress, credits: number): Promise<Tenant> {
  const rate = { rate_limit_per_minute: 1_000_000, user_rate_limit_per_minute: 1_000_000 }
  return createTenant(address, { credits, organization: rate })
}

/**
 * Makes many calls at once on a balance that is too small for all. The admitted ones wait at the upstream until every
 * call has been decided, and then end.
 *
 * @returns what each client saw, the admitted ones apart. Fails unless exactly what fits was admitted and answered,
 *   everything else was refused for want of credits, and the ledger is whole afterwards
 */
export async function contend(address: GatewayAddress, contention: Contention) {
  const { kinds, calls, affordable, leaving = 0 } = contention
  const tenant = await createBusyTenant(address, 0)
  const signal = uniqueName('held')
  const text = `script:slow-headers signal=${signal}`
  const needs = await Promise.all(kinds.map((kind) => reservationOf(address, kind, tenant, text)))
  const balance = affordable * Math.max(...needs)
  await administrator(address).ask('POST', `${tenant.base}/credits`, {
    amount: balance,
    reason: 'contention',
  })

  const control = upstreamControl(address)
  const undecided = new Map<number, AbortController>()
  const running = Array.from({ length: calls }, async (_, index) => {
    const kind = kinds[index % kinds.length] as CallKind
    const abort = new AbortController()
    undecided.set(index, abort)
    const options = { key: tenant.key, text, signal: abort.signal, boundMilliseconds: 60_000 }
    const result = await callModel(address, kind, options)
    undecided.delete(index)
    return result
  })
  const held = await vi.waitFor(
    async () => {
      const waiting = (await control.waiting())[signal] ?? 0
      if (waiting !== undecided.size) throw new Error(`${waiting} held of ${undecided.size} undecided`)
      return waiting
    },
    { timeout: 60_000, interval: 25 },
  )
  const during = await credits(address, tenant)
  expect(during.available).toBeGreaterThanOrEqual(0)
  expect(during.balance).toBe(balance)
  for (const abort of [...undecided.values()].slice(0, leaving)) abort.abort()
  await vi.waitFor(async () => expect((await control.waiting())[signal] ?? 0).toBe(held - leaving), {
    timeout: 10_000,
    interval: 25,
  })
  await control.release(signal)

  const results = await Promise.all(running)
  const refused = results.filter(({ status }) => status === 429)
  const answered = results.filter(({ status }) => status === 200)
  expect(results.filter(({ end }) => end === 'left')).toHaveLength(leaving)
  expect(answered).toHaveLength(held - leaving)
  expect(refused).toHaveLength(calls - held)
  for (const result of refused) expectNoCredits(result)
  for (const result of answered) expectAnswered(result)
  // The rest of the balance was too small for every call that was refused.
  const cheapest = Math.min(...refused.map(({ kind }) => needs[kinds.indexOf(kind)] ?? 0))
  expect(during.available).toBeLessThan(cheapest)
  const report = await expectWholeLedger(address, tenant, results)
  expect(report.calls.filter(({ status }) => status === 200)).toHaveLength(answered.length)
  expect(report.calls.filter(({ status }) => status === 499)).toHaveLength(leaving)
  return { tenant, held, answered, refused, report, spent: balance - report.balance }
}

/** Reservation of such a call, read from the refusal of a caller without credits. */
async function reservationOf(
  address: GatewayAddress,
  kind: CallKind,
  tenant: Tenant,
  text: string,
): Promise<number> {
  const result = await callModel(address, kind, { key: tenant.key, text })
  expectNoCredits(result)
  return Number(/up to (\d+) micro-credits/.exec(errorOf(result)?.message ?? '')?.[1])
}

function expectNoCredits(result: CallResult): void {
  expect(result).toMatchObject({ status: 429, end: 'complete' })
  const { type, code, message } = errorOf(result) ?? {}
  expect({ type, code }).toEqual({ type: 'rate_limit_error', code: undefined })
  expect(message).toContain('credits')
  expect(result.headers['x-should-retry']).toBe('false')
}

function expectAnswered(result: CallResult): void {
  expect(result.end).toBe('complete')
  expect(result.kind.stream ? streamEnded(result) : errorOf(result) === null).toBe(true)
}
