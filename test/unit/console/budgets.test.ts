import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildConsole } from '../../../scripts/build-console.ts'

const BUILT = join(import.meta.dirname, '../../../public/console')
const PAGES = join(import.meta.dirname, '../../../src/console/pages')
const KIBIBYTE = 1024

beforeAll(buildConsole)

const assets = () => readdirSync(join(BUILT, 'assets'))
const textOf = (name: string) => readFileSync(join(BUILT, 'assets', name), 'utf8')
/** Compressed bytes of built files. */
const sizeOf = (names: Iterable<string>) =>
  [...names].reduce((sum, name) => sum + gzipSync(textOf(name), { level: 9 }).length, 0)

/** The files that the page itself names. */
const ofPage = () =>
  [...readFileSync(join(BUILT, 'index.html'), 'utf8').matchAll(/assets\/([^"]+)/g)].map(([, name]) =>
    String(name),
  )

/** Scripts with all that they import. */
function withImports(names: readonly string[]): Set<string> {
  const found = new Set<string>()
  const visit = (name: string) => {
    if (found.has(name)) return
    found.add(name)
    for (const [, imported] of textOf(name).matchAll(/(?:from|import)\s*["']\.\/([^"']+\.js)["']/g))
      visit(String(imported))
  }
  for (const name of names) visit(name)
  return found
}

const pages = readdirSync(PAGES)
const isOfPage = (file: string, page: string) => new RegExp(`^${page}-[\\w-]{8}\\.`).test(file)

describe.each(pages)('the first load of the page %s', (page) => {
  it('has at most 150 KiB of scripts and 12 KiB of styles', () => {
    const scripts = assets().filter((name) => name.endsWith('.js') && isOfPage(name, page))
    expect(scripts).toHaveLength(1)
    const all = withImports([...ofPage().filter((name) => name.endsWith('.js')), ...scripts])
    expect(all.size).toBeGreaterThan(3)
    expect(sizeOf(all)).toBeLessThanOrEqual(150 * KIBIBYTE)
    const others = pages.filter((other) => other !== page)
    const styles = assets().filter(
      (name) => name.endsWith('.css') && !others.some((other) => isOfPage(name, other)),
    )
    expect(styles.length).toBeGreaterThan(3)
    expect(sizeOf(styles)).toBeLessThanOrEqual(12 * KIBIBYTE)
  })

  it('has at most 40 KiB that are its own', () => {
    expect(sizeOf(assets().filter((name) => isOfPage(name, page)))).toBeLessThanOrEqual(40 * KIBIBYTE)
  })
})
