import { createHash } from 'node:crypto'
import { createReadStream, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import * as z from 'zod'
import { StartError } from '../../node/start-error.ts'

const digest = z.string().regex(/^[0-9a-f]{64}$/)
/** Relative to the folder of the backup; never out of it. */
const path = z.string().regex(/^(?!.*\.\.)[\w./-]+$/)

const manifest = z.strictObject({
  format: z.literal(1),
  created_at: z.iso.datetime(),
  /** Of the release that made it. */
  version: z.string(),
  /** Name of the newest migration of its database. */
  migration: z.string(),
  installation: z.uuid(),
  /** Digests of the keys by their ids: what is digested and sealed in the backup cannot be used without them. */
  keys: z.strictObject({
    KEY_PEPPERS: z.record(z.string(), z.string()),
    VAULT_KEYS: z.record(z.string(), z.string()),
  }),
  tables: z.array(
    z.strictObject({
      name: z.string(),
      columns: z.array(z.string()),
      rows: z.int(),
      /** Months that a table with partitions has rows of, by their first instant in UTC. */
      months: z.array(z.string()),
    }),
  ),
  sequences: z.array(z.strictObject({ name: z.string(), value: z.string() })),
  content: z.strictObject({ objects: z.int(), bytes: z.int() }),
  files: z.record(path, digest),
})

export type Manifest = z.infer<typeof manifest>

const FILE = 'manifest.json'

/** Folders and files of a backup. */
export const BACKUP = {
  manifest: FILE,
  postgres: 'postgres',
  objects: 'objects',
  tools: 'tools',
  content: 'content',
  queue: 'queue.jsonl',
}

/** SHA-256 of every file of a folder but the manifest, by the path in it. */
export async function digestsOf(folder: string): Promise<Record<string, string>> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((name) => name !== FILE)
    .sort()
  const digests: Record<string, string> = {}
  for (const name of names) {
    const hash = createHash('sha256')
    await pipeline(createReadStream(join(folder, name)), hash)
    digests[name] = hash.digest('hex')
  }
  return digests
}

/**
 * Reads the manifest of a backup and compares every file with it.
 * @throws StartError for a folder that is no complete backup, or of which a file was changed, removed or added
 */
export async function readBackup(folder: string): Promise<Manifest> {
  const file = join(folder, FILE)
  if (!existsSync(file)) throw new StartError(`${folder} has no ${FILE}: it is no complete backup`)
  const parsed = manifest.safeParse(jsonOf(readFileSync(file, 'utf8')))
  if (!parsed.success) throw new StartError(`${file} is not the manifest of a backup that this release reads`)
  const found = await digestsOf(folder)
  const { files } = parsed.data
  const wrong = [...new Set([...Object.keys(files), ...Object.keys(found)])].find(
    (name) => files[name] !== found[name],
  )
  if (wrong !== undefined) throw new StartError(`${wrong} is not as the backup was made`)
  return parsed.data
}

/**
 * Compares the keys that a backup needs with those that are set. More may be set.
 * @throws StartError naming the variable and the id of a key that is missing or another one
 */
export function checkKeys(needed: Manifest['keys'], present: Manifest['keys']): void {
  for (const variable of ['KEY_PEPPERS', 'VAULT_KEYS'] as const) {
    for (const [id, print] of Object.entries(needed[variable])) {
      const own = present[variable][id]
      if (own === undefined) throw new StartError(`${variable} lacks the key ${id} of the backup`)
      if (own !== print) throw new StartError(`the key ${id} of ${variable} is not that of the backup`)
    }
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
