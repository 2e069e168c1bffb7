// npm run backup -- --to <folder>: a copy of a node in which objects, Postgres and content agree.
import { readFileSync, renameSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type pg from 'pg'
import { ObjectFiles } from './node/content-store/object-files.ts'
import { writePrivateFile } from './node/private-file.ts'
import { StartError } from './node/start-error.ts'
import { copyContent, objectsIn } from './serve/backup/content.ts'
import { checkDatabase, refuseMigrations, withClient } from './serve/backup/database.ts'
import { copyFiles, makeEmptyFolder } from './serve/backup/files.ts'
import { BACKUP, digestsOf, type Manifest } from './serve/backup/manifest.ts'
import { beginSnapshot, copyTables } from './serve/backup/tables.ts'
import { readOptions, refuseUsage } from './serve/command-line.ts'
import { DATA, type PausedFolder, pauseDataFolder } from './serve/data-folder.ts'
import { readInstallation } from './serve/installation.ts'
import { fingerprints, type NodeSettings, readNodeSettings } from './serve/settings.ts'

const VERSION = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'))
  .version as string

const USAGE = `usage: npm run backup -- --to <folder>

Copies a node into a folder that is empty or missing. A node that runs refuses calls while its objects are copied.

  --to <folder>  where the backup is made
  -h, --help     this text

It takes the settings of the node (npm run serve), and TOOLS_DATA_DIR: the DATA_DIR of tools that run at TOOLS_URL.
docs/self-hosting.md has them all.
`

/**
 * Makes a backup. A node that runs refuses calls while its objects are copied and the snapshot of the database begins; the
 * rest is copied from that snapshot while it serves again.
 *
 * @param target an empty or missing folder
 * @throws StartError, and nothing that is there counts as a backup then
 */
async function backUp(settings: NodeSettings, target: string): Promise<string> {
  makeEmptyFolder(target)
  const installation = readInstallation(settings.dataFolder)
  if (installation === null) throw new StartError(`${settings.dataFolder} has no data of a node`)
  const content = {
    from: objectsIn(settings.content, true),
    to: new ObjectFiles(join(target, BACKUP.content)),
    seen: new Map<string, string>(),
  }
  // Most of it, before calls have to wait.
  await copyContent(content.from, content.to, content.seen)
  const { stored, tables } = await withClient(settings.database, async (client) => {
    await checkDatabase(client, installation)
    await refuseMigrations(client)
    const stored = await copyPaused(settings, target, content, client)
    return { stored, tables: await copyTables(client, join(target, BACKUP.postgres)) }
  })
  const manifest: Manifest = {
    format: 1,
    created_at: new Date().toISOString(),
    version: VERSION,
    installation,
    keys: keysOf(settings),
    ...tables,
    content: stored.content,
    files: await digestsOf(target),
  }
  // Its name comes last, so that a folder with a manifest is a whole backup.
  writePrivateFile(join(target, `${BACKUP.manifest}.part`), `${JSON.stringify(manifest, null, 2)}\n`)
  renameSync(join(target, `${BACKUP.manifest}.part`), join(target, BACKUP.manifest))
  const rows = tables.tables.reduce((sum, table) => sum + table.rows, 0)
  return `${rows} rows, ${stored.content.objects} objects of content; ${stored.pause}`
}

/** Copies what must not change meanwhile, and begins the snapshot of the database. */
async function copyPaused(
  settings: NodeSettings,
  target: string,
  content: { to: ObjectFiles; seen: Map<string, string> },
  client: pg.Client,
) {
  const { dataFolder } = settings
  const toolsFolder = process.env.TOOLS_DATA_DIR || dataFolder
  if (settings.toolsAddress !== null && toolsFolder === dataFolder)
    throw new StartError('TOOLS_DATA_DIR is not set: it is the DATA_DIR of the tools behind TOOLS_URL')
  const begun = performance.now()
  const paused = [await pauseDataFolder(dataFolder)]
  let copied: Awaited<ReturnType<typeof copyContent>>
  let haveResumed = false
  try {
    if (toolsFolder !== dataFolder) paused.push(await pauseDataFolder(toolsFolder))
    await beginSnapshot(client)
    copyFiles(join(dataFolder, DATA.objects), join(target, BACKUP.objects))
    copyFiles(join(toolsFolder, DATA.tools), join(target, BACKUP.tools))
    copyFiles(join(dataFolder, DATA.queue), join(target, BACKUP.queue))
    copied = await copyContent(objectsIn(settings.content, true), content.to, content.seen)
    for (const folder of paused) folder.check()
  } finally {
    haveResumed = await resumeAll(paused)
  }
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
  return { content: copied, pause: pauseText(paused, haveResumed, seconds) }
}

/** The tools first: the node that uses them serves calls at once. @returns whether all serve again */
async function resumeAll(paused: PausedFolder[]): Promise<boolean> {
  const resumed: boolean[] = []
  for (const folder of paused.reverse()) resumed.push(await folder.end())
  return resumed.every(Boolean)
}

function pauseText(paused: PausedFolder[], haveResumed: boolean, seconds: string): string {
  if (!paused.some(({ hadOwner }) => hadOwner)) return 'the node did not run'
  return haveResumed
    ? `calls were refused for ${seconds} s`
    : 'the node does not serve again: its log has the reason'
}

export const keysOf = ({ variables }: NodeSettings): Manifest['keys'] => ({
  KEY_PEPPERS: fingerprints(variables.KEY_PEPPERS ?? ''),
  VAULT_KEYS: fingerprints(variables.VAULT_KEYS ?? ''),
})

async function main(): Promise<void> {
  const { to } = readOptions(USAGE, { to: { type: 'string' } })
  if (to === undefined) refuseUsage(USAGE, '--to is not given')
  // What is made here belongs to this user alone.
  process.umask(0o077)
  const target = resolve(to)
  console.log(`${target}: ${await backUp(readNodeSettings(process.env), target)}`)
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    console.error(`backup: ${error instanceof Error ? error.message.split('\n', 1)[0] : String(error)}`)
    process.exitCode = 1
  })
}
