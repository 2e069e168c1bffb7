import { beforeEach, describe, expect, it } from 'vitest'
import { type CatalogRoute, routeKey } from '../../../src/gateway/catalog/catalog.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import type { Operation } from '../../../src/gateway/protocols/operations.ts'
import { Affinity } from '../../../src/gateway/upstreams/affinity.ts'
import { chat, outline } from './outlining.ts'

const route = (id: string): CatalogRoute => ({
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
// Far from what another test has left in the isolate's memory.
beforeEach(() => {
  now += 60 * 60_000
})

function begin(
  session: string,
  routes: CatalogRoute[] = [FIRST, SECOND],
  operation: Operation = 'chat_completions',
): Affinity {
  const headers = new Headers({ 'x-session-id': session })
  const call = {
    request: { operation, headers, principal: { organizationId: 'o' } },
    model: { id: 'm' },
    routes,
    outline: outline(chatCompletions, chat({})),
  }
  return new Affinity(call as unknown as ConstructorParameters<typeof Affinity>[0], () => now)
}

const answered = (session: string, where: CatalogRoute) => begin(session).noteAnswer(where)
const routeOf = (session: string) => begin(session).route

describe('the route of a conversation', () => {
  it('is the first one while that answers', () => {
    answered('plain', FIRST)
    expect(routeOf('plain')).toBeNull()
  })

  it('is the one that took over, until the first one answers again', () => {
    answered('moved', SECOND)
    expect(routeOf('moved')).toBe(routeKey(SECOND))
    expect(routeOf('not moved')).toBeNull()
    answered('moved', FIRST)
    expect(routeOf('moved')).toBeNull()
  })

  it('is stored until five minutes after its last answer', () => {
    answered('quiet', SECOND)
    now += LIFETIME_MS - 1
    expect(routeOf('quiet')).toBe(routeKey(SECOND))
    answered('quiet', SECOND)
    now += LIFETIME_MS - 1
    expect(routeOf('quiet')).toBe(routeKey(SECOND))
    now += 1
    expect(routeOf('quiet')).toBeNull()
  })

  it('is not stored where there is one route, nor for counting tokens', () => {
    begin('one', [FIRST]).noteAnswer(SECOND)
    begin('count', [FIRST, SECOND], 'count_tokens').noteAnswer(SECOND)
    expect([routeOf('one'), routeOf('count')]).toEqual([null, null])
    answered('one', SECOND)
    expect(begin('one', [FIRST]).route).toBeNull()
    expect(begin('one', [FIRST, SECOND], 'count_tokens').route).toBeNull()
  })
})
