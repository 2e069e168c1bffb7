/** Bodies of 50 MB, the most that is taken, for `POST /v1/chat/completions`. */
export const LARGEST_BODY_BYTES = 52_428_800

const HEAD = '{"model":"scripted-chat","max_tokens":20,'
const MESSAGES = '"messages":[{"role":"user","content":"Hello"}]'
const IN_CONTENT = ['"messages":[{"role":"user","content":[', ']}]}'] as const
const IN_EXTRA = ['"extra":[', `],${MESSAGES}}`] as const
const DEEP = 240

/** A chat request of exactly this many bytes, which is one long text. @param text stands at its beginning. */
export function chatOf(bytes: number, text: string, more = ''): Buffer {
  const before = `${HEAD}${more}"messages":[{"role":"user","content":"${text} `
  const after = '"}]}'
  return Buffer.concat([
    Buffer.from(before),
    Buffer.alloc(bytes - before.length - after.length, 'x'),
    Buffer.from(after),
  ])
}

/** `before`, as often `unit` as 50 MB have room for, and `after`. */
function repeated(before: string, unit: string, after: string): Buffer {
  const unitBytes = Buffer.byteLength(unit)
  const room = LARGEST_BODY_BYTES - Buffer.byteLength(before) - Buffer.byteLength(after)
  return Buffer.concat([
    Buffer.from(before),
    Buffer.alloc(Math.floor(room / unitBytes) * unitBytes, unit),
    Buffer.from(after),
  ])
}

/** Repeats an element up to the size. */
const elements = ([before, after]: readonly [string, string], element: string, last = element) =>
  repeated(HEAD + before, `${element},`, last + after)

function distinctMembers(before: string, after: string): Buffer {
  const parts: string[] = []
  for (let length = 0, index = 0; length < LARGEST_BODY_BYTES - 1_000; index++) {
    const part = `"k${index}":0,`
    parts.push(part)
    length += part.length
  }
  return Buffer.from(`${before}${parts.join('')}${after}`)
}

export interface LargeBody {
  name: string
  body: () => Buffer
  status: 200 | 400
}

const passes = (name: string, body: () => Buffer): LargeBody => ({ name, body, status: 200 })
const refused = (name: string, body: () => Buffer): LargeBody => ({ name, body, status: 400 })

/** @param inTools whether such elements of `tools` are let through. */
const array = (name: string, element: string, inTools = passes) => [
  passes(`${name} in a content`, () => elements(IN_CONTENT, element)),
  passes(`${name} in an unknown member`, () => elements(IN_EXTRA, element)),
  inTools(`${name} in tools`, () => elements(['"tools":[', `],${MESSAGES}}`], element)),
]

const longName = (name: string, unit: string) => [
  passes(`a name of 50 MB ${name}`, () => repeated(`${HEAD}"`, unit, `":0,${MESSAGES}}`)),
  passes(`a name of 50 MB ${name}, deeper`, () =>
    repeated(`${HEAD}"extra":{"a":{"`, unit, `":"x"}},${MESSAGES}}`),
  ),
]

const deep = (name: string, open: string, close: string, unit: string, last: string) =>
  passes(`${name}, ${DEEP} levels deep`, () =>
    repeated(
      `${HEAD}"extra":${open.repeat(DEEP)}[`,
      `${unit},`,
      `${last}]${close.repeat(DEEP)},${MESSAGES}}`,
    ),
  )

/** Bodies that cost a reader far more than their bytes: of many or deep values. */
export const MANY_VALUES: LargeBody[] = [
  refused('nested arrays', () => Buffer.alloc(LARGEST_BODY_BYTES, '[')),
  refused('nested arrays in a content', () => repeated(`${HEAD}"messages":[{"content":`, '[', '')),
  refused('nested objects', () => repeated('', '{"a":', '')),
  ...array('17 million arrays', '[]'),
  ...array('17 million strings', '""'),
  ...array('6 million strings', '"abcde"'),
  ...array('objects', '{"type":"text"}', refused),
  ...array('objects with escapes', '{"\\u0074ype":"\\u0074"}', refused),
  ...array('addresses', '{"url":""}'),
  ...array('numbers', '0'),
  refused('17 million messages that are none', () => elements(['"messages":[', ']}'], '[]')),
  passes('messages', () => elements(['"messages":[', ']}'], '{"role":"user","content":""}')),
  deep('strings', '[', ']', '""', '""'),
  deep('arrays of a string', '[', ']', '[""]', '""'),
  deep('technical strings', '{"a":', '}', '{"id":"","id":""}', '0'),
  deep('strings under names', '{"a":', '}', '""', '""'),
  passes('stop sequences', () => elements(['"stop":[', `],${MESSAGES}}`], '""')),
  passes('stream options', () =>
    repeated(`${HEAD}"stream":true,"stream_options":{`, '"kind":0,', `"a":0},${MESSAGES}}`),
  ),
  refused('stream options given twice', () =>
    repeated(`${HEAD}"stream":true,"stream_options":{`, '"type":0,', `"a":0},${MESSAGES}}`),
  ),
]

/** Bodies of long or many texts and names. */
export const TEXTS_AND_NAMES: LargeBody[] = [
  passes('escapes', () => repeated(`${HEAD}"messages":[{"role":"user","content":"`, '\\u0041', '"}]}')),
  passes('short escapes', () => repeated(`${HEAD}"messages":[{"role":"user","content":"`, '\\n', '"}]}')),
  passes('wide characters', () => repeated(`${HEAD}"messages":[{"role":"user","content":"`, '漢', '"}]}')),
  passes('space', () => repeated(`${HEAD}"extra":`, ' ', `1,${MESSAGES}}`)),
  passes('one number', () => repeated(`${HEAD}"extra":`, '1', `,${MESSAGES}}`)),
  refused('distinct members', () => distinctMembers(HEAD, `${MESSAGES}}`)),
  ...longName('of letters', 'k'),
  ...longName('of wide characters', '漢'),
  ...longName('of ligatures', 'ﬃ'),
  ...longName('of escapes', '\\u65e5'),
  refused('a model', () => repeated('{"model":"', 'm', `",${MESSAGES}}`)),
  refused('a role', () => repeated(`${HEAD}"messages":[{"content":"x","role":"`, 'r', '"}]}')),
  passes('an encoded file', () =>
    repeated(
      `${HEAD}"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"`,
      'QUJD',
      '"}}]}]}',
    ),
  ),
  refused('a text that breaks off', () => repeated(`${HEAD}"messages":[{"role":"user","content":"`, 'x', '')),
]

/**
 * Distinct names grow the engine's young generation. They are measured on a gateway of their own: memory that the allocator
 * kept from other bodies would add to it.
 */
export const DISTINCT_NAMES: LargeBody[] = [
  passes('distinct names', () => distinctMembers(`${HEAD}"extra":{`, `"z":0},${MESSAGES}}`)),
]
