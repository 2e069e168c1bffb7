import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { endGroup } from '../../../scripts/node/process-group.ts'

const CACHE = join(import.meta.dirname, '../../../.headgate/clients')

/** How long npm may take for a few hundred megabytes. */
const INSTALL_LIMIT_MS = 240_000

export interface ClientPackage {
  /** Folder name in the cache. */
  name: string
  /** Name of the npm package and its exact version. */
  npm: string
  version: string
  /** Paths of the program below node_modules, which depend on the platform; the first that exists counts. */
  programs: string[]
}

/** Path of an installed program, or why there is none. */
export type InstalledClient = { program: string } | { missing: string }

/** Path of installed packages, a folder `node_modules`, or why there are none. */
export type InstalledLibrary = { modules: string } | { missing: string }

/**
 * Installs a client from npm into the cache folder, once for each version. Reports a failure on stderr, so that skipped
 * tests do not look like passed ones.
 */
export async function installClient(client: ClientPackage): Promise<InstalledClient> {
  const wanted = `${client.npm}@${client.version}`
  return orMissing(wanted, async () => {
    const modules = await installed(`${client.name}-${client.version}`, [wanted])
    const program = client.programs.map((path) => join(modules, path)).find(existsSync)
    if (program !== undefined) return { program }
    throw new Error(`npm installed no program for ${process.platform} ${process.arch}`)
  })
}

/**
 * Installs a library, with the packages it is used together with.
 *
 * @param name begins the name of its folder in the cache. @param versions exact ones, by package.
 */
export async function installLibrary(
  name: string,
  versions: Readonly<Record<string, string>>,
): Promise<InstalledLibrary> {
  const wanted = Object.entries(versions).map(([npm, version]) => `${npm}@${version}`)
  return orMissing(wanted.join(' '), async () => ({
    modules: await installed([name, ...Object.values(versions)].join('-'), wanted),
  }))
}

async function orMissing<Found>(
  wanted: string,
  install: () => Promise<Found>,
): Promise<Found | { missing: string }> {
  try {
    return await install()
  } catch (error) {
    const missing = error instanceof Error ? error.message : String(error)
    process.stderr.write(`SKIPPED: ${wanted}: ${missing}\n`)
    return { missing }
  }
}

/** @returns the folder `node_modules` that has the wanted packages. */
async function installed(name: string, wanted: string[]): Promise<string> {
  const folder = join(CACHE, name)
  if (!existsSync(folder)) await install(wanted, folder)
  return join(folder, 'node_modules')
}

/** Installs beside the folder and renames, so that a run cut short leaves no half of it. */
async function install(wanted: string[], folder: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true })
  const beside = mkdtempSync(`${folder}-`)
  try {
    writeFileSync(join(beside, 'package.json'), '{"private":true}\n')
    // The programs come in packages of their platform; install scripts would only link or copy them.
    await npmInstall(beside, wanted)
    if (readdirSync(join(beside, 'node_modules')).length === 0) throw new Error('npm installed nothing')
    renameSync(beside, folder)
  } catch (error) {
    // Another run was faster: its folder is the same.
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(beside, { recursive: true, force: true })
  }
}

function npmInstall(folder: string, wanted: string[]): Promise<void> {
  const options = ['--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error']
  return new Promise((resolve, reject) => {
    const npm = spawn('npm', ['install', ...options, ...wanted], {
      cwd: folder,
      detached: true,
      stdio: 'pipe',
    })
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
