import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeAll, expect, it } from 'vitest'
import { buildConsole } from '../../../scripts/build-console.ts'

const BUILT = join(import.meta.dirname, '../../../public/console')
const KIBIBYTE = 1024

beforeAll(buildConsole)

/** Compressed bytes of the built files of a kind, by their names. */
function sizes(ending: string): Map<string, number> {
  const names = readdirSync(join(BUILT, 'assets')).filter((name) => name.endsWith(ending))
  const size = (name: string) => gzipSync(readFileSync(join(BUILT, 'assets', name)), { level: 9 }).length
  return new Map(names.map((name) => [name, size(name)]))
}

const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0)

it('loads at most 150 KiB of scripts and 12 KiB of styles, all pages included', () => {
  expect(sum(sizes('.js').values())).toBeLessThanOrEqual(150 * KIBIBYTE)
  expect(sum(sizes('.css').values())).toBeLessThanOrEqual(12 * KIBIBYTE)
})

it('has no page of more than 40 KiB', () => {
  const page = readFileSync(join(BUILT, 'index.html'), 'utf8')
  const later = [...sizes('.js')].filter(([name]) => !page.includes(name))
  expect(later.length).toBeGreaterThan(2)
  expect(later.filter(([, size]) => size > 40 * KIBIBYTE)).toEqual([])
})
