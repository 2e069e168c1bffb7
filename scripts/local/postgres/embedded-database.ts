import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'

/** Folder of databases that serve as templates for later runs; safe to delete. */
export const CACHE_FOLDER = join(import.meta.dirname, '../../../node_modules/.cache/headgate')

/**
 * Opens embedded Postgres on a folder, or in memory.
 *
 * Making an empty database costs seconds of processor time, unpacking one a fraction of that. So the first database
 * becomes the template of later ones.
 *
 * @param folder the data folder, created if it is missing or empty, or `memory`
 * @param cacheFolder folder of the template
 * @throws whatever PGlite throws if the folder holds no usable database
 */
export async function openEmbeddedDatabase(folder: string, cacheFolder = CACHE_FOLDER): Promise<PGlite> {
  const template = join(cacheFolder, `pglite-${embeddedVersion()}.tar`)
  if (folder === 'memory') return createDatabase(undefined, template)
  // A process that was killed while it made the folder has left a part of a database without data.
  const incomplete = `${folder}.incomplete`
  if (existsSync(incomplete)) rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  if (readdirSync(folder).length > 0) return PGlite.create({ dataDir: folder })
  writeFileSync(incomplete, '')
  const database = await createDatabase(folder, template)
  rmSync(incomplete)
  return database
}

async function createDatabase(folder: string | undefined, template: string): Promise<PGlite> {
  const location = folder === undefined ? {} : { dataDir: folder }
  const packed = readTemplate(template)
  if (packed !== undefined) {
    try {
      return await PGlite.create({ ...location, loadDataDir: new Blob([packed]) })
    } catch {
      // A damaged template is removed and made again below.
      rmSync(template, { force: true })
      if (folder !== undefined)
        for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
    }
  }
  const database = await PGlite.create(location)
  await keepTemplate(database, template)
  return database
}

/** Opens a database in memory that begins with the contents of one that `packDatabase` wrote. @throws if there is none */
export const openPackedDatabase = (path: string): Promise<PGlite> =>
  PGlite.create({ loadDataDir: new Blob([readFileSync(path)]) })

/** A template fits the version of PGlite that made it. */
export function embeddedVersion(): string {
  const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite')
  return (JSON.parse(readFileSync(join(dirname(entry), '../package.json'), 'utf8')) as { version: string })
    .version
}

function readTemplate(path: string): Buffer<ArrayBuffer> | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}

/** A folder that is not writable gets no template. */
async function keepTemplate(database: PGlite, path: string): Promise<void> {
  try {
    await packDatabase(database, path)
  } catch {
    return
  }
}

/** Writes a database into a file. It is renamed into place, so that another process never reads half of it. */
export async function packDatabase(database: PGlite, path: string): Promise<void> {
  const packed = await database.dumpDataDir('none')
  mkdirSync(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}.new`
  writeFileSync(temporary, Buffer.from(await packed.arrayBuffer()))
  renameSync(temporary, path)
}
