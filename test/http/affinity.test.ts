import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { advanceRedis } from '../harness/gateway.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import {
  answered,
  callRouted,
  createRoutedModel,
  failed,
  inTurn,
  type RoutedModel,
  recordedCall,
  routedRequest,
} from './support/routed-model.ts'
import { createTenant, type Tenant } from './support/tenant.ts'

/** Its Redis is looked into and its time moved, so it is shared with nobody. */
let address: StartedGateway
let tenant: Tenant

beforeAll(async () => {
  address = await startGateway({ bundleDirectory: inject('bundleDirectory') })
  tenant = await createTenant(address)
}, 60_000)
afterAll(() => address?.stop())

type Dialect = 'chat' | 'messages'
const KIND = { chat: 'openai-compatible', messages: 'anthropic' } as const
const twoRoutes = (dialect: Dialect) => createRoutedModel(address, [KIND[dialect], KIND[dialect]])

/** One turn of a conversation. @param fails how many routes fail it first. @returns the attempts. */
async function turn(
  dialect: Dialect,
  model: RoutedModel,
  conversation: { members?: object; headers?: Record<string, string>; first?: unknown },
  fails = 0,
  owner = tenant,
): Promise<string[]> {
  const answers = [...Array.from({ length: fails }, () => failed(500)), answered(dialect, 'yes', false)]
  const messages = [
    { role: 'user', content: conversation.first ?? 'hello' },
    { role: 'assistant', content: 'yes?' },
    { role: 'user', content: await inTurn(address, ...answers) },
  ]
  const request = routedRequest(dialect, model, '', { ...conversation.members, messages })
  const answer = await callRouted(address, owner, request, conversation.headers)
  expect(answer.status, answer.text).toBe(200)
  return (await recordedCall(address, owner, model, answer)).attempts
}

async function redis(...command: string[]): Promise<unknown> {
  const { UPSTASH_REDIS_REST_URL = '', UPSTASH_REDIS_REST_TOKEN } = address.variables
  const response = await fetch(UPSTASH_REDIS_REST_URL, {
    method: 'POST',
    headers: { authorization: `Bearer ${UPSTASH_REDIS_REST_TOKEN}` },
    body: JSON.stringify(command),
  })
  return ((await response.json()) as { result: unknown }).result
}

/** What is remembered of conversations: key and value. */
async function homes(): Promise<Map<string, string>> {
  const keys = (await redis('KEYS', 'home:*')) as string[]
  return new Map(await Promise.all(keys.map(async (key) => [key, String(await redis('GET', key))] as const)))
}

/** The key of the one conversation that was remembered since. */
function newHome(before: Map<string, string>): Promise<string> {
  return vi.waitFor(
    async () => {
      const found = [...(await homes()).keys()].filter((key) => !before.has(key))
      if (found.length !== 1) throw new Error(`${found.length} conversations are new`)
      return found[0] as string
    },
    { timeout: 5_000, interval: 20 },
  )
}

const marked = (text: string) => [{ type: 'text', text, cache_control: { type: 'ephemeral' } }]

