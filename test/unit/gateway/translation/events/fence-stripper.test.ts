import { describe, expect, it } from 'vitest'
import { FenceStripper } from '../../../../../src/gateway/translation/events/fence-stripper.ts'
import type { ModelEvent } from '../../../../../src/gateway/translation/model-events.ts'
import { call, end, reasoning, start, stop, text } from './events-support.ts'
import { SeededRandom } from './seeded-random.ts'

const textOf = (events: ModelEvent[]) =>
  events.map((event) => (event.type === 'text' && event.choice === 0 ? event.text : '')).join('')
const strip = (pieces: string[]) => {
  const stripper = new FenceStripper()
  return textOf(
    [...pieces.map((piece) => text(piece)), stop('end')].flatMap((event) => stripper.events(event)),
  )
}

const rows: Array<[given: string, told: string]> = [
  ['```json\n{"a":1}\n```', '{"a":1}'],
  ['```\n{"a":1}\n```', '{"a":1}'],
  ['```JSON\r\n{"a":1}\r\n```\r\n', '{"a":1}'],
  ['\n\n ```json \n\n  {"a":1}\n\n```  \n', '{"a":1}'],
  ['``` json\n[1]\n```', '[1]'],
  ['```json{"a":1}```', '{"a":1}'],
  ['```{"a":1}```', '{"a":1}'],
  // Cut off by its length: there is no closing fence.
  ['```json\n{"a":', '{"a":'],
  ['```json\n{"a":1}\n``', '{"a":1}\n``'],
  ['```json\n```', ''],
  ['```json\n', ''],
  // Fences amid the body, in strings or not.
  ['```json\n{"a":"```json\\n{}\\n```"}\n```', '{"a":"```json\\n{}\\n```"}'],
  ['```json\n{"a":"x```', '{"a":"x'],
  ['```json\n{}\n```\n```', '{}\n```'],
  ['```json\n{}\n````', '{}\n`'],
  ['```json\n{}\n```\nDone.', '{}\n```\nDone.'],
  ['```json\n{"a":"` `` ```"} ``` `', '{"a":"` `` ```"} ``` `'],
  // Without a fence at the beginning nothing is touched.
  ['{"a":1}', '{"a":1}'],
  [' {"a":"```"} \n', ' {"a":"```"} \n'],
  ['{"a":1}\n```', '{"a":1}\n```'],
  ['Here it is:\n```json\n{}\n```', 'Here it is:\n```json\n{}\n```'],
  ['```python\n{}\n```', '```python\n{}\n```'],
  ['```jsonl\n{}\n```', '```jsonl\n{}\n```'],
  ['````json\n{}\n````', '````json\n{}\n````'],
  ['``{}', '``{}'],
  ['```json', '```json'],
  ['', ''],
  ['  \n ', '  \n '],
]

describe('the code fence around an answer', () => {
  it.each(rows)('%j', (given, told) => {
    expect(strip([given])).toBe(told)
    expect(strip([...given])).toBe(told)
  })

  it('is cut alike, whatever the pieces', () => {
    const parts = [
      '```',
      '`',
      '``',
      'json',
      'JS',
      ' ',
      '\n',
      '\t',
      '{',
      '}',
      '{"a":1}',
      '"```"',
      '[',
      'x',
      '\u00a0',
      '😀',
    ]
    for (let seed = 0; seed < 3_000; seed++) {
      const random = new SeededRandom(seed)
      const opening = random.chance(60)
        ? random.pick(['```json\n', '```\n', ' ```json', '\n```JSON \r\n'])
        : ''
      const body = Array.from({ length: random.below(9) }, () => random.pick(parts)).join('')
      const given =
        opening + body + (random.chance(60) ? random.pick(['\n```', '```', '\n```\n\n', '``']) : '')
      expect(strip(random.pieces(given, 1 + random.below(6))), `seed ${seed}`).toBe(wholeResult(given))
    }
  })
})

describe('what is held back', () => {
  const given = (pieces: string[]) => {
    const stripper = new FenceStripper()
    return pieces.map((piece) => textOf(stripper.events(text(piece))))
  }

  it('is nothing of a text without a fence', () => {
    expect(given(['{', '"a"', ': "``` ', '```', ' '])).toEqual(['{', '"a"', ': "``` ', '```', ' '])
  })

  it('is an opening until it is ruled out', () => {
    expect(given([' ', '\n`', '``', 'js', 'on', '5 '])).toEqual(['', '', '', '', '', ' \n```json5 '])
  })

  it('is an end until it is ruled out', () => {
    expect(given(['```json\n{"a":"x', ' ', '\n`', '`', '`', ' ', 'y', '"}', '\n', '```', '\n'])).toEqual([
      '{"a":"x',
      '',
      '',
      '',
      '',
      '',
      ' \n``` y',
      '"}',
      '',
      '',
      '',
    ])
  })

  it('is no mark that white space has parted from the next', () => {
    expect(given(['```json\n{', '`', ' ', '``', '\n', '}'])).toEqual(['{', '', '`', '', ' ``', '\n}'])
  })

  it('stays cheap when white space never ends', () => {
    const stripper = new FenceStripper()
    const began = performance.now()
    const told: ModelEvent[] = stripper.events(text('```json\n{'))
    for (let count = 0; count < 400_000; count++) told.push(...stripper.events(text('\n')))
    told.push(...stripper.events(end))
    expect(textOf(told)).toBe('{')
    // Looking at all of it each time takes longer than a test may run.
    expect(performance.now() - began).toBeLessThan(5_000)
  })
})

describe('other events', () => {
  it('pass in their order, what was held before the end', () => {
    const stripper = new FenceStripper()
    const events = [
      start(),
      reasoning('`'),
      text('```json\n{}'),
      call(0, 'look'),
      text('\n`'),
      stop('end'),
      end,
    ]
    expect(events.flatMap((event) => stripper.events(event))).toEqual([
      start(),
      reasoning('`'),
      text('{}'),
      call(0, 'look'),
      text('\n`'),
      stop('end'),
      end,
    ])
  })

  it('of further choices pass untouched', () => {
    const stripper = new FenceStripper()
    const events = [text('```json\n{}\n```', 1), stop('end', { choice: 1 }), text('```json\n{}')]
    expect(events.flatMap((event) => stripper.events(event))).toEqual([events[0], events[1], text('{}')])
  })

  it('tells what was held where an answer just ends', () => {
    const stripper = new FenceStripper()
    expect([text('``'), end].flatMap((event) => stripper.events(event))).toEqual([text('``'), end])
  })
})

/** The rule for a whole text, said in another way. */
function wholeResult(whole: string): string {
  const lead = whole.trimStart()
  if (!lead.startsWith('```')) return whole
  let body = lead.slice(3).replace(/^[ \t]*/, '')
  if (body.slice(0, 4).toLowerCase() === 'json') body = body.slice(4)
  body = body.replace(/^[ \t]*/, '')
  if (!/^[\r\n{[]/.test(body)) return whole
  body = body.trim()
  return body.endsWith('```') ? body.slice(0, -3).trimEnd() : body
}
