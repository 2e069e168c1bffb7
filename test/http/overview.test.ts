import { beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { callEntries } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import { createAgent, definitionOf } from './support/agents.ts'

const OUTCOMES = ['ok', 'cancelled', 'refused', 'blocked', 'failed'] as const
type Outcome = (typeof OUTCOMES)[number]
type Counts = Record<Outcome | 'cost', number>

interface Row {
  id: string
  at: string
  user_id: string
  outcome: Outcome
  provider: string | null
  found: string[]
  cost: number
}

interface Overview {
  at: string
  today: Counts & { from: string; first_event_ms: { p50: number; p95: number } | null }
  week_before: number
  hours: Array<Counts & { at: string; first_event_ms: number | null }>
  failed_at: { provider: string; count: number } | null
  refused_to: { user_id: string; count: number } | null
  blocked_by: Array<{ detector: string; count: number }>
  spend: Array<{ user_id: string; calls: number; cost: number }>
  others: { users: number; calls: number; cost: number }
  latest_errors: Row[]
  runs: Array<{ agent: string; status: string; step: number; ended_at: string | null }> | null
  complete_from: string
}

const HOUR = 60 * 60_000

let tenant: Tenant
let ada: { userId: string; key: string; browser: ConsoleBrowser }

const overviewOf = (browser: Pick<ConsoleBrowser, 'ask'> = administrator(gateway())) =>
  browser.ask<Overview>('GET', `${tenant.base}/overview`)
const rowsOf = async () =>
  (await administrator(gateway()).ask<{ data: Row[] }>('GET', `${tenant.base}/calls?limit=200`)).data

async function callWith(key: string, content: string, more: object = {}): Promise<void> {
  const body = JSON.stringify({
    model: 'scripted-chat',
    max_tokens: 50,
    messages: [{ role: 'user', content }],
    ...more,
  })
  const url = `${gateway().baseUrl}/v1/chat/completions`
  await send(url, { method: 'POST', headers: bearer(key), body })
}

/** A call that ended some hours ago, as a flush would have stored it. */
const earlierCall = (
  hours: number,
  id: string,
  userId: string,
  outcome: Outcome,
  firstEvent: number | null,
) =>
  query(
    gateway(),
    `INSERT INTO calls (organization_id, id, at, request_id, user_id, surface, action, status, outcome, provider,
       duration_milliseconds, first_event_milliseconds, input_tokens, output_tokens, cost, count)
     VALUES ($1, $2, now() - $3::float * interval '1 hour', 'req', $4, 'chat', 'POST /v1/chat/completions', 200, $5,
       'elsewhere', 5, $6, 1, 1, 7, 1)`,
    [tenant.organizationId, id, hours, userId, outcome, firstEvent],
  )

beforeAll(async () => {
  tenant = await createTenant(gateway())
  const userId = await addMember(gateway(), tenant.base)
  const { key } = await addKey(gateway(), tenant.base, userId)
  ada = { userId, key, browser: await signedInBrowser(gateway(), tenant.base, userId) }
  const other = await addMember(gateway(), tenant.base)
  const otherKey = (await addKey(gateway(), tenant.base, other)).key
  await administrator(gateway()).ask('POST', `${tenant.base}/dlp/policies`, {
    name: 'accounts',
    directions: ['request'],
    rules: [{ detector: 'iban', action: 'block' }],
  })
  const broken = await registerScript(gateway(), [{ destroy: true }])
  await callWith(key, 'Hello')
  await callWith(key, 'Hello', { stream: true })
  await callWith(key, 'Hello', { model: 'nothing' })
  await callWith(otherKey, 'Hello')
  await callWith(otherKey, 'Pay to DE89 3704 0044 0532 0130 00.')
  await callWith(otherKey, `${broken} Hello`)
  await callEntries(gateway(), tenant, 6)
  await earlierCall(3, 'call_three', userId, 'failed', 40)
  await earlierCall(3, 'call_three_more', userId, 'ok', 80)
  await earlierCall(30, 'call_thirty', userId, 'failed', 90)
  for (const [index, hours] of [7 * 24, 7 * 24 - 0.5, 6 * 24, 8 * 24 + 24].entries())
    await earlierCall(hours, `call_week_${index}`, userId, 'ok', null)
})

/** What the rows of a list add up to. */
function countsOf(rows: readonly Row[]): Counts {
  const counts = Object.fromEntries([...OUTCOMES, 'cost'].map((name) => [name, 0])) as Counts
  for (const { outcome, cost } of rows) {
    counts[outcome] += 1
    counts.cost += cost
  }
  return counts
}

describe('the overview of calls', () => {
  it('adds up to the rows of the list, today and hour by hour', async () => {
    const overview = await overviewOf()
    const rows = await rowsOf()
    const from = Date.parse(overview.today.from)
    expect(from % (24 * HOUR)).toBe(0)
    expect(overview.today).toMatchObject(countsOf(rows.filter(({ at }) => Date.parse(at) >= from)))
    expect(overview.hours).toHaveLength(24)
    for (const hour of overview.hours) {
      const begin = Date.parse(hour.at)
      const ofHour = rows.filter(({ at }) => Date.parse(at) >= begin && Date.parse(at) < begin + HOUR)
      expect(hour).toMatchObject(countsOf(ofHour))
    }
    const sums = OUTCOMES.map((outcome) => overview.hours.reduce((sum, hour) => sum + hour[outcome], 0))
    expect(sums).toEqual([4, 0, 1, 1, 2])
    expect(Date.parse(overview.complete_from)).toBeLessThanOrEqual(Date.parse(overview.today.from))
  })

  it('has the median of the first events of an hour', async () => {
    const { hours } = await overviewOf()
    expect(hours.flatMap(({ first_event_ms: median }) => (median === null ? [] : [median]))).toContain(60)
  })

  it('compares with the same part of the day a week before', async () => {
    const overview = await overviewOf()
    const begin = Date.parse(overview.today.from) - 7 * 24 * HOUR
    const end = Date.parse(overview.at) - 7 * 24 * HOUR
    const rows = (await rowsOf()).filter(({ at }) => Date.parse(at) >= begin && Date.parse(at) <= end)
    expect(overview.week_before).toBe(rows.length)
  })

  it('says where calls failed, who was refused and what was blocked', async () => {
    const overview = await overviewOf()
    const rows = (await rowsOf()).filter(({ at }) => Date.parse(at) >= Date.parse(overview.today.from))
    const failed = rows.filter(({ outcome, provider }) => outcome === 'failed' && provider !== null)
    expect(overview.failed_at?.count ?? 0).toBeGreaterThanOrEqual(failed.length > 0 ? 1 : 0)
    expect(failed.map(({ provider }) => provider)).toContain(overview.failed_at?.provider)
    expect(overview.refused_to).toEqual({ user_id: ada.userId, count: 1 })
    expect(overview.blocked_by).toEqual([{ detector: 'iban', count: 1 }])
  })

  it('lists those that have spent the most, and the rest as one', async () => {
    const { spend, others, today } = await overviewOf()
    const total = spend.reduce((sum, { cost }) => sum + cost, others.cost)
    expect(total).toBe(today.cost)
    expect(spend.map(({ cost }) => cost)).toEqual(spend.map(({ cost }) => cost).toSorted((a, b) => b - a))
    expect(others.users).toBe(0)
    const ids = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        earlierCall(0, `call_user_${index}`, `00000000-0000-4000-8000-00000000000${index}`, 'ok', null),
      ),
    )
    const after = await overviewOf()
    expect(after.spend).toHaveLength(5)
    expect(after.others.users).toBe(spend.length + ids.length - 5)
    expect(after.spend.reduce((sum, { cost }) => sum + cost, after.others.cost)).toBe(after.today.cost)
  })

  it('lists the latest errors of a day, newest first', async () => {
    const { latest_errors: errors } = await overviewOf()
    expect(errors.map(({ outcome }) => outcome).toSorted()).toEqual([
      'blocked',
      'failed',
      'failed',
      'refused',
    ])
    expect(errors.map(({ at }) => at)).toEqual(
      errors
        .map(({ at }) => at)
        .toSorted()
        .toReversed(),
    )
    expect(errors.map(({ id }) => id)).not.toContain('call_thirty')
  })

  it('lists the runs of the last hour for those who may read them', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: 'Hello.' }], { name: 'Digest' }))
    for (const [minutes, status] of [
      [5, 'failure'],
      [20, 'in_progress'],
      [90, 'success'],
    ])
      await query(
        gateway(),
        `INSERT INTO runs (id, organization_id, user_id, agent_id, agent_version, conversation_id, origin, sealed_inputs,
           status, rev, step, attempt, created_at, deadline_at)
         SELECT gen_random_uuid(), $1, $2, $3, 1, 'conv_x', 'api', '', $4, 1, 2, 1, at, at
         FROM (SELECT now() - $5::int * interval '1 minute') AS moment(at)`,
        [tenant.organizationId, tenant.userId, agentId, status, minutes],
      )
    const { runs } = await overviewOf()
    expect(runs?.map(({ agent, status, step }) => [agent, status, step])).toEqual([
      ['Digest', 'failure', 2],
      ['Digest', 'in_progress', 2],
    ])
    expect((await overviewOf(ada.browser)).runs).toBeNull()
  })

  it('has only the calls of a member for that member', async () => {
    const overview = await overviewOf(ada.browser)
    const rows = (await rowsOf()).filter(({ user_id: userId }) => userId === ada.userId)
    const own = rows.filter(({ at }) => Date.parse(at) >= Date.parse(overview.today.from))
    expect(overview.today).toMatchObject(countsOf(own))
    expect(overview.spend.map(({ user_id: id }) => id)).toEqual([ada.userId])
    expect(new Set(overview.latest_errors.map(({ user_id: id }) => id))).toEqual(new Set([ada.userId]))
    expect(overview.blocked_by).toEqual([])
  })
})
