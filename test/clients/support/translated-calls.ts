import { expect } from 'vitest'
import type { UpstreamRequest } from '../../harness/upstream.ts'
import { bodyOf } from './governed-calls.ts'

type Json = Record<string, unknown>

/**
 * Expects two turns of one conversation in the upstream's own protocol, both with the client's instructions and tools.
 * The second has the result of the tool that the first one called.
 *
 * @param secretWord that is in the result alone
 */
export function expectTranslated(
  seen: UpstreamRequest[],
  upstream: 'chat' | 'messages',
  secretWord: string,
): void {
  const chat = upstream === 'chat'
  const bodies = seen.map(bodyOf)
  expect(seen.map(({ path }) => path)).toEqual(
    Array.from({ length: 2 }, () => (chat ? '/v1/chat/completions' : '/v1/messages')),
  )
  const turns = bodies.map(({ messages }) => messages as Json[])
  for (const [index, body] of bodies.entries()) {
    const instructions = chat ? turns[index]?.[0]?.content : body.system
    expect(JSON.stringify(instructions).length).toBeGreaterThan(100)
    expect((body.tools as Json[]).length).toBeGreaterThan(0)
    expect(body.stream).toBe(true)
  }
  const [first = [], second = []] = turns
  expect(second.slice(0, first.length)).toMatchObject(first.map(({ role }) => ({ role })))
  expect(second.slice(first.length).map(({ role }) => role)).toEqual(
    chat ? ['assistant', 'tool'] : ['assistant', 'user'],
  )
  const [called, answered] = second.slice(first.length)
  const [call, result] = chat
    ? [(called?.tool_calls as Json[] | undefined)?.[0], answered]
    : [lastBlock(called), lastBlock(answered)]
  expect(chat ? result?.tool_call_id : result?.tool_use_id).toBe(call?.id)
  expect(JSON.stringify(result)).toContain(secretWord)
  expect(JSON.stringify(bodies[0])).not.toContain(secretWord)
}

const lastBlock = (turn: Json | undefined): Json | undefined => (turn?.content as Json[] | undefined)?.at(-1)
