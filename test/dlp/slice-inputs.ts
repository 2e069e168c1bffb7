import type { Operation } from '../../src/gateway/protocols/operations.ts'

/** A request that is one long text or token of one kind, by its length in bytes. */
export interface SliceInput {
  name: string
  operation: Operation
  /** Whether the policy has patterns and terms of its own. */
  custom?: boolean
  body: (bytes: number) => Uint8Array
}

const HEADS: Partial<Record<Operation, string>> = {
  messages: '"max_tokens":5,',
  responses: '"stream":true,',
}

/** `head`, then as much of `unit` as there is room for, and `tail`. */
function filled(head: string, unit: string, tail: string): (bytes: number) => Uint8Array {
  return (bytes) => {
    const room = bytes - Buffer.byteLength(head) - Buffer.byteLength(tail)
    const unitBytes = Buffer.byteLength(unit)
    const middle = Buffer.alloc(Math.floor(room / unitBytes) * unitBytes, unit)
    return Buffer.concat([Buffer.from(head), middle, Buffer.from(tail)])
  }
}

/** The contents of a JSON string. */
const escaped = (text: string) => JSON.stringify(text).slice(1, -1)

const inMember = (operation: Operation, before: string, unit: string, after: string) =>
  filled(`{"model":"m",${HEADS[operation] ?? ''}${before}`, unit, `${after}}`)

/** @param unit in source form. */
const content = (name: string, unit: string, operation: Operation = 'chat_completions'): SliceInput => ({
  name: `${name}, ${operation}`,
  operation,
  body:
    operation === 'completions'
      ? inMember(operation, '"prompt":"', unit, '"')
      : operation === 'responses'
        ? inMember(operation, '"input":[{"type":"message","role":"user","content":"', unit, '"}]')
        : inMember(operation, '"messages":[{"role":"user","content":"', unit, '"}]'),
})

const custom = (input: SliceInput): SliceInput => ({ ...input, name: `${input.name}, own`, custom: true })

const CALL =
  '"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"'
const argumentsOf = (name: string, head: string, unit: string, tail: string): SliceInput => ({
  name: `arguments: ${name}`,
  operation: 'chat_completions',
  body: inMember('chat_completions', CALL + escaped(head), escaped(unit), `${escaped(tail)}"}}]}]`),
})

const USE =
  '"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{'
const inputOf = (name: string, head: string, unit: string, tail: string): SliceInput => ({
  name: `tool input: ${name}`,
  operation: 'messages',
  body: inMember('messages', USE + head, unit, `${tail}}}]}]`),
})

const member = (name: string, before: string, unit: string, after: string): SliceInput => ({
  name: `member: ${name}`,
  operation: 'chat_completions',
  body: inMember(
    'chat_completions',
    `"messages":[{"role":"user","content":"x"}],"extra":${before}`,
    unit,
    after,
  ),
})

const file = (name: string, unit: string): SliceInput => ({
  name: `file: ${name}`,
  operation: 'chat_completions',
  body: inMember(
    'chat_completions',
    '"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"',
    unit,
    '"}}]}]',
  ),
})

const WORDS = 'Lorem ipsum dolor sit amet. '
const BASE64 = Buffer.from('Lorem ipsum dolor ').toString('base64')

