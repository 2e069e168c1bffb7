// npm run build: bundles both scripts as deployments would, without deploying, and prints their sizes.
import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { wranglerArguments, wranglerEnvironment } from './local/wrangler-command.ts'
import { inheritedEnvironment } from './node/inherited-environment.ts'
import { StartError } from './node/start-error.ts'

const ROOT = join(import.meta.dirname, '..')

export interface Bundle {
  directory: string
  /** Bytes of the Worker's code. */
  size: number
  /** Size compressed by gzip, which Cloudflare limits. Computed on reading. */
  readonly compressedSize: number
}

/** The configuration of the script of tools. */
export const TOOLS_CONFIGURATION = join(ROOT, 'workers/tools/wrangler.toml')

/** Folder of the script of tools, in that of the gateway. */
export const toolsBundle = (directory: string): string => join(directory, 'tools')

/** Builds the gateway, and the script of tools into a folder below. @throws StartError */
export async function buildScripts(
  directory: string,
  options: { minify?: boolean } = {},
): Promise<{ gateway: Bundle; tools: Bundle }> {
  const gateway = await buildWorker(directory, options)
  const tools = await buildWorker(toolsBundle(directory), { ...options, configuration: TOOLS_CONFIGURATION })
  return { gateway, tools }
}

/**
 * Builds the Worker into a folder with `wrangler deploy --dry-run`, so that what is tested is what would be deployed.
 *
 * @param directory emptied first
 * @param options `minify: false` keeps names and lines, for a profile that people can read; `entry`: another Worker's
 * file, which the one in the folder is named after; `configuration`: another wrangler.toml
 * @throws StartError with wrangler's first error line
 */
export async function buildWorker(
  directory: string,
  options: { minify?: boolean; entry?: string; configuration?: string } = {},
): Promise<Bundle> {
  rmSync(directory, { recursive: true, force: true })
  const { configuration } = options
  const entry = options.entry === undefined ? [] : [options.entry]
  const config = configuration === undefined ? [] : ['--config', configuration]
  const minify = options.minify === undefined ? [] : [`--minify=${options.minify}`]
  const output = await run(['deploy', ...entry, ...config, '--dry-run', '--outdir', directory, ...minify])
  if (output.code !== 0) throw new StartError(`the Worker does not build: ${firstError(output.text)}`)
  const name = configuration
    ? basename(dirname(configuration))
    : basename(options.entry ?? 'gateway.ts', '.ts')
  const code = readFileSync(join(directory, `${name}.js`))
  return {
    directory,
    size: code.length,
    get compressedSize() {
      return gzipSync(code, { level: 9 }).length
    },
  }
}

/** The first line of wrangler's output that names an error, without colours. */
export function firstError(output: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are made of one
  const lines = output.replace(/\u001b\[[0-9;]*m/g, '').split('\n')
  const line = lines.find((text) => /\berror\b/i.test(text)) ?? lines.find((text) => text.trim() !== '')
  return (line ?? 'no reason given').replace(/^.*?\[ERROR\]/, '').trim()
}

function run(parameters: string[]): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, wranglerArguments(parameters), {
      cwd: ROOT,
      env: { ...inheritedEnvironment(), ...wranglerEnvironment(join(ROOT, '.headgate')) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let text = ''
    const collect = (chunk: Buffer): void => {
      text = (text + chunk.toString()).slice(-100_000)
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, text }))
  })
}

async function main(): Promise<void> {
  const { gateway, tools } = await buildScripts(join(ROOT, 'dist'))
  const kibibytes = (bytes: number) => `${(bytes / 1024).toFixed(1)} KiB`
  const sizes = ({ size, compressedSize }: Bundle) => `${kibibytes(size)}, gzip ${kibibytes(compressedSize)}`
  console.log(`dist/gateway.js: ${sizes(gateway)}`)
  console.log(`dist/tools/tools.js: ${sizes(tools)}`)
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    console.error(`build: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  })
}
