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

/** A walk of ARCHITECTURE: its heading, and the cells of its rows. */
type Walk = [heading: string, rows: Array<[step: string, place: string, taken: string, given: string]>]

const WALKS: Walk[] = ARCHITECTURE.split('\n## ').flatMap((section): Walk[] => {
  const rows = [...section.matchAll(/^\| (\d+) \| (.*) \| (.*) \| (.*) \|$/gm)]
  const cells = rows.map(([, step = '', place = '', taken = '', given = '']) => [step, place, taken, given])
  return rows.length === 0 ? [] : [[section.slice(0, section.indexOf('\n')), cells as Walk[1]]]
})

const SOURCES = globSync('src/**/*.ts').map(read)

const namesIn = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

/** The file that a row names: by its path, or by its name in the folder of a file before it. */
function sourceOf(name: string, before: readonly string[]): string | undefined {
  const folders = [...BASES, ...before.map((path) => dirname(path))]
  return folders.map((folder) => join(folder, `${name}.ts`)).find((path) => existsSync(path))
}

/** Whether a source declares a function, a method, a class, a constant or a type of this name. */
const declares = (source: string, name: string): boolean =>
  new RegExp(
    `^\\s*(?:export )?(?:async )?(?:function\\*?|class|const|interface|type) ${name}\\b|^  (?:async )?\\*?${name}[(<]`,
    'm',
  ).test(source)

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

  it('walks one chat and one response', () => {
    expect(WALKS.map(([, rows]) => rows.map(([step]) => Number(step)))).toEqual(
      Array.from({ length: 2 }, () => Array.from({ length: 12 }, (_, index) => index + 1)),
    )
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

describe.each(WALKS)('the walk "%s"', (_, rows) => {
  it.each(rows)('step %s names functions that its files declare', (_step, place) => {
    const files: string[] = []
    const missing: string[] = []
    for (const name of namesIn(place)) {
      const file = sourceOf(name, files)
      if (file !== undefined) files.push(file)
      else if (!files.some((path) => declares(read(path), name))) missing.push(name)
    }
    expect(files).not.toEqual([])
    expect(missing).toEqual([])
  })

  it.each(rows)('step %s names functions and types that src declares', (_step, _place, taken, given) => {
    const names = namesIn(`${taken} ${given}`).filter((name) => sourceOf(name, []) === undefined)
    const missing = names.filter(
      (name) => !isThere(name) && !SOURCES.some((source) => declares(source, name)),
    )
    expect(missing).toEqual([])
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

describe.each(DOCUMENTS)('the commands of %s', (document) => {
  it('keep the banner of npm out of what another program reads', () => {
    const commands = read(document)
      .split('\n')
      .filter((line) => /[$<]\(npm run |npm run .*--json.*[|>]/.test(line) && !line.startsWith('|'))
    expect(commands.filter((line) => !/npm run (-s|--silent) /.test(line))).toEqual([])
  })
})