export const SLICE_INPUTS: readonly SliceInput[] = [
  ...(['chat_completions', 'messages', 'completions', 'responses'] as const).flatMap((operation) => [
    content('words', WORDS, operation),
    content('findings', 'card 4111 1111 1111 1111 a@example.com ', operation),
    content('one word', 'a', operation),
  ]),
  content('one number', '7'),
  content('zeros', '0'),
  content('card numbers', '4111111111111111'),
  content('capitals', 'DEUTDEFF'),
  content('digits and capitals', 'DE00XX00'),
  content('base64 of text', BASE64),
  content('base64 of text in lines', `${BASE64.repeat(3)}\\n`),
  content('base64 parts in paths', `${BASE64}/`),
  content('percent signs encoded', '%25'),
  content('percent encoding', '%41'),
  content('percent encoding of spaces', '%20'),
  content('HTML entities', '&#65;'),
  content('backslashes', '\\\\'),
  content('escapes', '\\u0041'),
  content('escaped escapes', '\\\\u0041'),
  content('blanks', ' '),
  content('line ends', '\\n'),
  content('hyphens', '-'),
  content('dots', '.'),
  content('colons', ':'),
  content('equals signs', '='),
  content('at signs', '@'),
  content('slashes', '/'),
  content('brackets', '<'),
  content('almost mail addresses', 'a@a.'),
  content('mail addresses in one run', 'a@example.com,'),
  content('almost domains', 'a.a-'),
  content('addresses with passwords', 'http://a:b@'),
  content('addresses with passwords and hosts', 'http://a:b@c.de/'),
  content('names of secrets', 'password='),
  content('names of secrets and values', 'password=Xk39fjw8Qp2z&'),
  content('begun private keys', '-----BEGIN PRIVATE KEY-----\\n'),
  {
    name: 'private key of one line',
    operation: 'chat_completions',
    body: inMember(
      'chat_completions',
      '"messages":[{"role":"user","content":"-----BEGIN PRIVATE KEY-----\\n',
      'MIIEowIBAAKCAQEA',
      '"}]',
    ),
  },
  {
    name: 'private key of many lines',
    operation: 'chat_completions',
    body: inMember(
      'chat_completions',
      '"messages":[{"role":"user","content":"-----BEGIN PRIVATE KEY-----\\n',
      'MIIEowIBAAKCAQEAMIIEowIBAAKCAQEAMIIEowIBAAKCAQEAMIIEowIBAAKCAQEA\\n',
      '"}]',
    ),
  },
  {
    name: 'private key of blanks',
    operation: 'chat_completions',
    body: inMember(
      'chat_completions',
      '"messages":[{"role":"user","content":"-----BEGIN PRIVATE KEY-----\\n',
      ' ',
      '"}]',
    ),
  },
  content('machine-readable filler', 'P<<'),
  content('wide characters', '漢'),
  content('full-width digits', '４１１１'),
  content('ligatures', '\ufdfa'),
  content('marks', 'e\u0301'),
  content('zero-width characters', '4\u200b'),
  content('astral letters', '\ud835\udc00'),
  content('half surrogates', '\\ud83d'),
  content('broken signed tokens', 'eyJ.eyJ.'),
  content('vendor marks', 'sk-ghp_AKIAxoxb-'),
  content('identity numbers', '078051120 '),
  content('quotes', '\\"'),
  custom(content('words', WORDS)),
  custom(content('one word', 'a')),
  custom(content('terms', 'KX-1234-5 term ')),
  custom(content('base64 of text', BASE64)),
  custom(content('percent encoding', '%41')),
  argumentsOf('words', '{"a":"', WORDS, '"}'),
  argumentsOf('one word', '{"a":"', 'a', '"}'),
  argumentsOf('escapes', '{"a":"', '\\u0041', '"}'),
  argumentsOf('line ends', '{"a":"', '\\n', '"}'),
  argumentsOf('one number', '{"a":', '7', '}'),
  argumentsOf('blanks', '{"a":', ' ', '1}'),
  argumentsOf('blanks after a text', '{"a":"x"', ' ', '}'),
  argumentsOf('small texts', '["a"', ',"Lorem"', ']'),
  argumentsOf('findings', '["a"', ',"a@example.com"', ']'),
  argumentsOf('numbers', '[1', ',4111111111111111', ']'),
  argumentsOf('brackets', '[[]', ',[]', ']'),
  argumentsOf('a name', '{"', 'k', '":1}'),
  argumentsOf('no JSON', '', WORDS, ''),
  argumentsOf('base64', '{"a":"', BASE64, '"}'),
  inputOf('a number', '"a":', '7', ''),
  inputOf('blanks', '"a":', ' ', '1'),
  inputOf('a name', '"', 'k', '":1'),
  inputOf('a name of escapes', '"', '\\"', '":1'),
  inputOf('names', '"a":1', ',"Lorem ipsum 12":1', ''),
  inputOf('numbers', '"a":[1', ',4111111111111111', ']'),
  member('a number', '', '7', ''),
  member('blanks', '', ' ', '1'),
  member('a name', '{"', 'k', '":1}'),
  member('arrays', '[[]', ',[]', ']'),
  member('texts', '[""', ',""', ']'),
  member('numbers', '[1', ',4111111111111111', ']'),
  member('names', '{"a":1', ',"Lorem ipsum 12":1', '}'),
  file('text', BASE64),
  file('findings', Buffer.from('a@example.com, ').toString('base64')),
  file('no text', '/w8A'),
  file('no base64', `${BASE64} `),
]

/** JSON that comes back, by its length in bytes, and how it is inspected. */
export interface AnswerInput {
  name: string
  kind: 'chat_completions' | 'messages' | 'tool_result' | 'item'
  /** Whether tokens in it are replaced by the values of the request. */
  restores?: boolean
  body: (bytes: number) => Uint8Array
}

