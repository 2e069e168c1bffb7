import { posix } from 'node:path'
import type { Source, Violation } from './import-rules.ts'
import { importsOf, lineAt, maskSource } from './source-imports.ts'

/** A name that a file of src exports. */
interface Export {
  path: string
  name: string
  line: number
  /** A test that calls a public function may name the types of what it hands over. */
  isType: boolean
  /** Whether its docstring has `@internal` with a reason: it is exported for tests. */
  forTests: boolean
}

/** Whether tests or other files import a name, by `path#name`; `path#*` is every name of a file. */
type Uses = ReadonlyMap<string, { byTest: boolean; byOther: boolean }>

const DECLARATION =
  /\bexport\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(function\s*\*?|const|let|class|interface|type|enum)\s+([\w$]+)/g
const LIST = /\bexport\s+(type\s+)?\{([^}]*)\}/g
const INTERNAL = /@internal\s+\w/

/**
 * Finds the unused exports of src: a name that no other file imports, and a name that only tests import and whose
 * docstring does not say why with `@internal`.
 * @param sources the whole repository, because every file may import a name @returns in the order of the sources
 */
export function unusedExports(sources: readonly Source[]): Violation[] {
  const masked = new Map(sources.map((source) => [source.path, maskSource(source.text)]))
  const uses = usesOf(sources, masked)
  const isSource = ({ path }: Source) => path.startsWith('src/')
  return sources
    .filter(isSource)
    .flatMap((source) => exportsOf(source, masked.get(source.path) ?? ''))
    .flatMap((found) => {
      const rule = ruleBroken(found, uses)
      return rule === null ? [] : [{ path: found.path, line: found.line, rule }]
    })
}

function ruleBroken({ path, name, isType, forTests }: Export, uses: Uses): string | null {
  const found = [uses.get(`${path}#${name}`), uses.get(`${path}#*`)]
  if (found.some((use) => use?.byOther)) {
    return forTests ? `${name} is imported by more than tests: it is not @internal` : null
  }
  if (!found.some((use) => use?.byTest)) return `${name} is exported, and no other file imports it`
  return forTests || isType ? null : `${name} is imported by tests alone: say why with @internal`
}

function exportsOf({ path, text }: Source, masked: string): Export[] {
  const declared = [...masked.matchAll(DECLARATION)].map((match) => ({
    at: match.index,
    isType: /^(interface|type)$/.test(match[1] ?? ''),
    name: match[2] ?? '',
  }))
  const listed = [...masked.matchAll(LIST)].flatMap((match) =>
    namesOf(match[2] ?? '').map(({ exported }) => ({
      at: match.index,
      isType: match[1] !== undefined,
      name: exported,
    })),
  )
  return [...declared, ...listed].map(({ at, ...rest }) => ({
    path,
    ...rest,
    line: lineAt(text, at),
    forTests: INTERNAL.test(docstringBefore(text, at)),
  }))
}

/** The comment that ends where a declaration begins; empty when there is none. */
function docstringBefore(text: string, at: number): string {
  const before = text.slice(0, at).trimEnd()
  return before.endsWith('*/') ? before.slice(before.lastIndexOf('/**')) : ''
}

function usesOf(sources: readonly Source[], masked: ReadonlyMap<string, string>): Uses {
  const uses = new Map<string, { byTest: boolean; byOther: boolean }>()
  for (const { path, text } of sources) {
    const isTest = path.startsWith('test/')
    for (const { specifier, clause } of importsOf(text, masked.get(path))) {
      if (!specifier.startsWith('.')) continue
      const target = posix.join(posix.dirname(path), specifier)
      for (const name of importedNames(clause)) {
        const known = uses.get(`${target}#${name}`) ?? { byTest: false, byOther: false }
        uses.set(`${target}#${name}`, {
          byTest: known.byTest || isTest,
          byOther: known.byOther || !isTest,
        })
      }
    }
  }
  return uses
}

/** The names of an import in the file they come from; `*` for a form that can reach each. */
function importedNames(clause: string): string[] {
  const list = /\{([^}]*)\}/.exec(clause)?.[1]
  return list === undefined ? ['*'] : namesOf(list).map(({ own }) => own)
}

/** The members of a list in braces: a name where it is declared, and the one it has outside. */
function namesOf(list: string): { own: string; exported: string }[] {
  return list
    .split(',')
    .map((member) => member.trim().replace(/^type\s+/, ''))
    .filter((member) => member !== '')
    .map((member) => {
      const [own = '', exported = own] = member.split(/\s+as\s+/)
      return { own, exported }
    })
}
