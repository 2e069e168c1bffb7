import { describe, expect, it } from 'vitest'
import { FenceStripper } from '../../../../../src/gateway/translation/events/fence-stripper.ts'
import type { ModelEvent } from '../../../../../src/gateway/translation/model-events.ts'
import { StepCounter } from '../../../../harness/counted-steps.ts'
import { PROPERTY_RUNS } from '../../../lib/property-runs.ts'
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

const rows: Array<[given: string, emitted: string]> = [
  ['```json\n{"a":1}\n```', '{"a":1}'],
  ['```\n{"a":1}\n```', '{"a":1}'],
  ['```JSON\r\n{"a":1}\r\n```\r\n', '{"a":1}'],
  ['\n\n ```json \n\n  {"a":1}\n\n```  \n', '{"a":1}'],
  ['``` json\n[1]\n```', '[1]'],
  ['```json{"a":1}```', '{"a":1}'],
  ['```{"a":1}```', '{"a":1}'],
  ['```json\n42\n```', '42'],
  ['```json\n"text"\n```\nDone.', '"text"'],
  // Cut off by its length: there is no closing fence.
  ['```json\n{"a":', '{"a":'],
  ['```json\n{"a":1}\n``', '{"a":1}'],
  ['```json\n```', ''],
  ['```json\n', ''],
  // A fence in a string.
  ['```json\n{"a":"```json\\n{}\\n```"}\n```', '{"a":"```json\\n{}\\n```"}'],
  ['```json\n{"a":"\\"```"}\n```', '{"a":"\\"```"}'],
  ['```json\n{"a":"` `` ```"} ``` `', '{"a":"` `` ```"}'],
  // Words after the fence, and before it.
  ['```json\n{"a":1}\n```\n\nDone.', '{"a":1}'],
  ['```json\n{"a":[{}]}\n```\n\n```json\n{"b":2}\n```', '{"a":[{}]}'],
  ['```json\n{}\n````', '{}'],
  ['Here is the JSON:\n```json\n{"a":1}\n```', '{"a":1}'],
  ['Here is the JSON:\n\n```\n[1]\n```\n\nDone.', '[1]'],
  ['Here: ```json\n{"a":1}\n```', '{"a":1}'],
  ['As `json`, ``or so``:\n```json\n{"a":1}\n```', '{"a":1}'],
  ['```sh\nrun\n```\nsays\n```json\n{"a":1}\n```', '{"a":1}'],
  // Bare JSON, with words around it or not.
  ...unchanged('{"a":1}', ' {"a":"```"} \n', '\ufeff[1]', '{"a":', '{"a":1}\n\nThe value of a is 1.'),
  ...unchanged('Here is the JSON:\n\n {"a":1}\nDone.', '[Note: nothing was found.] Ask ```again```.'),
  // Other text.
  ...unchanged('I cannot do that.', 'I cannot use {} or {"a":1} here.', 'Run this:\n```\nls\n```\n'),
  ...unchanged(
    '```python\n{}\n```',
    '```jsonl\n{}\n```',
    '````json\n{}\n````',
    '``{}',
    '```json',
    '',
    '  \n ',
  ),
]

function unchanged(...texts: string[]): Array<[string, string]> {
  return texts.map((each) => [each, each])
}

describe('the code fence around an answer', () => {
  it.each(rows)('%j', (given, emitted) => {
    expect(strip([given])).toBe(emitted)
    expect(strip([...given])).toBe(emitted)
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
    for (let seed = 0; seed < PROPERTY_RUNS * 20; seed++) {
      const random = new SeededRandom(seed)
      const words = random.chance(30) ? random.pick(['So:\n', 'So: ', '`a`\n\n ', '```sh\n', '[', '{b}']) : ''
      const opening = random.chance(60)
        ? random.pick(['```json\n', '```\n', ' ```json', '\n```JSON \r\n'])
        : ''
      const body = Array.from({ length: random.below(9) }, () => random.pick(parts)).join('')
      const given =
        words +
        opening +
        body +
        (random.chance(60) ? random.pick(['\n```', '```', '\n```\n\n', '``', '\n```\nSo.']) : '')
      expect(strip(random.pieces(given, 1 + random.below(6))), `seed ${seed}`).toBe(wholeResult(given))
    }
  })
})

