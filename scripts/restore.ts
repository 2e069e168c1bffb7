// npm run restore -- --from <folder>: fills an empty node from a backup.
import { join, resolve } from 'node:path'
import pg from 'pg'
import { keysOf } from './backup.ts'
import { migrateDatabase, migrationNames } from './migrate.ts'
import { ObjectFiles } from './node/content-store/object-files.ts'
import { writePrivateFile } from './node/private-file.ts'
import { StartError } from './node/start-error.ts'
import { copyContent, isEmptyPlace, objectsIn } from './serve/backup/content.ts'
import { copyFiles, makeEmptyFolder } from './serve/backup/files.ts'
import { BACKUP, checkKeys, type Manifest, readBackup } from './serve/backup/manifest.ts'
import { checkEmptyDatabase, restoreTables } from './serve/backup/tables.ts'
import { readOptions, refuseUsage } from './serve/command-line.ts'
import { claimDataFolder, DATA } from './serve/data-folder.ts'
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
 * @throws StartError for a place that is not empty, other keys, or a backup that was changed
 */
async function restore(settings: NodeSettings, source: string): Promise<Manifest> {
  const manifest = await readBackup(source)
  checkKeys(manifest.keys, keysOf(settings))
  if (!migrationNames().includes(manifest.migration))
    throw new StartError(
      `this release is older than the backup: it does not know the migration ${manifest.migration}`,
    )
  const folders = [...new Set([settings.dataFolder, process.env.TOOLS_DATA_DIR || settings.dataFolder])]
  const claims: Array<() => Promise<void>> = []
  for (const folder of folders) claims.push(await claimDataFolder(folder, null))
  const client = new pg.Client(settings.database)
  try {
    await client.connect()
    await restoreInto(settings, source, manifest, client, folders)
  } finally {
    await client.end().catch(() => {})
    for (const release of claims) await release()
  }
  return manifest
}

async function restoreInto(
  { dataFolder, database, content }: NodeSettings,
  source: string,
  manifest: Manifest,
  client: pg.Client,
  folders: string[],
): Promise<void> {
  for (const folder of folders) makeEmptyFolder(folder, ['control.sock'])
  const place = objectsIn(content, false)
  if (!(await isEmptyPlace(place))) throw new StartError('CONTENT is not empty')
  await checkEmptyDatabase(client)
  const until = manifest.migration
  await migrateDatabase({ DATABASE_URL: '', connection: database }, { until })
  await restoreTables(client, join(source, BACKUP.postgres), manifest)
  const copied = await copyContent(new ObjectFiles(join(source, BACKUP.content)), place)
  if (copied.objects !== manifest.content.objects)
    throw new StartError('CONTENT got fewer objects than the backup has')
  copyFiles(join(source, BACKUP.objects), join(dataFolder, DATA.objects))
  copyFiles(join(source, BACKUP.tools), join(folders.at(-1) ?? dataFolder, DATA.tools))
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
