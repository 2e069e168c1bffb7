import { describe, expect, it } from 'vitest'
import { found, profileOf } from './finding.ts'

const card = profileOf(['card'])
const SECRET = 'the card is 4111 1111 1111 1111, thanks'
const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** The text encoded so many times. */
const encoded = (times: number): string =>
  Array.from({ length: times }).reduce<string>((text) => base64(text), SECRET)

describe('texts in base 64', () => {
  it.each([1, 2, 3])('%i times over', (times) => {
    expect(found(`data: ${encoded(times)}; end`, card)).toEqual([`card: ${encoded(times)}`])
  })

  it('no deeper than three times', () => expect(found(`data: ${encoded(4)}`, card)).toEqual([]))

  it.each([
    ['of the URL alphabet', Buffer.from(`${SECRET}???>>>`).toString('base64url')],
    ['with letters beyond ASCII', base64(`Größe: ${SECRET}`)],
    ['of JSON', base64(JSON.stringify({ a: JSON.stringify({ card: '4111111111111111' }) }))],
  ])('%s', (_, run) => expect(found(`{"data":"${run}"}`, card)).toEqual([`card: ${run}`]))

  it.each(['\n', '\r\n'])('in lines that end in %j', (lineEnd) => {
    const lines = base64(`${'x'.repeat(50)} ${SECRET} ${'y'.repeat(80)}`).replace(
      /(.{76})(?=.)/g,
      `$1${lineEnd}`,
    )
    expect(found(`Body:\n\n${lines}\n\nBye`, card)).toEqual([`card: ${lines}`])
  })

  it('at the end of a path and of a data URL', () => {
    expect(found(`https://host/a/${encoded(1)}`, card)).toEqual([`card: ${encoded(1)}`])
    expect(found(`data:text/plain;base64,${encoded(1)}`, card)).toEqual([`card: ${encoded(1)}`])
  })

  it('not other data', () => {
    const bytes = Buffer.concat([Buffer.from([0, 255, 254, 1]), Buffer.from(SECRET)])
    expect(found(bytes.toString('base64'), card)).toEqual([])
    expect(found('a-path/of_many/words-and-more/of-them-all', card)).toEqual([])
  })
})

describe('JSON in strings', () => {
  it.each([1, 2, 3])('%i levels of quotes', (levels) => {
    let text = JSON.stringify({ mail: 'ada@example.com', at: 'x\u0040y' })
    for (let level = 0; level < levels; level++) text = JSON.stringify({ text })
    expect(found(text, profileOf(['email']))).toEqual(['email: ada@example.com'])
  })

  it('values that are escaped to hide', () => {
    const text = '{"text":"{\\"mail\\":\\"ada\\\\u0040example.com\\"}"}'
    expect(found(text, profileOf(['email']))).toEqual(['email: ada\\\\u0040example.com'])
  })
})
