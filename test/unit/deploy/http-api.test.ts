import { describe, expect, it } from 'vitest'
import { cloudflarePermission } from '../../../scripts/deploy/cloudflare-api.ts'
import { HttpApi } from '../../../scripts/deploy/http-api.ts'
import { MovingClock } from '../../harness/cloud/moving-clock.ts'

type Reply = number | 'cut' | { status: number; retryAfter: string }

/** An API that answers these in turn, and the last one from then on. */
function apiOf(...replies: Reply[]) {
  const clock = new MovingClock()
  const sent: string[] = []
  const api = new HttpApi({
    name: 'Cloudflare',
    baseUrl: 'https://api.example',
    authorization: 'Bearer canary-token',
    clock,
    permissionOf: cloudflarePermission,
    fetch: (async (url: string, { method }: RequestInit) => {
      const reply = replies[Math.min(sent.length, replies.length - 1)]
      sent.push(`${method} ${url}`)
      if (reply === 'cut' || reply === undefined) throw new TypeError('fetch failed: canary-token')
      if (typeof reply === 'number') return new Response('{"done":true}', { status: reply })
      return new Response('{}', { status: reply.status, headers: { 'retry-after': reply.retryAfter } })
    }) as typeof fetch,
  })
  return { api, clock, sent }
}

describe('an API of a deployment', () => {
  it('waits as long as a 429 says', async () => {
    const { api, clock } = apiOf({ status: 429, retryAfter: '7' }, { status: 429, retryAfter: '11' }, 200)
    expect(await api.send('GET', '/x')).toEqual({ status: 200, body: { done: true } })
    expect(clock.waits).toEqual([7_000, 11_000])
  })

  it('gives up after five refusals, or at once where the wait is long', async () => {
    const always = apiOf({ status: 429, retryAfter: '5' })
    await expect(always.api.send('GET', '/x')).rejects.toThrow(
      'Cloudflare limits the rate of requests (GET /x); run again',
    )
    expect(always.sent.length).toBe(5)
    const long = apiOf({ status: 429, retryAfter: '3600' })
    await expect(long.api.send('GET', '/x')).rejects.toThrow('limits the rate')
    expect([long.sent.length, long.clock.waits]).toEqual([1, []])
  })

  it.each([
    ['/accounts/a/r2/buckets/b', 'Account: Workers R2 Storage: Edit'],
    ['/accounts/a/workers/services/s', 'Account: Workers Scripts: Edit'],
    ['/accounts/a/workers/domains', 'Zone: Workers Routes: Edit'],
    ['/accounts/a', 'Account: Account Settings: Read'],
  ])('names the permission that a 403 of %s needs', async (path, permission) => {
    const { api, sent } = apiOf(403)
    await expect(api.send('GET', path)).rejects.toThrow(`lacks the permission "${permission}`)
    expect(sent.length).toBe(1)
  })

  it('repeats a cut read, and never a cut write', async () => {
    const read = apiOf('cut', 502, 200)
    expect(await read.api.send('GET', '/x')).toMatchObject({ status: 200 })
    const write = apiOf('cut', 200)
    await expect(write.api.send('POST', '/x', {})).rejects.toThrow(
      'Cloudflare does not answer (POST /x); run again to continue',
    )
    expect(write.sent.length).toBe(1)
  })

  it('has no token in a message', async () => {
    for (const reply of ['cut', 401, 403, 429, 500] as const) {
      await expect(apiOf(reply).api.send('POST', '/x?role=r')).rejects.not.toThrow(/canary|role/)
    }
  })
})
