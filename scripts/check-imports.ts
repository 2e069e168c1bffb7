// npm run check:imports: fails for an import that the layout does not allow, and for an export that nothing uses.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { checkSources, type Source } from './import-rules.ts'
import { unusedExports } from './unused-exports.ts'

const ROOT = join(import.meta.dirname, '..')
const FOLDERS = ['src', 'workers', 'schema', 'scripts', 'test']

function readSources(): Source[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => !path.includes(`${sep}fixtures${sep}`))
      .map((path) => ({
        path: relative(ROOT, path).split(sep).join('/'),
        text: readFileSync(path, 'utf8'),
      })),
  )
}

const sources = readSources()
const violations = [...checkSources(sources), ...unusedExports(sources)]
for (const { path, line, rule } of violations) console.error(`${path}:${line}: ${rule}`)
if (violations.length > 0) process.exitCode = 1
else console.log(`imports: ${sources.length} files, no violations`)
