import type { ModelEvent } from '../../../../../src/gateway/translation/model-events.ts'
import { args, call, end, reasoning, refusal, signature, start, stop, text } from './events-support.ts'
import type { SeededRandom } from './seeded-random.ts'

const WORDS = ['Hello', ' ', 'wörld', '\n', '"', '\\', '{', '}', '```', '😀', ' 漢字', '</x>', '\u2028', '\t']
const VALUES = [
  {},
  { q: 1 },
  { path: '/a b/c"d\\e', lines: ['{', '}', '[', '"'] },
  { deep: { list: [1, -2.5e3, null, true, { '': '' }] }, text: 'é😀\n' },
]

/**
 * A whole generation in the order in which some upstream may tell it.
 * @param family what the upstream can say: only the messages protocol proves and seals its reasoning, only chat
 * completions tell calls in turns.
 */
export function randomEvents(random: SeededRandom, family: 'chat' | 'messages'): ModelEvent[] {
  if (random.chance(8)) return refusalOf(random, family)
  const expected: ModelEvent[] = []
  const counter = { calls: 0 }
  const segments = random.below(6)
  for (let segment = 0; segment < segments; segment++) {
    const kind = random.below(10)
    if (kind < 4) expected.push(...spoken(random, family))
    else if (kind < 6) expected.push(...thought(random, family))
    else expected.push(...calls(random, family, counter))
  }
  const reason = counter.calls > 0 ? 'tool_calls' : random.pick(['end', 'length', 'refusal'] as const)
  return [start(), ...expected, ...ending(random, random.chance(10) ? 'length' : reason), end]
}

function refusalOf(random: SeededRandom, family: 'chat' | 'messages'): ModelEvent[] {
  const explanation = 'I cannot do that.'
  if (family === 'messages') return [start(), ...usageOf(random), stop('refusal', { explanation }), end]
  const pieces = random.pieces(explanation, 6).map((piece) => refusal(piece))
  return [start(), ...pieces, ...ending(random, 'refusal'), end]
}

const ending = (random: SeededRandom, reason: Parameters<typeof stop>[0]): ModelEvent[] => [
  stop(reason),
  ...usageOf(random),
]

function usageOf(random: SeededRandom): ModelEvent[] {
  const usage = {
    input: random.below(900),
    cacheRead: random.below(90),
    cacheWrite5Minutes: random.below(90),
    cacheWrite1Hour: 0,
    output: 100 + random.below(900),
    reasoning: random.below(100),
  }
  return [{ type: 'usage', usage }]
}

const words = (random: SeededRandom) => Array.from({ length: 1 + random.below(5) }, () => random.pick(WORDS))

function spoken(random: SeededRandom, family: 'chat' | 'messages'): ModelEvent[] {
  const pieces = words(random)
  const said = pieces.map((piece) => text(piece))
  if (family === 'chat' || random.chance(60)) return said
  const citation = {
    type: 'web_search_result_location',
    url: 'https://a.example',
    title: 'A',
    cited_text: 'a',
  }
  return [...said, { type: 'citation', choice: 0, citation, length: pieces.join('').length }]
}

function thought(random: SeededRandom, family: 'chat' | 'messages'): ModelEvent[] {
  const pieces = words(random).map((piece) => reasoning(piece))
  if (family === 'chat') return pieces
  if (random.chance(20)) return [{ type: 'redacted_reasoning', choice: 0, data: 'c2VhbGVk' }]
  return [...(random.chance(80) ? pieces : []), signature('c2lnbmF0dXJl')]
}

function calls(random: SeededRandom, family: 'chat' | 'messages', counter: { calls: number }): ModelEvent[] {
  const written = Array.from({ length: 1 + random.below(3) }, () => oneCall(random, counter.calls++))
  if (family === 'messages' || random.chance(50)) return written.flat()
  return interleaved(random, written)
}

function oneCall(random: SeededRandom, number: number): ModelEvent[] {
  const json = random.chance(15) ? '' : JSON.stringify(random.pick(VALUES), null, random.below(2))
  const pieces = random.pieces(json, 12).map((piece) => args(number, piece))
  return [call(number, random.pick(['look', 'find', 'now'])), ...pieces]
}

/** All calls begin in their order; what follows of them comes in turns. */
function interleaved(random: SeededRandom, written: ModelEvent[][]): ModelEvent[] {
  const events: ModelEvent[] = []
  const waiting = [...written]
  const open: ModelEvent[][] = []
  while (waiting.length > 0 || open.length > 0) {
    const next = open.length === 0 || (waiting.length > 0 && random.chance(40)) ? waiting.shift() : undefined
    if (next) open.push([...next])
    const queue = next ? open[open.length - 1] : random.pick(open)
    const event = queue?.shift()
    if (event) events.push(event)
    for (let index = open.length - 1; index >= 0; index--)
      if (open[index]?.length === 0) open.splice(index, 1)
  }
  return events
}
