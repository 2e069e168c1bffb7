import { RE2JS } from 're2js'
import { type SearchRequest, type SearchResult, WORKSPACE_FOLDER, WorkspaceError } from './contract.ts'
import type { FileStore } from './files/file-store.ts'
import { resolvePath } from './files/paths.ts'
import { listFiles } from './list-files.ts'

const MOST_MATCHES = 200
const LONGEST_LINE = 400
/** Characters that are searched in one call. The time of a regular expression is linear in them. */
const MOST_CHARACTERS = 8 * 1024 * 1024
const MOST_PROGRAM = 1_000

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** Lines that match a regular expression, in the order of paths. @throws WorkspaceError invalid or not_found */
export async function searchFiles(store: FileStore, request: SearchRequest): Promise<SearchResult> {
  const pattern = compiled(request.pattern, request.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
  const glob = request.glob === null ? null : compiledGlob(request.glob)
  const matches: SearchResult['matches'] = []
  let characters = 0
  for (const { path, type } of listFiles(store, resolvePath(WORKSPACE_FOLDER, request.path), true)) {
    if (type !== 'file' || (glob && !glob.matches(path.slice(path.lastIndexOf('/') + 1)))) continue
    const text = textOf(store.read(path))
    if (text === null) continue
    characters += text.length
    if (characters > MOST_CHARACTERS) return { matches, more: true }
    for (const [index, line] of text.split('\n').entries()) {
      if (!pattern.matcher(line).find()) continue
      if (matches.length === MOST_MATCHES) return { matches, more: true }
      matches.push({ path, line: index + 1, text: line.slice(0, LONGEST_LINE) })
    }
    await scheduler.wait(0)
  }
  return { matches, more: false }
}

function compiled(pattern: string, flags: number): RE2JS {
  const problem = (reason: string) =>
    new WorkspaceError('invalid', `pattern: ${reason} (the syntax is that of RE2)`)
  let expression: RE2JS
  try {
    expression = RE2JS.compile(pattern, flags)
  } catch (error) {
    throw problem(error instanceof Error ? error.message.slice(0, 200) : 'is not a regular expression')
  }
  if (expression.programSize() > MOST_PROGRAM) throw problem('is too large; use fewer or smaller repetitions')
  return expression
}

/** `*`, `?` and `{a,b}`, as in the shell. */
function compiledGlob(glob: string): RE2JS {
  const source = glob
    .replace(/[.+^$()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
    .replace(/\{([^{}]*)\}/g, (_, names: string) => `(?:${names.replaceAll(',', '|')})`)
    .replace(/[{}]/g, (brace) => `\\${brace}`)
  return compiled(source, 0)
}

/** Null for a binary file. */
function textOf(bytes: Uint8Array): string | null {
  if (bytes.subarray(0, 8_192).includes(0)) return null
  try {
    return decoder.decode(bytes)
  } catch {
    return null
  }
}