describe.each(['chat', 'messages'] as const)(
  'a conversation of %s that another route took over',
  (dialect) => {
    it('stays there while that one works, and goes back when it fails', async () => {
      const model = await twoRoutes(dialect)
      const first = `first words ${randomUUID()}`
      expect(await turn(dialect, model, { first })).toEqual(['0 200'])
      const before = await homes()
      expect(await turn(dialect, model, { first }, 1)).toEqual(['0 500', '1 200'])
      const key = await newHome(before)
      expect(await turn(dialect, model, { first })).toEqual(['1 200'])
      expect(await turn(dialect, model, { first: `others ${first}` })).toEqual(['0 200'])
      expect(await turn(dialect, model, { first })).toEqual(['1 200'])
      expect(await turn(dialect, model, { first }, 1)).toEqual(['1 500', '0 200'])
      await vi.waitFor(async () => expect(await redis('EXISTS', key)).toBe(0), {
        timeout: 5_000,
        interval: 20,
      })
      expect(await turn(dialect, model, { first })).toEqual(['0 200'])
    })

    it('goes back when it has been quiet for longer than caches live, and not before', async () => {
      const model = await twoRoutes(dialect)
      const first = `first words ${randomUUID()}`
      const before = await homes()
      expect(await turn(dialect, model, { first }, 1)).toEqual(['0 500', '1 200'])
      const key = await newHome(before)
      const left = async () => Number(await redis('PTTL', key))
      await advanceRedis(address, 200_000)
      expect(await left()).toBeLessThan(101_000)
      expect(await turn(dialect, model, { first })).toEqual(['1 200'])
      // Each use warms the cache anew.
      await vi.waitFor(async () => expect(await left()).toBeGreaterThan(290_000), {
        timeout: 5_000,
        interval: 20,
      })
      await advanceRedis(address, 301_000)
      expect(await turn(dialect, model, { first })).toEqual(['0 200'])
    })

    it('leaves nothing in Redis but digests', async () => {
      const model = await twoRoutes(dialect)
      const before = await homes()
      const secret = `secret words ${randomUUID()}`
      await turn(dialect, model, { first: secret, headers: { 'x-session-id': secret } }, 1)
      const key = await newHome(before)
      expect(key).toMatch(/^home:[0-9a-f]{64}$/)
      expect((await homes()).get(key)).toMatch(/^r[0-9a-f]{16}$/)
    })

    const names: Array<[string, (name: string) => Parameters<typeof turn>[2]]> = [
      ['a session header', (name) => ({ headers: { 'x-session-id': name } })],
      ['the session header of Claude Code', (name) => ({ headers: { 'x-claude-code-session-id': name } })],
      dialect === 'chat'
        ? ['prompt_cache_key', (name) => ({ members: { prompt_cache_key: name } })]
        : ['metadata.user_id', (name) => ({ members: { metadata: { user_id: name } } })],
    ]
    it.each(names)('is known by %s, whatever it says', async (_, named) => {
      const model = await twoRoutes(dialect)
      const [name, other] = [randomUUID(), randomUUID()]
      await turn(dialect, model, { ...named(name), first: 'one' }, 1)
      expect(await turn(dialect, model, { ...named(name), first: 'another' })).toEqual(['1 200'])
      expect(await turn(dialect, model, { ...named(other), first: 'one' })).toEqual(['0 200'])
    })

    it('is known by how it begins, wherever its cache markers stand', async () => {
      const model = await twoRoutes(dialect)
      const first = `first words ${randomUUID()}`
      await turn(dialect, model, { first: marked(first) }, 1)
      expect(await turn(dialect, model, { first })).toEqual(['1 200'])
      expect(await turn(dialect, model, { first: `${first}.` })).toEqual(['0 200'])
    })

    it("is one organization's and one model's", async () => {
      const [model, otherModel] = await Promise.all([twoRoutes(dialect), twoRoutes(dialect)])
      const other = await createTenant(address)
      const conversation = { headers: { 'x-session-id': randomUUID() } }
      await turn(dialect, model, conversation, 1)
      expect(await turn(dialect, model, conversation, 0, other)).toEqual(['0 200'])
      expect(await turn(dialect, otherModel, conversation)).toEqual(['0 200'])
      expect(await turn(dialect, model, conversation)).toEqual(['1 200'])
    })
  },
)

describe('what another isolate decided', () => {
  it('counts here as well', async () => {
    const model = await twoRoutes('chat')
    const conversation = { headers: { 'x-session-id': randomUUID() } }
    await turn('chat', model, conversation, 1)
    await address.restartWorkerd()
    expect(await turn('chat', model, conversation)).toEqual(['1 200'])
  })
})

describe('a model with one route', () => {
  it('asks and tells Redis nothing', async () => {
    const model = await createRoutedModel(address, ['openai-compatible'])
    const before = await homes()
    expect(await turn('chat', model, { headers: { 'x-session-id': randomUUID() } })).toEqual(['0 200'])
    expect([...(await homes()).keys()].filter((key) => !before.has(key))).toEqual([])
  })
})
