/** Beginnings, middles and ends of what a reader follows, from which texts are put together at random. */

const BLANKS = [' ', '  ', '\t', '\n', '\r\n', '\n\n', '\u00a0', '\u2028', '\u3000']
const MARKS = [
  '"',
  "'",
  '`',
  '\\',
  '/',
  '//',
  '.',
  '..',
  ',',
  ';',
  ':',
  '=',
  '-',
  '--',
  '_',
  '*',
  '?',
  '!',
  '#',
  '&',
  '%',
  '@',
  '+',
  '|',
  '~',
  '^',
  '$',
]
const BRACKETS = ['(', ')', '[', ']', '{', '}', '<', '>', '{{', '}}', '[[', '((']
export const WORDS = [
  'a',
  'ab',
  'A',
  '0',
  '12',
  'aaaaaaaaaaaaaaaa',
  'x1',
  'é',
  '数',
  '😀',
  '\ud83d',
  '\u200b',
  '\u0301',
  'e\u0301',
  '\u2800',
  '\u202e',
  '\ufeff',
  '\0',
  '\ufdfa',
  '\u{e0041}',
]

export const PLAIN = [...BLANKS, ...MARKS, ...BRACKETS, ...WORDS]

export const HTML = [
  '<p>', '</p>', '<b>', '</b>', '<div>', '</div>', '<a href=x>', '<a href="/y?a=1&amp;b=2#c">', '</a>', '<ul><li>', '</li>', '<table><tr><td>', '</td>', '<pre>', '</pre>',
  '<code>', '</code>', '<svg>', '<path/>', '</svg>', '<math>', '<script>', '</script>', '</scrip', '<style>', '<title>', '</title>', '<textarea>', '<noscript>', '</noscript>',
  '<iframe>', '<plaintext>', '<template>', '<select><option>', '<form>', '<br>', '<hr/>', '<img alt=x>', '<base href="/b/">', '<main>', '<nav>', '<h1>', '<blockquote>',
  '<!', '<!-', '<!--', '-->', '--!>', '<!-->', '<!doctype html>', '<![CDATA[', ']]>', '<?xml', '?>', '</', '<', '<a', '<p ', '< p', '<p a', '<p a=', '<p a="', "<p a='", '/>', ' a=1',
  ' hidden', ' style="', 'font-size:', 'opacity:', 'display:none;', 'transform:scale(', ' class="sr-only ', ' role=', ' aria-hidden=true', '&', '&#', '&#x', '&#65;', '&amp', '&amp;',
  '&nosuch', '&nosuch;', '&nGt;', '&#x1F600;', '&ampamp;', ...PLAIN,
] // biome-ignore format: a list

export const STYLE = [
  'font-size:', 'opacity:', 'display', ':', ';', 'none', '!important', '0', '0px', '.', 'transform:scale(', 'clip:rect(', 'clip-path:inset(', 'left:-', 'text-indent:-', 'color:transparent',
  '(', ')', '/*', '*/', '\\', 'px', '%', 'e', '+', '-', ...BLANKS,
] // biome-ignore format: a list

export const DEFINITION = [
  '<!',
  '<!--',
  '<!---->',
  '-->',
  '--',
  '-',
  '<',
  '>',
  'Reads a file. ',
  '\u200b',
  '\u2028',
  '\u2800',
  '\u{e0041}',
  '\r',
  ...PLAIN,
]

export const JSON_TEXT = [
  '{"a":', '{"a":1,', '"b":[', '[', '[1,', '["a",', '{', '}', ']', '},', '],', '"', '"a"', '""', ':', ',', 'true', 'null', '1', '-1.5e3', '1e', '123456789012345678901234567890', '"\\u0041',
  '\\u00', '\\"', '\\\\', '"\\ud83d"', '"x":"y",', '"type":"text",', '"type":"text","text":"', '"role":"user","content":"', '{"role":"assistant","content":[', '"id":"a",', '"name":"',
  '"arguments":"{\\"a\\":', '"error":{"message":"', '"code":', '"thinking":"', '"signature":"', '"data":"', '"image_url":"data:image/png;base64,', 'AAAA', ...BLANKS.slice(0, 6),
] // biome-ignore format: a list

