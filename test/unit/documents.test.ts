import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ALLOWED, FLOORS } from '../../scripts/import-rules.ts'

const read = (path: string): string => readFileSync(path, 'utf8')
const DECISIONS = globSync('docs/decisions/*.md')
const DOCUMENTS = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...globSync('docs/*.md'), ...DECISIONS]
const ARCHITECTURE = read('ARCHITECTURE.md')

/** What a path of a document may be relative to: the repository, `src`, or a folder of `src`. */
const BASES = ['', 'src', ...globSync('src/*').filter((path) => statSync(path).isDirectory())]

/** A file, a folder, or the beginning of file names that end in a wildcard. */
const isThere = (path: string): boolean =>
  BASES.some((base) =>
    path.includes('*')
      ? globSync(join(base, `${path}.ts`)).length > 0
      : ['', '.ts', '.test.ts'].some((ending) => existsSync(join(base, path + ending))),
  )

/** Paths in backticks. `tools/list` and its like are methods of MCP. */
const pathsIn = (text: string): string[] =>
  [...text.matchAll(/`([a-z][\w.-]*(?:\/[\w.*-]*)+)`/g)]
    .map(([, path = '']) => path)
    .filter((path) => !/^(tools|resources|subscriptions)\/(list|read|call|listen)$/.test(path))

/** The anchors of the headings of a page, as GitHub derives them. */
const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )

describe('the map', () => {
  it('has at most 12 KB', () => {
    expect(statSync('ARCHITECTURE.md').size).toBeLessThanOrEqual(12 * 1024)
  })

  it('has the picture of the README', () => {
    const picture = /```text\n callers[^`]*```/
    expect(picture.exec(ARCHITECTURE)?.[0]).toBe(picture.exec(read('README.md'))?.[0])
  })

  it('has a line for each folder of src', () => {
    const folders = globSync('src/*').filter((path) => statSync(path).isDirectory())
    expect(folders.filter((path) => !ARCHITECTURE.includes(`\`${path}/\``))).toEqual([])
  })

  it('has the modules that the rules of imports know', () => {
    const table = ARCHITECTURE.slice(ARCHITECTURE.indexOf('## The imports'))
    const modules = Object.keys(ALLOWED).filter((module) => existsSync(join('src', module)))
    expect(modules.filter((module) => !table.includes(`\`${module}\``))).toEqual([])
  })

  it.each(Object.entries(FLOORS))('names the folders of %s in the order of the rules', (module, floors) => {
    const row = ARCHITECTURE.split('\n').find((line) => line.startsWith(`| \`src/${module}/\``)) ?? ''
    const words = row.replaceAll('`', '').toLowerCase().replaceAll(' ', '-')
    const places = floors.filter((floor) => floor !== '.').map((floor) => words.indexOf(floor))
    expect(places).not.toContain(-1)
    expect(places).toEqual([...places].sort((left, right) => left - right))
  })
})

describe.each(['ARCHITECTURE.md', 'CONTRIBUTING.md', ...DECISIONS])('%s', (document) => {
  it('names only files and folders that are there', () => {
    expect(pathsIn(read(document)).filter((path) => !isThere(path))).toEqual([])
  })
})

describe.each(DOCUMENTS)('the links of %s', (document) => {
  it('lead to pages and headings that are there', () => {
    const links = [...read(document).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)]
    const broken = links.filter(([, path = '', anchor]) => {
      const target = path === '' ? document : join(dirname(document), path)
      if (!existsSync(target)) return true
      return anchor !== undefined && !anchorsOf(read(target)).includes(anchor)
    })
    expect(broken.map(([link]) => link)).toEqual([])
  })
})
