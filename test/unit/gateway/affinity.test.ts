import type { Redis } from '@upstash/redis'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { Route } from '../../../src/gateway/catalog/catalog.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { Affinity, type AffinityDeps, routeDigest } from '../../../src/gateway/routes/affinity.ts'
import { chat, outline } from './outlining.ts'

const route = (id: string): Route => ({
  provider: {
    id,
    name: id,
    kind: 'openai-compatible',
    baseUrl: 'https://x',
    credential: { parts: {}, secrets: [] },
  },
  upstreamModel: 'm',
})
const [FIRST, SECOND] = [route('first'), route('second')]
const LIFETIME_MS = 5 * 60_000

let now = Date.UTC(2026, 10, 21)
let held: Map<string, string>
let asked: string[]
/** What Redis does instead of answering. */
let fault: (() => Promise<never>) | null
let written: Array<Promise<unknown>>

beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  // Far from what another test has left in the isolate's memory.
  now += 60 * 60_000
  held = new Map()
  asked = []
  fault = null
  written = []
})

const redis = {
  get: async (key: string) => {
    asked.push('get')
    return fault ? fault() : (held.get(key) ?? null)
  },
  set: async (key: string, value: string, options: unknown) => {
    asked.push(`set ${JSON.stringify(options)}`)
    if (fault) return fault()
    held.set(key, value)
  },
  del: async (key: string) => {
    asked.push('del')
    if (fault) return fault()
    held.delete(key)
  },
} as unknown as Redis

const deps: AffinityDeps = {
  clock: () => now,
  redis,
  configuration: { KEY_PEPPERS: new Map([['p1', new Uint8Array(32)]]), LIMITS_TIMEOUT_MS: 30 },
  waitUntil: (work) => written.push(work),
}

function begin(session: string, routes: Route[] = [FIRST, SECOND]): Affinity | null {
  const headers = new Headers({ 'x-session-id': session })
  const call = { organizationId: 'o', modelId: 'm', headers, outline: outline(chatCompletions, chat({})) }
  return Affinity.begin(deps, routes, call)
}

async function served(session: string, where: Route): Promise<void> {
  await begin(session)?.served(where)
  await Promise.all(written)
}

const home = (session: string) => begin(session)?.home

describe('where a conversation belongs', () => {
  it('is not asked when there is one route', () => {
    expect(begin('one', [FIRST])).toBeNull()
    expect(asked).toEqual([])
  })

  it('is not told while the first route serves it', async () => {
    await served('plain', FIRST)
    expect(asked).toEqual(['get'])
    expect(written).toEqual([])
  })

  it('is told when another took it over, with each use, and when the first has it again', async () => {
    await served('moved', SECOND)
    expect(await home('moved')).toBe(routeDigest(SECOND))
    await served('moved', SECOND)
    await served('moved', FIRST)
    expect(await home('moved')).toBeNull()
    const set = `set {"px":${LIFETIME_MS}}`
    expect(asked).toEqual(['get', set, 'get', 'get', set, 'get', 'del', 'get'])
    expect([...held.values()]).toEqual([])
  })

  it('is what Redis says, whatever this isolate knew', async () => {
    await served('elsewhere', SECOND)
    held.clear()
    expect(await home('elsewhere')).toBeNull()
  })

  it.each<[string, () => Promise<never>]>([
    ['fails', () => Promise.reject(new Error('away'))],
    ['is silent', () => new Promise<never>(() => {})],
  ])('is what this isolate knows while Redis %s, for as long as caches live', async (name, how) => {
    await served(name, SECOND)
    fault = how
    expect(await home(name)).toBe(routeDigest(SECOND))
    expect(await home(`not ${name}`)).toBeNull()
    // Redis is left alone for a while.
    expect(asked.filter((each) => each === 'get')).toHaveLength(2)
    now += LIFETIME_MS
    expect(await home(name)).toBeNull()
  })

  it('is kept by this isolate when it could not be told', async () => {
    fault = () => Promise.reject(new Error('away'))
    await served('untold', SECOND)
    expect(await home('untold')).toBe(routeDigest(SECOND))
  })

  it.each([5, {}, null])('is nowhere when Redis holds %j', async (value) => {
    await served('strange', SECOND)
    for (const key of held.keys()) held.set(key, value as unknown as string)
    expect(await home('strange')).toBeNull()
  })
})