export const STREAM = [
  'data: ', 'data:', 'data: {"a":1}\n\n', 'data: [DONE]\n\n', 'event: x\n', 'event:', 'id: 1\n', 'retry: 1\n', ': comment\n', ':\n', '\n', '\r', '\r\n', '\n\n', '\r\r', 'data: a\ndata: b\n', 'x',
  '\ufeff', 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n', 'data: {"error":{"message":"a"}}\n\n',
] // biome-ignore format: a list

export const MARKDOWN = [
  '```',
  '``',
  '`',
  '```json',
  '```json\n',
  '\n```',
  '\n',
  ' ',
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\"',
  '{"a":',
  '1',
  '"text',
  ',',
  'json',
  'Here is it:\n',
  '~~~',
  '# ',
  '* ',
  '> ',
]

export const ADDRESS = [
  'https://', 'http://', 'ftp:', 'a.example', 'a', '.', '..', '/', '//', '///', '?', '&', '=', '#', ':', ':80', '@', 'u:p@', '%', '%2e', '%25', '%2525', '%zz', '[::1]', '[', '127.0.0.1', '0x7f', 'xn--a',
  'localhost', 'nip.io', '{a}', '{', '}', ' ', '\\', 'é', '。', '*', '-', '_', '~1', '~0', '$defs',
] // biome-ignore format: a list

export const HEADER = [
  'application/json', 'text/event-stream', 'text/html; charset=utf-8', '*/*', ';q=0.5', ';', '; ', ',', ', ', '=', '"', '\\"', 'Bearer ', 'Basic ', 'Bearer error="invalid_token"', 'realm="', 'charset=',
  'resource_metadata="', 'W/', '*', '120', '1.5', 'Wed, 21 Oct 2015 07:28:00 GMT', 'context-1m-2025', 'compact-', 'aaaa', '-', '_', '.', ' ', '\t', '+', '=?base64?', '?=', 'QUFB', 'a=b', ':443', 'hg_',
] // biome-ignore format: a list

export const SECRET = [
  'secret',
  'secret-of-the-account-0123456789',
  'c2VjcmV0',
  's',
  'e',
  'aaaa',
  'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab',
  '%73',
  '\\u0073',
  '/',
  '+',
  '"',
  ' ',
  '\n',
  'Bearer ',
  'sk-',
  'v1.',
  'hg_',
]

export const CRON = [
  '*',
  '*/5',
  ',',
  '-',
  '/',
  ' ',
  '0',
  '1-5',
  'MON',
  'jan',
  'CRON_TZ=',
  'CRON_TZ=Europe/Berlin ',
  'UTC',
  '\n',
  '\t',
  'L',
  '#',
  '?',
]

export const TEMPLATE = [
  '{{',
  '}}',
  '{',
  '}',
  '\\{{',
  '\\',
  '{{a}}',
  '{{ a }}',
  '{{steps.1.output}}',
  '{{steps.',
  'a',
  ' ',
  '\n',
  '$&',
  '$1',
]

export const PATCH = [
  '*** Begin Patch\n', '*** End Patch\n', '*** Update File: a\n', '*** Add File: b\n', '*** Delete File: c\n', '*** Move to: d\n', '*** End of File\n', '@@\n', '@@ a\n', '@@ -1,2 +1,2 @@\n', '+a\n', '-a\n', ' a\n',
  '\n', '\r\n', '+', '-', ' ', 'a', '***', '@@',
] // biome-ignore format: a list

export const GLOB = [
  '*',
  '**',
  '?',
  '{',
  '}',
  '{a,b}',
  ',',
  '[',
  ']',
  '[a-z]',
  '!',
  '.',
  '/',
  '\\',
  'a',
  '(',
  ')',
  '|',
  '+',
  '^',
  '$',
]

export const QUERY = [
  'read',
  'files',
  'list',
  'pullRequests',
  'a',
  'ab',
  'repositories',
  'aB',
  '_',
  '-',
  ' ',
  '\n',
  '1',
  'ss',
  's',
  'é',
  '数',
  '\ufdfa',
  '!',
]
