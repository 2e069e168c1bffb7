// npm run restore -- --from <folder>: fills an empty node from a backup.
import { join, resolve } from 'node:path'
import { keysOf } from './backup.ts'
import { migrateDatabase, migrationNames } from './migrate.ts'
import { type ContentObjects, ObjectFiles } from './node/content-store/object-files.ts'
import { writePrivateFile } from './node/private-file.ts'
import { makePrivateFolder } from './node/private-folder.ts'
import { StartError } from './node/start-error.ts'
import { copyContent, isEmptyPlace, objectsIn } from './serve/backup/content.ts'
import { withClient } from './serve/backup/database.ts'
import { copyFiles, makeEmptyFolder } from './serve/backup/files.ts'
import { BACKUP, checkKeys, type Manifest, readBackup } from './serve/backup/manifest.ts'
import { checkEmptyDatabase, restoreTables } from './serve/backup/tables.ts'
import { readOptions, refuseUsage } from './serve/command-line.ts'
import { claimContent } from './serve/content-claim.ts'
import { claimDataFolder, DATA } from './serve/data-folder.ts'
import { lockDatabase } from './serve/database-lock.ts'
import { beginRestore, endRestore } from './serve/installation.ts'
import { type NodeSettings, readNodeSettings } from './serve/settings.ts'

const USAGE = `usage: npm run restore -- --from <folder>

Fills an empty node from a backup: its DATA_DIR, CONTENT and database have to be empty.

  --from <folder>  a folder that npm run backup has made
  -h, --help       this text

It takes the settings of the node (npm run serve), and TOOLS_DATA_DIR: the DATA_DIR of tools that run at TOOLS_URL.
docs/self-hosting.md has them all.
`

/**
 * Restores a backup into empty places. Everything is checked before anything is written; a restore that fails later leaves a node
 * that `npm run serve` refuses.
 *
 * @throws StartError for a place that is not empty or in use, other keys, or a backup that was changed
 */
async function restore(settings: NodeSettings, source: string): Promise<Manifest> {
  const { database, dataFolder, content } = settings
  const manifest = await readBackup(source)
  checkKeys(manifest.keys, keysOf(settings))
  if (!migrationNames().includes(manifest.migration))
    throw new StartError(
      `this release is older than the backup: it does not know the migration ${manifest.migration}`,
    )
  // First, because its message says what to do about what an earlier restore has left in all places.
  await withClient(database, checkEmptyDatabase)
  const toolsFolder = process.env.TOOLS_DATA_DIR || dataFolder
  const claims: Array<() => Promise<void>> = []
  try {
    for (const folder of new Set([dataFolder, toolsFolder])) {
      claims.push(await claimDataFolder(folder, null))
      makeEmptyFolder(folder, ['control.sock'])
    }
    // Before it is opened: that removes what the owner of the folder has not stored whole yet.
    if ('folder' in content) claims.push(await claimContentFolder(content.folder))
    const place = objectsIn(content, false)
    if (!(await isEmptyPlace(place))) throw new StartError('CONTENT is not empty')
    await fillDatabase(settings, source, manifest)
    await fillFolders(place, { dataFolder, toolsFolder }, source, manifest)
    await withClient(database, endRestore)
  } finally {
    for (const release of claims) await release()
  }
  return manifest
}

async function claimContentFolder(folder: string): Promise<() => Promise<void>> {
  makePrivateFolder(folder)
  return claimContent(folder)
}

async function fillDatabase({ database }: NodeSettings, source: string, manifest: Manifest): Promise<void> {
  const lock = await lockDatabase(database, () => {})
  // Not that of a later session, which another node could have come before.
  const { client } = lock
  try {
    // A node may have used the database since it was looked at.
    await checkEmptyDatabase(client)
    // A node that starts on it from here on is refused, also after this process was killed.
    await beginRestore(client)
    await migrateDatabase({ DATABASE_URL: '', connection: database }, { until: manifest.migration })
    await restoreTables(client, join(source, BACKUP.postgres), manifest)
  } finally {
    await lock.release()
  }
}

async function fillFolders(
  place: ContentObjects,
  { dataFolder, toolsFolder }: { dataFolder: string; toolsFolder: string },
  source: string,
  manifest: Manifest,
): Promise<void> {
  const copied = await copyContent(new ObjectFiles(join(source, BACKUP.content)), place)
  if (copied.objects !== manifest.content.objects)
    throw new StartError('CONTENT got fewer objects than the backup has')
  copyFiles(join(source, BACKUP.objects), join(dataFolder, DATA.objects))
  copyFiles(join(source, BACKUP.tools), join(toolsFolder, DATA.tools))
  copyFiles(join(source, BACKUP.queue), join(dataFolder, DATA.queue))
  writePrivateFile(join(dataFolder, DATA.installation), `${JSON.stringify({ id: manifest.installation })}\n`)
}

async function main(): Promise<void> {
  const { from } = readOptions(USAGE, { from: { type: 'string' } })
  if (from === undefined) refuseUsage(USAGE, '--from is not given')
  // What is made here belongs to this user alone.
  process.umask(0o077)
  const manifest = await restore(readNodeSettings(process.env), resolve(from))
  console.log(`restored the backup of ${manifest.created_at} (${manifest.migration})`)
}

main().catch((error: unknown) => {
  console.error(`restore: ${error instanceof Error ? error.message.split('\n', 1)[0] : String(error)}`)
  process.exitCode = 1
})
