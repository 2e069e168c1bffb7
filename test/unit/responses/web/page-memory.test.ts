import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ByteBudget } from '../../../../src/lib/bytes/byte-budget.ts'
import { loadPage, type WebPage } from '../../../../src/responses/tools/web/load-page.ts'
import { PageStore } from '../../../../src/responses/tools/web/page-store.ts'
import { DEFAULT_TOOL_RIGHTS } from '../../../harness/tool-rights.ts'
import { type StandInWeb, startStandInWeb } from '../../../harness/web-tools/stand-in-web.ts'

let web: StandInWeb
beforeAll(async () => {
  web = await startStandInWeb()
})
afterAll(() => web.close())

const BUDGET = 512 * 1024
const load = (path: string, budget: ByteBudget, holder = 'org_1') =>
  loadPage(
    `http://${web.hosts[0]}${path}`,
    {
      ...{ allow: web.hosts, rules: DEFAULT_TOOL_RIGHTS.web, publicNetwork: null },
      ...{ signal: new AbortController().signal, limits: { milliseconds: 2_000 } },
    },
    { budget, holder },
  )

describe('pages that are being read', () => {
  it('share a budget, and leave it when they are read or failed', async () => {
    const budget = new ByteBudget(() => BUDGET)
    await expect(load('/endless', budget)).rejects.toThrow(/^Too many large pages/)
    expect(await load('/page', budget)).toMatchObject({ title: 'Bees & flowers' })
    const whole = budget.open('org_1')
    expect(whole.take(BUDGET)).toBe(true)
    await expect(load('/page', budget)).rejects.toThrow(/^Too many large pages/)
  })

  it('lose their place to another organization when their server is slow', async () => {
    let now = 0
    const budget = new ByteBudget(
      () => 16,
      () => now,
    )
    // The server has sent 12 bytes, and nothing since.
    const slow = expect(load('/slow', budget)).rejects.toThrow(/^Too many large pages/)
    const fits = (bytes: number) => {
      const share = budget.open('org_2')
      const taken = share.take(bytes)
      share.close()
      return taken
    }
    await expect.poll(() => fits(5), { interval: 1 }).toBe(false)
    now = 6_000
    expect(fits(8)).toBe(true)
    await slow
  })
})

describe('pages that were read', () => {
  const call = { owner: { organizationId: 'org_1', userId: 'user_1' }, workspaceId: 'conv_1' }
  const pageOf = (characters: number): WebPage => ({
    ...{ url: 'https://a.example/', title: '', text: 'x'.repeat(characters), links: [], cut: false },
  })

  it('are kept for ten minutes', () => {
    let now = 0
    const store = new PageStore(() => now)
    store.add(call, 'a', pageOf(1))
    now = 600_000
    expect(store.get(call, 'a')).not.toBeNull()
    now++
    expect(store.get(call, 'a')).toBeNull()
  })

  /** Calls of four organizations, each of which may have a quarter of the store. */
  const calls = [1, 2, 3, 4].map((number) => ({
    ...call,
    owner: { organizationId: `org_${number}`, userId: 'user_1' },
  }))
  const countOf = (store: PageStore) => calls.map((each) => store.all(each).length)

  it('are evicted in their order when an organization has a quarter of the store', () => {
    const store = new PageStore(() => 0)
    store.add({ ...call, owner: { ...call.owner, organizationId: 'org_2' } }, 'other', pageOf(1))
    for (let index = 0; index < 51; index++) store.add(call, `short ${index}`, pageOf(1))
    expect([store.get(call, 'short 0'), store.get(call, 'short 1')]).toEqual([null, pageOf(1)])
    for (let index = 0; index < 3; index++) store.add(call, `long ${index}`, pageOf(1_000_000))
    expect([store.get(call, 'short 50'), store.get(call, 'long 0')]).toEqual([null, null])
    expect(countOf(store)).toEqual([2, 1, 0, 0])
  })

  it('are evicted in their order when all organizations have more than the store', () => {
    const store = new PageStore(() => 0)
    for (const each of calls) {
      for (let index = 0; index < 2; index++) store.add(each, `long ${index}`, pageOf(1_000_000))
    }
    expect(countOf(store)).toEqual([2, 2, 2, 2])
    store.add({ ...call, owner: { ...call.owner, organizationId: 'org_5' } }, 'a', pageOf(1))
    expect(countOf(store)).toEqual([1, 2, 2, 2])
  })

  it('count with their titles and links', () => {
    const links = Array.from({ length: 100 }, () => ({ url: 'u'.repeat(1_900), text: 't'.repeat(36) }))
    const store = new PageStore(() => 0)
    for (let index = 0; index < 40; index++) store.add(call, `links ${index}`, { ...pageOf(0), links })
    expect(store.all(call)).toHaveLength(10)
    for (let index = 0; index < 4; index++) {
      store.add(call, `title ${index}`, { ...pageOf(0), title: 'x'.repeat(1_000_000) })
    }
    expect(store.all(call)).toHaveLength(2)
  })

  it('are those of one caller in one conversation', () => {
    const store = new PageStore(() => 0)
    store.add(call, 'a', pageOf(1))
    const others = [
      { ...call, workspaceId: 'conv_2' },
      { ...call, owner: { ...call.owner, userId: 'user_2' } },
      { ...call, owner: { ...call.owner, organizationId: 'org_2' } },
    ]
    for (const other of others) expect([store.get(other, 'a'), store.all(other)]).toEqual([null, []])
  })
})
