// Builds the console into the static files, before each build of the gateway ([build] in wrangler.toml).
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { build } from 'vite'

const ROOT = join(import.meta.dirname, '..')
const TARGET = join(ROOT, 'public/console')
/** Apart from the static files, so that nothing of a build that is killed is deployed. */
const SCRATCH = join(ROOT, 'dist')
/** Digest of the sources of the built files. */
const STAMP = 'sources.txt'
/** What the console is made of. */
const SOURCES = [
  'src/console',
  'src/client',
  'src/wire/endpoints/endpoints.ts',
  'src/wire/endpoints/permissions.ts',
  'package-lock.json',
  'scripts/build-console.ts',
]

/** Builds the console, unless its files are those of the present sources. */
export async function buildConsole(): Promise<void> {
  const digest = digestOfSources()
  if (presentDigest() === digest) return
  // Builds run side by side: each has a folder of its own, and the last one to end takes the place.
  mkdirSync(SCRATCH, { recursive: true })
  const folder = mkdtempSync(join(SCRATCH, '.console-'))
  const files = join(folder, 'console')
  const { NODE_ENV } = process.env
  // React has another build for development, which is thrice the size; tests and shells set the variable.
  process.env.NODE_ENV = 'production'
  try {
    await build({
      configFile: false,
      root: join(ROOT, 'src/console'),
      base: '/console/',
      logLevel: 'error',
      build: {
        outDir: files,
        emptyOutDir: true,
        target: 'es2024',
        // The policy of the page has no inline style or script, and takes files of this gateway only.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
      },
    })
    writeFileSync(join(files, STAMP), digest)
    if (existsSync(TARGET)) renameSync(TARGET, join(folder, 'before'))
    renameSync(files, TARGET)
  } catch (error) {
    if (presentDigest() !== digest) throw error
  } finally {
    if (NODE_ENV === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = NODE_ENV
    rmSync(folder, { recursive: true, force: true })
  }
}

function digestOfSources(): string {
  const hash = createHash('sha256')
  for (const path of SOURCES.flatMap(filesOf)) hash.update(`${path}\n`).update(readFileSync(join(ROOT, path)))
  return hash.digest('hex')
}

function filesOf(path: string): string[] {
  if (/\.[a-z]+$/.test(path)) return [path]
  return readdirSync(join(ROOT, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .sort()
}

function presentDigest(): string | null {
  try {
    return readFileSync(join(TARGET, STAMP), 'utf8')
  } catch {
    return null
  }
}
