import { afterEach, describe, expect, it, vi } from 'vitest'
import { createToken } from '../../../src/identity/secret-token.ts'
import { errorText, logEvent, logFailure, redact, redactEncoded } from '../../../src/lib/log.ts'

afterEach(() => vi.restoreAllMocks())

describe('redact', () => {
  it.each([
    ['Authorization: Bearer abcDEF123._~+/=-', 'Authorization: Bearer [redacted]'],
    ['authorization: bearer   abcdef1234', 'authorization: bearer   [redacted]'],
    ['key hg_live_0123456789abcdef refused', 'key hg_[redacted] refused'],
    ['Incorrect API key provided: sk-proj-abcdefgh12345678.', 'Incorrect API key provided: sk-[redacted]'],
    ['gsk_abcdefgh12345678', 'gsk_[redacted]'],
    ['sk-ant-api03-abcdefgh', 'sk-[redacted]'],
    ['sealed v1.one.AAAAAAAAAAAAAAAA.BBBB', 'sealed v1.[redacted]'],
    ['task-force of sk-aaaaaaaa', 'task-force of sk-[redacted]'],
    ['%2Fsk-aaaaaaaa', '%2Fsk-[redacted]'],
    ['\\nsk-aaaaaaaa', '\\nsk-[redacted]'],
    ['my_sk-aaaaaaaa', 'my_sk-[redacted]'],
    [`AIza${'Sy'.repeat(17)}_`, 'AIza[redacted]'],
    [`xai-${'a1'.repeat(12)}`, 'xai-[redacted]'],
    [`gluedhg_0123456789ab_${'a1'.repeat(12)}`, 'gluedhg_[redacted]'],
    ['two: sk-aaaaaaaa and sk-bbbbbbbb', 'two: sk-[redacted] and sk-[redacted]'],
  ])('cuts %j', (text, expected) => {
    expect(redact(text)).toBe(expected)
  })

  it.each([
    '',
    'nothing here',
    'Bearer',
    'sk-',
    'sk-short',
    'v1.2.3',
    'call_0123456789abcdef',
    'task-summarizer-v2',
    'disk_usage-of-everything',
    'Aizawa-Hanako-of-the-department',
    'xai-grok-models',
  ])('leaves %j', (text) => {
    expect(redact(text)).toBe(text)
  })
})

describe.each(['hg', 'hgs', 'hgl'] as const)('a token %s_', (prefix) => {
  const places = (token: string) => [
    token,
    `cookie: __Host-hg_session=${token}; other=1`,
    `{"token":"${token}"}`,
    `/setup#${token}`,
    `Failed query: select 1 where x = '${token}'`,
    `glued${token}`,
    encodeURIComponent(`/a/${token}`).replaceAll('_', '%5F'),
  ]

  it('is nowhere in a line of the log, whatever it stands in', () => {
    const lines: unknown[] = []
    vi.spyOn(console, 'log').mockImplementation((line) => lines.push(line))
    vi.spyOn(console, 'error').mockImplementation((line) => lines.push(line))
    for (let round = 0; round < 50; round += 1) {
      const { token } = createToken(prefix)
      const secret = token.slice(prefix.length + 14)
      for (const place of places(token)) {
        logEvent('info', 'seen', { place: redactEncoded(place) })
        logFailure(
          'failed',
          { request_id: null, surface: 'management', route: null },
          new Error(redactEncoded(place)),
        )
      }
      for (const place of places(token).slice(0, -1)) {
        logEvent('info', 'seen', { place })
        logFailure('failed', { request_id: null, surface: 'management', route: null }, new Error(place))
      }
      expect(lines.join('\n')).not.toContain(secret)
      expect(lines.splice(0)).toHaveLength(26)
    }
  })
})

