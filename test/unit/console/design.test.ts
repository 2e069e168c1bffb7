import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const CONSOLE = join(import.meta.dirname, '../../../src/console')

/** A colour, or a typeface or size of type, that is written out. */
const COLOUR =
  /#[0-9a-f]{3,8}\b|\b(?:oklch|oklab|rgba?|hsla?|lab|lch|hwb|color-mix)\(|:\s*(?:white|black|red|gr[ae]y)\b/i
const TYPE =
  /font-family:(?!\s*var\()|font-size:(?!\s*var\()|font:(?!\s*(?:inherit|\d00 var\(--size-\d\) ?\/ ?var\(--lead-\d\) var\(--(?:sans|mono)\)))/

/** Lines of a style sheet, or a script, that do not take colours and type from the tokens. */
function strayLines(text: string): string[] {
  return text.split('\n').filter((line) => COLOUR.test(line) || TYPE.test(line))
}

it('takes every colour, typeface and size of type from the tokens', () => {
  const sheets = readdirSync(CONSOLE, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.css') && !path.endsWith('tokens.css'),
  )
  expect(sheets.length).toBeGreaterThan(5)
  const stray = sheets.flatMap((path) =>
    strayLines(readFileSync(join(CONSOLE, path), 'utf8')).map((line) => `${path}: ${line}`),
  )
  expect(stray).toEqual([])
})

it.each([
  'color: #fff;',
  'color: rgb(1 2 3);',
  'font-size: 14px;',
  'font-family: Arial;',
  'font: 400 14px Arial;',
])('would find %s', (line) => {
  expect(strayLines(line)).toEqual([line])
})
