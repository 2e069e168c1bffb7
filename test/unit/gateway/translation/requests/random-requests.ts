import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import type { SeededRandom } from '../../../lib/seeded-random.ts'
import { call, functionTool, text } from './requests.ts'

/** Requests that their own vendors take, of every shape that clients send. */

const WORDS = [
  'Hello',
  ' there\n',
  'schön',
  '',
  ' ',
  '\n\t',
  '"quoted"',
  '{"json": 1}',
  '\u{1f600}',
  'x '.repeat(40),
]
const NAMES = ['look', 'functions.read', `mcp__server__${'long'.repeat(20)}`]
const IDS = ['call_1', 'toolu_01', 'functions.look:0', 'é', 'a'.repeat(50), 'call_2']
const ARGUMENTS = ['{}', '', '{"a":[1,{"b":"c"}]}', '{"n":12345678901234567890}', '{"cut', '[1]']
const MARK = { type: 'ephemeral', ttl: '1h' }

const several = <Item>(random: SeededRandom, most: number, make: () => Item): Item[] =>
  Array.from({ length: random.below(most + 1) }, make)

const someText = (random: SeededRandom): Json =>
  text(random.pick(WORDS), random.chance(0.2) ? { cache_control: MARK } : {})

const image = (random: SeededRandom): Json => ({
  type: 'image_url',
  image_url: { url: random.pick(['https://a.example/b.png', 'data:image/png;base64,AAAA']), detail: 'low' },
})

function chatContent(random: SeededRandom, media: boolean): unknown {
  if (random.chance(0.5)) return random.pick(WORDS)
  return several(random, 3, () => (media && random.chance(0.3) ? image(random) : someText(random)))
}

export function randomChatRequest(random: SeededRandom): Json {
  const messages: Json[] = [
    { role: 'user', content: chatContent(random, true) },
    { role: 'user', content: 'Go.' },
  ]
  if (random.chance(0.3)) messages.shift()
  if (random.chance(0.3)) messages.unshift({ role: 'assistant', content: chatContent(random, false) })
  for (let round = random.below(6); round > 0; round--) messages.push(...chatRound(random))
  const offers = random.chance(0.6)
  return {
    model: 'm',
    messages,
    ...(offers ? { tools: NAMES.map((name) => functionTool(name)) } : {}),
    ...(offers && random.chance(0.5) ? { tool_choice: random.pick(['auto', 'none', 'required']) } : {}),
    ...(random.chance(0.3) ? { parallel_tool_calls: random.chance(0.5) } : {}),
    ...(random.chance(0.3) ? { temperature: random.fraction() * 2 } : {}),
    ...(random.chance(0.3) ? { top_p: random.fraction() } : {}),
    ...(random.chance(0.3) ? { max_completion_tokens: 1 + random.below(5000) } : {}),
    ...(random.chance(0.4)
      ? { reasoning_effort: random.pick(['none', 'minimal', 'low', 'high', 'max']) }
      : {}),
    ...(random.chance(0.2) ? { response_format: { type: 'json_object' } } : {}),
    ...(random.chance(0.2) ? { web_search_options: {} } : {}),
  }
}

function chatRound(random: SeededRandom): Json[] {
  const kind = random.below(4)
  if (kind === 0) return [{ role: random.pick(['system', 'developer']), content: chatContent(random, false) }]
  if (kind === 1) return [{ role: 'user', content: chatContent(random, true) }]
  if (kind === 2)
    return [{ role: 'assistant', content: chatContent(random, false), refusal: random.pick(['No.', null]) }]
  const ids = [...new Set(several(random, 3, () => random.pick(IDS)))]
  const calls = ids.map((id) => call(id, random.pick(NAMES), random.pick(ARGUMENTS)))
  if (calls.length === 0) return []
  const results = ids.map((id) => ({ role: 'tool', tool_call_id: id, content: chatContent(random, true) }))
  const shuffled = random.chance(0.5) ? results : results.toReversed()
  return [{ role: 'assistant', content: random.pick([null, 'Let me see.']), tool_calls: calls }, ...shuffled]
}

/** @param plain leaves out what chat completions have no words for, and what they say in another order. */
export function randomMessagesRequest(random: SeededRandom, plain: boolean): Json {
  const messages: Json[] = [{ role: 'user', content: messagesContent(random, plain) }]
  const used: string[] = []
  for (let round = random.below(5); round > 0; round--) messages.push(...messagesRound(random, plain, used))
  return {
    model: 'm',
    max_tokens: 1 + random.below(5000),
    messages,
    tools: NAMES.map((name) => ({ name, input_schema: { type: 'object', properties: {} } })),
    ...(random.chance(0.5) ? { system: [text('Be brief.', { cache_control: MARK })] } : {}),
    ...(random.chance(0.5) ? { tool_choice: { type: random.pick(['auto', 'any', 'none']) } } : {}),
    ...(plain
      ? {}
      : { thinking: { type: 'enabled', budget_tokens: 1024 }, top_k: 5, context_management: {} }),
  }
}

const solid = (random: SeededRandom): Json => text(`${random.pick(WORDS).trim()}.`)
const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const userBlock = (random: SeededRandom) => (random.chance(0.3) ? picture : solid(random))

function messagesContent(random: SeededRandom, plain: boolean): unknown {
  if (!plain && random.chance(0.3)) return `${random.pick(WORDS)}.`
  return [solid(random), ...several(random, 2, () => userBlock(random))]
}

function messagesRound(random: SeededRandom, plain: boolean, used: string[]): Json[] {
  const ids = IDS.filter((id) => /^[a-zA-Z0-9_-]+$/.test(id) && !used.includes(id) && random.chance(0.4))
  used.push(...ids)
  const calls = ids.map((id) => ({
    type: 'tool_use',
    id,
    name: random.pick(NAMES),
    input: { a: [random.below(9)] },
  }))
  const thoughts = plain ? [] : [{ type: 'thinking', thinking: 'Hm.', signature: 's' }]
  const results = ids.map((id) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: resultContent(random, plain),
  }))
  const spoken = calls.length === 0 || random.chance(0.5) ? [solid(random)] : []
  const extra = results.length === 0 ? [solid(random)] : several(random, 2, () => userBlock(random))
  return [
    { role: 'assistant', content: [...thoughts, ...spoken, ...calls] },
    { role: 'user', content: [...results, ...extra] },
  ]
}

function resultContent(random: SeededRandom, plain: boolean): unknown {
  if (plain) return [solid(random)]
  return random.pick<unknown>(['r', '', [], [picture], [text('a'), text('b'), picture]])
}