describe('redactEncoded', () => {
  const key = `hg_0123456789ab_${'a1'.repeat(24)}`

  it.each(['_', '%5F', '%5f', '%255F', '%252525255F'])('cuts a key written with %s', (underscore) => {
    expect(redactEncoded(`/v1/${key.replaceAll('_', underscore)}`)).toBe('/v1/hg_[redacted]')
  })

  it('cuts a key of which every character is encoded, and what follows an encoded slash', () => {
    const encoded = [...key].map((character) => `%${character.charCodeAt(0).toString(16)}`).join('')
    expect(redactEncoded(encoded)).toBe('hg_[redacted]')
    expect(redactEncoded(`/v1%2F${key}`)).toBe('/v1/hg_[redacted]')
    // Each digit of a code is encoded itself.
    expect(redactEncoded(key.replaceAll('_', '%%35%46'))).toBe('hg_[redacted]')
    expect(redactEncoded(key.replaceAll('_', '%25%3%35%2%35%34%36'))).toBe('hg_[redacted]')
  })

  it.each(['/v1/a%20b', '100%', '%', '%%%', '%2', '/%E6%BC%A2'])('leaves %j', (text) => {
    expect(redactEncoded(text)).toBe(text)
  })
})

describe('logEvent', () => {
  it('writes one line of JSON with redacted fields, errors to the error stream', () => {
    const out = vi.spyOn(console, 'log').mockImplementation(() => {})
    const err = vi.spyOn(console, 'error').mockImplementation(() => {})
    logEvent('info', 'began', { count: 1, ok: true, none: null })
    logEvent('warn', 'odd', { detail: 'line\nBearer abcdefgh1' })
    logEvent('error', 'failed', { detail: 'sk-abcdefgh12345678' })
    expect(out.mock.calls).toEqual([
      ['{"level":"info","event":"began","count":1,"ok":true,"none":null}'],
      ['{"level":"warn","event":"odd","detail":"line\\nBearer [redacted]"}'],
    ])
    expect(err.mock.calls).toEqual([['{"level":"error","event":"failed","detail":"sk-[redacted]"}']])
  })
})

describe('errorText', () => {
  it('tells name and message without stack or credential', () => {
    expect(errorText(new TypeError('no key sk-abcdefgh12345678'))).toBe('TypeError: no key sk-[redacted]')
    expect(errorText('plain Bearer abcdefgh')).toBe('plain Bearer [redacted]')
    expect(errorText(undefined)).toBe('undefined')
    expect(errorText(new Error('x'))).not.toContain(' at ')
  })

  it('tells the innermost cause only, and no parameters of a query', () => {
    const cause = new RangeError('connection refused\nparams: ada@example.com,digest')
    const wrapped = new Error('Failed query: select 1\nparams: ada@example.com', { cause })
    expect(errorText(new Error('outer', { cause: wrapped }))).toBe('RangeError: connection refused')
    expect(errorText(new Error('outer', { cause: 'text' }))).toBe('Error: outer')
  })
})

describe('logFailure', () => {
  const place = { request_id: 'req_1', surface: 'responses', route: null }
  const lineOf = (error: unknown): Record<string, string> => {
    const err = vi.spyOn(console, 'error').mockImplementation(() => {})
    logFailure('failed', place, error)
    return JSON.parse(String(err.mock.calls[0]?.[0]))
  }

  it('tells the frames of the innermost cause', () => {
    const cause = new RangeError('connection refused')
    const line = lineOf(new Error('Try again soon.', { cause }))
    expect(line).toMatchObject({
      ...place,
      error: 'RangeError: connection refused',
      answer: 'Try again soon.',
    })
    expect(line.stack).toMatch(/^\s+at .*log\.test\.ts/)
  })

  it('takes no line of a message for a frame: parameters of a query have what callers send', () => {
    const error = new Error('Failed query: insert\nparams: first\n    at ada@example.com\nlast')
    const line = JSON.stringify(lineOf(error))
    expect(line).toContain('log.test.ts')
    expect(line).not.toContain('ada@example.com')
  })
})
