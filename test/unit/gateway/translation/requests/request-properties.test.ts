import { describe, expect, it } from 'vitest'
import { type Json, listOf, objectOf } from '../../../../../src/gateway/protocols/json.ts'
import { chatToMessages } from '../../../../../src/gateway/translation/requests/chat-to-messages.ts'
import { messagesToChat } from '../../../../../src/gateway/translation/requests/messages-to-chat.ts'
import { usableToolName } from '../../../../../src/gateway/translation/requests/tool-names.ts'
import { PROPERTY_RUNS } from '../../../lib/property-runs.ts'
import { SeededRandom } from '../../../lib/seeded-random.ts'
import { randomChatRequest, randomMessagesRequest } from './random-requests.ts'
import { target } from './requests.ts'
import { brokenChatRules, brokenMessagesRules } from './vendor-rules.ts'

const MODELS = [target(), target('reasoning'), target('reasoning', 'adaptive_thinking', 'json_schema')]
const SEEDS = [...Array(PROPERTY_RUNS).keys()]

describe('random requests', () => {
  it('of chat callers keep the rules of the messages protocol', () => {
    for (const seed of SEEDS) {
      const random = new SeededRandom(seed)
      const request = randomChatRequest(random)
      const before = JSON.stringify(request)
      const { body } = chatToMessages(request, random.pick(MODELS))
      expect(brokenMessagesRules(body), `seed ${seed}: ${JSON.stringify(body, null, 1)}`).toEqual([])
      expect(JSON.stringify(request), `seed ${seed} was changed`).toBe(before)
    }
  })

  it('of chat callers lose no text', () => {
    for (const seed of SEEDS) {
      const request = randomChatRequest(new SeededRandom(seed))
      const body = JSON.stringify(chatToMessages(request, target()).body)
      for (const text of textsOf(request.messages)) expect(body, `seed ${seed}`).toContain(inJson(text))
    }
  })

  it('of messages callers keep the rules of chat completions', () => {
    for (const seed of SEEDS) {
      const random = new SeededRandom(seed)
      const { body } = messagesToChat(randomMessagesRequest(random, false), random.pick(MODELS))
      expect(brokenChatRules(body), `seed ${seed}: ${JSON.stringify(body, null, 1)}`).toEqual([])
    }
  })

  it('of messages callers come back the same', () => {
    for (const seed of SEEDS) {
      const request = randomMessagesRequest(new SeededRandom(seed), true)
      const back = chatToMessages(messagesToChat(request, target()).body, target()).body
      const same = { ...withoutMarkers(request), model: 'upstream-model' }
      expect(numbered(back), `seed ${seed}`).toEqual(numbered(same))
    }
  })
})

/** A messages request with all that chat completions keep of it: no cache markers, usable names. */
function withoutMarkers(request: Json): Json {
  return JSON.parse(JSON.stringify(request), (name, value: unknown) => {
    if (name === 'cache_control') return undefined
    return name === 'name' && typeof value === 'string' ? usableToolName(value) : value
  }) as Json
}

/** The request with its calls numbered: ids may change as long as they stay distinct. */
function numbered(request: Json): Json {
  const ids: unknown[] = []
  const number = (id: unknown) => (ids.includes(id) ? ids.indexOf(id) : ids.push(id) - 1)
  const messages = listOf(request.messages).map((turn) => ({
    ...turn,
    content: listOf(turn.content).map((block) => {
      if (block.type === 'tool_use') return { ...block, id: number(block.id) }
      return block.type === 'tool_result' ? { ...block, tool_use_id: number(block.tool_use_id) } : block
    }),
  }))
  return { ...request, messages }
}

const textsOf = (messages: unknown): string[] =>
  listOf(messages)
    .flatMap(({ content, refusal }) => [
      refusal,
      ...(typeof content === 'string' ? [content] : listOf(content).map((part) => objectOf(part).text)),
    ])
    .filter((text): text is string => typeof text === 'string' && text.trim() !== '')
    .map((text) => text.trimEnd())

const inJson = (text: string) => JSON.stringify(text).slice(1, -1)