const CHOICE = '{"choices":[{"index":0,"message":{"role":"assistant","content":"'
/** @param token of the answers that are restored. */
export const answerInputs = (token: string): readonly AnswerInput[] => [
  { name: 'chat completion', kind: 'chat_completions', body: filled(CHOICE, WORDS, '"}}]}') },
  {
    name: 'chat completion of tokens and findings',
    kind: 'chat_completions',
    restores: true,
    body: filled(CHOICE, `${token} bob@example.com `, '"}}]}'),
  },
  {
    name: 'chat completion of tokens without blanks',
    kind: 'chat_completions',
    restores: true,
    body: filled(CHOICE, token, '"}}]}'),
  },
  {
    name: 'tool input of numbers',
    kind: 'messages',
    body: filled(
      '{"content":[{"type":"tool_use","id":"t","name":"f","input":{"a":[1',
      ',4111111111111111',
      ']}}]}',
    ),
  },
  { name: 'tool result', kind: 'tool_result', body: filled('{"output":"', WORDS, '"}') },
  { name: 'names of a tool result', kind: 'tool_result', body: filled('{"a":1', ',"Lorem ipsum 12":1', '}') },
  {
    name: 'item of a response',
    kind: 'item',
    body: filled(
      '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"',
      WORDS,
      '"}]}',
    ),
  },
]

/** A stream with one long event, or one long text of many events, by its length in bytes. */
export interface StreamInput {
  name: string
  kind: 'chat_completions' | 'messages'
  chunks: (bytes: number) => Uint8Array[]
}

const END_OF_CHAT = Buffer.from(
  'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
)
const END_OF_MESSAGE = Buffer.from(
  'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
)
const DELTA = 'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{'
const CALLS = '"tool_calls":[{"index":0,"function":{"arguments":"'
const USE_START =
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{'

/** A stream of one event. */
const event =
  (head: string, unit: string, tail: string, end: Uint8Array): StreamInput['chunks'] =>
  (bytes) => [Buffer.concat([filled(head, unit, `${tail}\n\n`)(bytes), end])]

/** Pieces of one text, each in an event. */
const pieces =
  (head: string, piece: string, tail: string, end: Uint8Array): StreamInput['chunks'] =>
  (bytes) => {
    const one = Buffer.from(`${head}${piece}${tail}\n\n`)
    const [first, last] = ['{\\"a\\":\\"', '\\"}'].map((text) => Buffer.from(`${head}${text}${tail}\n\n`))
    const middle = Buffer.alloc(Math.floor(bytes / piece.length) * one.length, one)
    return [Buffer.concat([first as Buffer, middle, last as Buffer]), end]
  }

const ARGUMENTS_PIECE = 'Lorem ipsum dolor sit amet, a@example.com. '.repeat(20)

export const STREAM_INPUTS: readonly StreamInput[] = [
  {
    name: 'event of words',
    kind: 'chat_completions',
    chunks: event(`${DELTA}"content":"`, WORDS, '"}}]}', END_OF_CHAT),
  },
  {
    name: 'event of one word',
    kind: 'chat_completions',
    chunks: event(`${DELTA}"content":"`, 'a', '"}}]}', END_OF_CHAT),
  },
  {
    name: 'event of findings',
    kind: 'messages',
    chunks: event(
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"',
      'card 4111 1111 1111 1111 a@example.com ',
      '"}}',
      END_OF_MESSAGE,
    ),
  },
  {
    name: 'event of arguments',
    kind: 'chat_completions',
    chunks: event(`${DELTA}${CALLS}{\\"a\\":\\"`, WORDS, '\\"}"}}]}}]}', END_OF_CHAT),
  },
  {
    name: 'event of numbers in tool input',
    kind: 'messages',
    chunks: event(`${USE_START}"a":[1`, ',4111111111111111', ']}}}', END_OF_MESSAGE),
  },
  {
    name: 'event of a number in tool input',
    kind: 'messages',
    chunks: event(`${USE_START}"a":`, '7', '}}}', END_OF_MESSAGE),
  },
  {
    name: 'event of many names',
    kind: 'messages',
    chunks: event(`${USE_START}"a":1`, ',"Lorem ipsum 12":1', '}}}', END_OF_MESSAGE),
  },
  {
    name: 'arguments in pieces',
    kind: 'chat_completions',
    chunks: pieces(`${DELTA}${CALLS}`, ARGUMENTS_PIECE, '"}}]}}]}', END_OF_CHAT),
  },
  {
    name: 'input in pieces',
    kind: 'messages',
    chunks: pieces(
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"',
      ARGUMENTS_PIECE,
      '"}}',
      END_OF_MESSAGE,
    ),
  },
]
