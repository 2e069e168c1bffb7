import { afterEach, describe, expect, it } from 'vitest'
import { newUser, ORGANIZATION, page, send, startInstallation, TOKEN } from './installation.ts'

const AUDIT = `/organizations/${ORGANIZATION}/audit`
const START = Date.parse('2026-11-21T10:00:00Z')

const record = (second: number, kind = 'call', id = `${kind}_${second}`) => ({
  id,
  kind,
  at: new Date(START + second * 1000).toISOString(),
  status: 200,
  surface: 'messages',
  model: 'acme/large',
  credits_settled: second,
  key_id: 'key',
  request_id: `req_${second}`,
})

const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** Follows the records that a test answers with, until it has printed so many calls. */
async function tail(
  looks: Array<ReturnType<typeof record>[] | 'refused' | 'broken'>,
  calls: number,
  ...words: string[]
) {
  const waiting = [...looks]
  const installation = await startInstallation({
    [AUDIT]: (_, outgoing) => {
      const look = waiting.length > 1 ? waiting.shift() : waiting[0]
      if (look === 'broken') outgoing.destroy()
      else if (look === 'refused') send(outgoing, 503, { message: 'Away.' })
      else return page((look ?? []).toReversed())
    },
  })
  const user = newUser()
  closers.push(installation.close, user.remove)
  const interruption = new AbortController()
  const ids: string[] = []
  const run = await user.headgate(
    ['calls', 'tail', '--organization', 'acme', '--interval', '1', '--json', ...words],
    {
      environment: { HEADGATE_URL: installation.url, ADMIN_TOKEN: TOKEN },
      interrupted: interruption.signal,
      onLine: (line) => {
        ids.push(JSON.parse(line).id)
        if (ids.length === calls) interruption.abort()
      },
    },
  )
  return { run, ids, asked: installation.received.filter(({ url }) => url.pathname.endsWith('/audit')) }
}

describe('headgate calls tail', () => {
  it('begins with the newest calls, prints each later one once, and ends on Ctrl-C', async () => {
    const before = [record(1), record(2), record(3, 'change'), record(4)]
    const { run, ids, asked } = await tail(
      [before, [...before, record(5), record(6, 'change'), record(7)], [record(7), record(8)]],
      5,
      '--last',
      '2',
    )
    expect(ids).toEqual(['call_2', 'call_4', 'call_5', 'call_7', 'call_8'])
    expect(run).toMatchObject({ code: 0, errors: '' })
    // Records of other shards can become visible later than newer ones.
    expect(Date.parse(asked[1]?.url.searchParams.get('from') ?? '')).toBeLessThan(START)
  })

  it('prints what a shard recorded late, and nothing that was there before it began', async () => {
    const { ids } = await tail(
      [
        [record(10)],
        [record(1, 'call', 'old'), record(10), record(20)],
        [record(15, 'call', 'late'), record(20)],
      ],
      3,
    )
    expect(ids).toEqual(['call_10', 'call_20', 'late'])
  })

  it('goes on after failures without losing a call', async () => {
    const { run, ids } = await tail([[record(1)], 'broken', 'refused', [record(1), record(2), record(3)]], 3)
    expect(ids).toEqual(['call_1', 'call_2', 'call_3'])
    expect(run.code).toBe(0)
    expect(run.errors).toMatch(
      /does not answer.*; trying again in 1 second\n.*503 Away.; trying again in 2 seconds/,
    )
  })

  it('ends where the token is no longer taken', async () => {
    const installation = await startInstallation()
    const user = newUser()
    closers.push(installation.close, user.remove)
    const run = await user.headgate(['calls', 'tail', '--organization', ORGANIZATION], {
      environment: { HEADGATE_URL: installation.url, ADMIN_TOKEN: 'hga_wrong' },
    })
    expect(run).toMatchObject({ code: 1, errors: expect.stringContaining('401') })
  })

  it('prints lines for people', async () => {
    const installation = await startInstallation({ [AUDIT]: () => page([record(1)]) })
    const user = newUser()
    closers.push(installation.close, user.remove)
    const run = await user.headgate(['calls', 'tail', '--organization', ORGANIZATION], {
      environment: { HEADGATE_URL: installation.url, ADMIN_TOKEN: TOKEN },
      interrupted: AbortSignal.abort(),
    })
    expect(run.output.split('\n')).toEqual([
      expect.stringMatching(/^AT +STATUS {2}SURFACE +MODEL +CREDITS SETTLED {2}KEY ID +REQUEST ID$/),
      expect.stringMatching(/^2026-11-21T10:00:01.000Z {2}200 +messages +acme\/large +1 +key +req_1$/),
    ])
  })
})