describe('what is held back', () => {
  const given = (pieces: string[]) => {
    const stripper = new FenceStripper()
    return pieces.map((piece) => textOf(stripper.events(text(piece))))
  }

  it('is nothing of bare JSON', () => {
    expect(given(['{', '"a"', ': "``` ', '```', ' '])).toEqual(['{', '"a"', ': "``` ', '```', ' '])
  })

  it('is a preface up to its limit', () => {
    const pieces = ['So ', '\n`', '``', 'js', 'on', '5 ']
    expect(given(pieces)).toEqual(pieces.map(() => ''))
    const emitted = given([...pieces, 'x'.repeat(1_011), 'y'])
    expect(emitted.slice(-2)).toEqual([`${pieces.join('')}${'x'.repeat(1_011)}`, 'y'])
  })

  it('is not so much that a fence is found behind a long text', () => {
    const given = `${'All of it was looked at. '.repeat(50)}\n\`\`\`json\n{}\n\`\`\``
    expect(strip([given])).toBe(given)
    expect(strip([...given])).toBe(given)
  })

  it('is a closing fence until it is ruled out', () => {
    expect(given(['```json\n[', ' ', '\n`', '`', '1', '\n', '``', '`', '2'])).toEqual([
      '[',
      '',
      '',
      '',
      ' \n``1',
      '',
      '',
      '',
      '',
    ])
  })

  const blanks = Array.from({ length: 300 }, () => ' '.repeat(20))
  it.each([
    ['at the beginning', blanks],
    ['behind the marks of a fence', ['```', ...blanks]],
    ['behind a fence', ['```json\n', ...blanks]],
    ['behind words', ['So: ', ...blanks]],
    ['behind words and a fence', ['So:\n```json\n', ...blanks]],
    ['behind a brace', ['So:\n{', ...blanks]],
    ['in a value', ['```json\n{', ...blanks]],
    ['behind marks in a value', ['```json\n{"```', ...blanks]],
    ['of marks', ['`'.repeat(3_000), ...blanks.map(() => '`')]],
    ['of marks with white space between', blanks.map(() => '``` ')],
    ['of lines', blanks.map(() => 'So\n`` `\n')],
  ])('is a little, whatever comes without end: %s', (_name, pieces) => {
    const stripper = new FenceStripper()
    const openings = 16
    let difference = 0
    for (const piece of pieces) {
      difference += piece.length - textOf(stripper.events(text(piece))).length
      // White space after an opening fence is removed, not held.
      if (pieces[0] !== '```json\n') expect(difference).toBeLessThan(1_024 + openings)
    }
    // Whether removed or held: the end emits no more than a little.
    expect(textOf(stripper.events(end)).length).toBeLessThanOrEqual(1_024)
  })
})

describe('the work', () => {
  const shapes: Array<[string, (pieces: number) => string[]]> = [
    ['marks and white space', (pieces) => ['```', ...many(pieces, ' '.repeat(20))]],
    ['white space', (pieces) => many(pieces, '\n')],
    ['white space in a value', (pieces) => ['```json\n{', ...many(pieces, ' \n')]],
    ['marks in a value', (pieces) => ['```json\n{"', ...many(pieces, '`` ```')]],
    ['a value that is none', (pieces) => ['```json\n{a}', ...many(pieces, '{}[]')]],
    ['one long string', (pieces) => ['```json\n{"a":"', ...many(pieces, 'word '), '"}\n```']],
    ['one piece', (pieces) => [`\`\`\`json\n{"a":"${'word '.repeat(pieces)}"}\n\`\`\``]],
    ['words', (pieces) => many(pieces, 'So ```\n{ ')],
  ]

  it.each(shapes)('grows as the text does: %s', (_name, shape) => {
    using counter = new StepCounter()
    const [few, sixteenfold] = [shape(2_000), shape(32_000)]
    const [work, largeWork] = [() => void strip(few), () => void strip(sixteenfold)]
    work()
    // Work that grew with the square of the text would take 256 times as long.
    expect(counter.stepsOf(largeWork)).toBeLessThan(48 * Math.max(2_000, counter.stepsOf(work)))
    expect(counter.allocationOf(largeWork)).toBeLessThan(48 * Math.max(200_000, counter.allocationOf(work)))
  })
})

const many = (count: number, piece: string): string[] => Array.from({ length: count }, () => piece)

describe('other events', () => {
  it('pass in their order', () => {
    const stripper = new FenceStripper()
    const events = [
      start(),
      reasoning('`'),
      text('```json\n{a}'),
      call(0, 'look'),
      text('\n`'),
      stop('end'),
      end,
    ]
    expect(events.flatMap((event) => stripper.events(event))).toEqual([
      start(),
      reasoning('`'),
      text('{a}'),
      call(0, 'look'),
      stop('end'),
      end,
    ])
  })

  it('that call a tool come after the words before them', () => {
    const stripper = new FenceStripper()
    const events = [text('I look.'), call(0, 'look'), text('```json\n[1]\n```'), stop('tool_calls'), end]
    expect(events.flatMap((event) => stripper.events(event))).toEqual([
      text('I look.'),
      call(0, 'look'),
      text('[1]'),
      stop('tool_calls'),
      end,
    ])
  })

  it('of further choices pass untouched', () => {
    const stripper = new FenceStripper()
    const events = [text('```json\n{}\n```', 1), stop('end', { choice: 1 }), text('```json\n{}')]
    expect(events.flatMap((event) => stripper.events(event))).toEqual([events[0], events[1], text('{}')])
  })

  it('emit what is held where an answer ends without a stop', () => {
    const stripper = new FenceStripper()
    expect([text('``'), end].flatMap((event) => stripper.events(event))).toEqual([text('``'), end])
  })
})

/** The rule for a whole text, written in another way. */
function wholeResult(whole: string): string {
  if (/^\s*[{[]/.test(whole)) return whole
  const first = /^\s*```[ \t]*(?:json[ \t]*)?[\r\n]/i.exec(whole)
  const opening = first ?? /(?<!`)```\s*(?:json\s*)?(?=[{[])/i.exec(whole)
  if (!opening) return whole
  const inside = whole.slice(opening.index + opening[0].length)
  const tokens: string[] = inside.match(/"(?:\\.|[^"\\])*(?:"|\\?$)|```|./gs) ?? []
  const closing = tokens.indexOf('```')
  const body = tokens.slice(0, closing < 0 ? tokens.length : closing)
  while (/^[\s`]$/.test(body.at(-1) ?? '')) body.pop()
  return body.join('').trimStart()
}
