import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lineAt, maskSource } from '../../scripts/source-imports.ts'
import { describeBacktracking } from '../harness/backtracking.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Patterns with quadratic work whose texts are short. */
const OF_SHORT_TEXTS = new Map([['src/dlp/detectors/secrets.ts', ['^[\\x20-\\x7e]*:[\\x20-\\x7e]+$']]])

interface Literal {
  place: string
  source: string
  flags: string
}

/** The regular expressions of a source: what `maskSource` has blanked between slashes. */
function literalsOf(path: string, text: string): Literal[] {
  return [...maskSource(text).matchAll(/\/( +)\/([dgimsuvy]*)/g)].map((match) => {
    const start = match.index + 1
    const [, body = '', flags = ''] = match
    return {
      place: `${path}:${lineAt(text, match.index)}`,
      source: text.slice(start, start + body.length),
      flags,
    }
  })
}

const LITERALS = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .flatMap((entry) => {
    const path = join(entry.parentPath, entry.name)
    const known = OF_SHORT_TEXTS.get(relative(ROOT, path)) ?? []
    return literalsOf(relative(ROOT, path), readFileSync(path, 'utf8')).filter(
      ({ source }) => !known.includes(source),
    )
  })

describe('the regular expressions of src', () => {
  it('are found', () => {
    expect(LITERALS.length).toBeGreaterThan(400)
  })

  it('take work that grows with their text and no faster', () => {
    expect(LITERALS.flatMap(({ place, ...pattern }) => describeBacktracking(pattern, place))).toEqual([])
  })

  it.each([
    ['a\\s*:\\s*\\s*b', 'two runs of the same characters'],
    ['(?:a|a)+b', 'a choice of the same characters'],
    ['/+$', 'a run that is begun at each of its characters'],
  ])('would not be %s', (source) => {
    expect(describeBacktracking({ source, flags: '' }, 'here')).toHaveLength(1)
  })
})
