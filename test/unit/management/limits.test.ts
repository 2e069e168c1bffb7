import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ADMIN_TOKEN, type Harness, startManagement } from './harness.ts'

const LIMIT = 5

let harness: Harness
let minute = Date.UTC(2026, 10, 21, 12, 0)
beforeAll(async () => {
  // Generous, so that a busy machine is not taken for a slow Redis.
  const patient = { LIMITS_TIMEOUT_MS: 20_000 }
  harness = await startManagement({ ...patient, MANAGEMENT_RATE_LIMIT: LIMIT, DEGRADED_RATE_LIMIT: 3 })
}, 60_000)
afterAll(() => harness?.close())
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
  minute += 10 * 60_000
  vi.setSystemTime(minute)
  return () => {
    harness.redisForwarder.behaviour = 'forward'
    vi.useRealTimers()
  }
})

async function statuses(times: number, token: string, address: string) {
  const answers = []
  for (let each = 0; each < times; each += 1) {
    const headers = { authorization: `Bearer ${token}`, 'cf-connecting-ip': address }
    answers.push(await harness.request('GET', '/organizations', undefined, headers))
  }
  return { answers, statuses: answers.map(({ status }) => status) }
}

describe('the management API', () => {
  it('takes so many requests a minute of an administrator from one address', async () => {
    const { answers, statuses: told } = await statuses(LIMIT + 2, ADMIN_TOKEN, '192.0.2.1')
    expect(told).toEqual([...Array(LIMIT).fill(200), 429, 429])
    expect(answers.at(-1)?.headers.get('retry-after')).toBe('60')
    expect((await statuses(1, ADMIN_TOKEN, '192.0.2.2')).statuses).toEqual([200])
  })

  it('answers 429 to an address that goes on guessing, and lets the administrator in from there', async () => {
    const { statuses: told } = await statuses(32, 'a-wrong-administration-token', '192.0.2.3')
    expect(told).toEqual([...Array(30).fill(401), 429, 429])
    expect((await statuses(1, ADMIN_TOKEN, '192.0.2.3')).statuses).toEqual([200])
  })

  it('takes fewer while Redis is away, and never any number', async () => {
    harness.redisForwarder.behaviour = { status: 500, body: 'down' }
    expect((await statuses(5, ADMIN_TOKEN, '192.0.2.4')).statuses).toEqual([200, 200, 200, 429, 429])
    expect((await statuses(5, 'a-wrong-administration-token', '192.0.2.5')).statuses).toEqual([
      401, 401, 401, 429, 429,
    ])
  })
})
