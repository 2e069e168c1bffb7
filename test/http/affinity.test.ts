import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import {
  answered,
  callRouted,
  createRoutedModel,
  failed,
  inTurn,
  type RoutedModel,
  recordedCall,
  routedRequest,
} from '../harness/routed-model.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

type Dialect = 'chat' | 'messages'
const KIND = { chat: 'openai-compatible', messages: 'anthropic' } as const
const twoRoutes = (dialect: Dialect) => createRoutedModel(gateway(), [KIND[dialect], KIND[dialect]])

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
    { role: 'user', content: await inTurn(gateway(), ...answers) },
  ]
  const request = routedRequest(dialect, model, '', { ...conversation.members, messages })
  const answer = await callRouted(gateway(), owner, request, conversation.headers)
  expect(answer.status, answer.text).toBe(200)
  return (await recordedCall(gateway(), owner, model, answer)).attempts
}

const marked = (text: string) => [{ type: 'text', text, cache_control: { type: 'ephemeral' } }]

describe.each(['chat', 'messages'] as const)(
  'a conversation of %s that another route took over',
  (dialect) => {
    // What happens to one conversation leaves the others where they are.
    let model: RoutedModel
    let otherModel: RoutedModel
    beforeAll(async () => {
      model = await twoRoutes(dialect)
      otherModel = await twoRoutes(dialect)
    })

    it('stays there while that one works, and goes back when it fails', async () => {
      const first = `first words ${randomUUID()}`
      expect(await turn(dialect, model, { first })).toEqual(['0 200'])
      expect(await turn(dialect, model, { first }, 1)).toEqual(['0 500', '1 200'])
      expect(await turn(dialect, model, { first })).toEqual(['1 200'])
      expect(await turn(dialect, model, { first: `others ${first}` })).toEqual(['0 200'])
      expect(await turn(dialect, model, { first })).toEqual(['1 200'])
      expect(await turn(dialect, model, { first }, 1)).toEqual(['1 500', '0 200'])
      expect(await turn(dialect, model, { first })).toEqual(['0 200'])
    })

    const names: Array<[string, (name: string) => Parameters<typeof turn>[2]]> = [
      ['a session header', (name) => ({ headers: { 'x-session-id': name } })],
      ['the session header of Claude Code', (name) => ({ headers: { 'x-claude-code-session-id': name } })],
      dialect === 'chat'
        ? ['prompt_cache_key', (name) => ({ members: { prompt_cache_key: name } })]
        : ['metadata.user_id', (name) => ({ members: { metadata: { user_id: name } } })],
    ]
    it.each(names)('is known by %s, whatever it says', async (_, named) => {
      const [name, other] = [randomUUID(), randomUUID()]
      await turn(dialect, model, { ...named(name), first: 'one' }, 1)
      expect(await turn(dialect, model, { ...named(name), first: 'another' })).toEqual(['1 200'])
      expect(await turn(dialect, model, { ...named(other), first: 'one' })).toEqual(['0 200'])
    })

    it('is known by how it begins, wherever its cache markers stand', async () => {
      const first = `first words ${randomUUID()}`
      await turn(dialect, model, { first: marked(first) }, 1)
      expect(await turn(dialect, model, { first })).toEqual(['1 200'])
      expect(await turn(dialect, model, { first: `${first}.` })).toEqual(['0 200'])
    })

    it("is one organization's and one model's", async () => {
      const other = await createTenant(gateway())
      const conversation = { headers: { 'x-session-id': randomUUID() } }
      await turn(dialect, model, conversation, 1)
      expect(await turn(dialect, model, conversation, 0, other)).toEqual(['0 200'])
      expect(await turn(dialect, otherModel, conversation)).toEqual(['0 200'])
      expect(await turn(dialect, model, conversation)).toEqual(['1 200'])
    })
  },
)
