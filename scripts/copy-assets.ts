// Builds the console, and copies what the static files take from packages, before each build of the gateway ([build] in wrangler.toml).
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { buildConsole } from './build-console.ts'

const TARGET = join(import.meta.dirname, '../public/docs/api/redoc.js')
/** The only address in Redoc that a page loads by itself: the picture beside its name. */
const LOGO = '"https://cdn.redoc.ly/redoc/logo-mini.svg"'
const NO_PICTURE = '"data:,"'
/** A map beside the file is not served. */
const SOURCE_MAP = /\n?\/\/# sourceMappingURL=.*\s*$/

/** The script of Redoc, without what it would load from elsewhere. @throws if this version of Redoc is another than expected */
export function redocScript(): string {
  const package_ = dirname(createRequire(import.meta.url).resolve('redoc/package.json'))
  const text = readFileSync(join(package_, 'bundles/redoc.standalone.js'), 'utf8')
  const licence = readFileSync(join(package_, 'bundles/redoc.standalone.js.LICENSE.txt'), 'utf8')
  if (text.split(LOGO).length !== 2) throw new Error('Redoc has its logo at another address')
  return `/*\n${licence.replaceAll('*/', '').replaceAll('/*', '')}*/\n${text.replace(LOGO, NO_PICTURE).replace(SOURCE_MAP, '')}\n`
}

if (import.meta.main) {
  const script = redocScript()
  if (present() !== script) {
    // Builds run side by side.
    const half = `${TARGET}.${process.pid}`
    writeFileSync(half, script)
    renameSync(half, TARGET)
  }
  await buildConsole()
}

function present(): string | null {
  try {
    return readFileSync(TARGET, 'utf8')
  } catch {
    return null
  }
}
