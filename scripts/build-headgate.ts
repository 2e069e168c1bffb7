// npm run build:headgate: bundles the program `headgate` into dist/headgate, a package without dependencies.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '..')

/**
 * Writes the package into a folder, of which it replaces the content. What only some commands need is in files of its own.
 * @returns the path of the program
 */
export async function buildHeadgate(folder: string): Promise<string> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await build({
    entryPoints: [join(ROOT, 'scripts/headgate.ts')],
    outdir: folder,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Packages in CommonJS call `require` for modules of Node.js.
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
    legalComments: 'none',
    logLevel: 'warning',
  })
  const { name, version, description, license, engines } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  )
  const bin = { headgate: 'headgate.js' }
  const manifest = { name, version, description, license, type: 'module', engines, bin }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  return join(folder, 'headgate.js')
}

if (import.meta.main) await buildHeadgate(join(ROOT, 'dist/headgate'))
