import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { endGroup } from '../../../scripts/local/process-group.ts'

const CACHE = join(import.meta.dirname, '../../../.headgate/clients')

/** How long npm may take for a few hundred megabytes. */
const INSTALL_LIMIT_MS = 240_000

export interface ClientPackage {
  /** Folder name in the cache. */
  name: string
  /** Name of the npm package and its exact version. */
  npm: string
  version: string
  /** Where the package of this platform keeps its program, below node_modules; the first that exists counts. */
  programs: string[]
}

/** Path of an installed program, or why there is none. */
export type InstalledClient = { program: string } | { missing: string }

/**
 * Installs a client from npm into the cache folder, once for each version. Tells on stderr when that fails, so that
 * skipped tests do not look like passed ones.
 */
export async function installClient(client: ClientPackage): Promise<InstalledClient> {
  const folder = join(CACHE, `${client.name}-${client.version}`)
  try {
    if (!existsSync(folder)) await install(client, folder)
    const program = client.programs.map((path) => join(folder, 'node_modules', path)).find(existsSync)
    if (program !== undefined) return { program }
    throw new Error(`npm installed no program for ${process.platform} ${process.arch}`)
  } catch (error) {
    const missing = error instanceof Error ? error.message : String(error)
    process.stderr.write(`SKIPPED: ${client.npm}@${client.version}: ${missing}\n`)
    return { missing }
  }
}

/** Installs beside the folder and renames, so that a run cut short leaves no half of it. */
async function install(client: ClientPackage, folder: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true })
  const beside = mkdtempSync(`${folder}-`)
  try {
    writeFileSync(join(beside, 'package.json'), '{"private":true}\n')
    // The programs come in packages of their platform; install scripts would only link or copy them.
    await npmInstall(beside, `${client.npm}@${client.version}`)
    if (readdirSync(join(beside, 'node_modules')).length === 0) throw new Error('npm installed nothing')
    renameSync(beside, folder)
  } catch (error) {
    // Another run was faster: its folder is the same.
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(beside, { recursive: true, force: true })
  }
}

function npmInstall(folder: string, wanted: string): Promise<void> {
  const options = ['--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error']
  return new Promise((resolve, reject) => {
    const npm = spawn('npm', ['install', ...options, wanted], { cwd: folder, detached: true, stdio: 'pipe' })
    const group = npm.pid
    let told = ''
    for (const stream of [npm.stdout, npm.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        told = (told + chunk).slice(-2_000)
      })
    }
    const late = setTimeout(() => {
      told = `npm took longer than ${INSTALL_LIMIT_MS / 1_000} s`
      if (group !== undefined) void endGroup(group, 0)
    }, INSTALL_LIMIT_MS)
    npm.on('error', (error) => {
      clearTimeout(late)
      reject(new Error(`npm cannot be run: ${error.message}`))
    })
    npm.on('close', (code) => {
      clearTimeout(late)
      const reason = told.trim().split('\n').slice(0, 3).join(' ')
      if (code === 0) resolve()
      else reject(new Error(`npm install failed: ${reason}`))
    })
  })
}
