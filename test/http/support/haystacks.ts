import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from '../../harness/gateway.ts'
import type { StartedGateway } from '../../harness/start-gateway.ts'

/** Everything that a gateway has kept or said somewhere, by the name of the place. */
export async function haystacks(address: StartedGateway): Promise<Map<string, Buffer>> {
  const upstream = await fetch(`${address.standIns.modelUpstream}/control/requests`)
  return new Map([
    ['Postgres', Buffer.from(await dumpPostgres(address))],
    ['Redis', Buffer.from(await dumpRedis(address))],
    ['the recording of the upstream', Buffer.from(await upstream.arrayBuffer())],
    ...files(address),
  ])
}

/** Logs of every process, the files of the Durable Objects, and those of the content store. */
export function files(address: StartedGateway): Map<string, Buffer> {
  return new Map([
    ...readFolder('logs', address.logFolder),
    ...readFolder('Durable Objects', address.workerd.storageDirectory),
    ...readFolder('content store', join(address.logFolder, '../content')),
  ])
}

function readFolder(name: string, folder: string): Array<[string, Buffer]> {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => [`${name}: ${entry.name}`, contentsOf(join(entry.parentPath, entry.name))])
}

/** An object that is evicted meanwhile takes the journals of its database with it, once their contents are in that. */
function contentsOf(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

/** Every row of every table, as text. */
async function dumpPostgres(address: StartedGateway): Promise<string> {
  const tables = await query(
    address,
    "select table_schema as schema, table_name as name from information_schema.tables where table_type = 'BASE TABLE'",
  )
  const dumps: string[] = []
  for (const { schema, name } of tables) {
    if (schema === 'pg_catalog' || schema === 'information_schema') continue
    const rows = await query(address, `select t::text as text from "${schema}"."${name}" as t`)
    dumps.push(`${name}:`, ...rows.map(({ text }) => String(text)))
  }
  return dumps.join('\n')
}

const READ_COMMANDS: Record<string, (key: string) => string[]> = {
  string: (key) => ['GET', key],
  hash: (key) => ['HGETALL', key],
  list: (key) => ['LRANGE', key, '0', '-1'],
  set: (key) => ['SMEMBERS', key],
  zset: (key) => ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
}

async function dumpRedis(address: StartedGateway): Promise<string> {
  const run = async (...command: string[]): Promise<unknown> => {
    const response = await fetch(address.standIns.redis, {
      method: 'POST',
      headers: { authorization: `Bearer ${address.variables.UPSTASH_REDIS_REST_TOKEN}` },
      body: JSON.stringify(command),
    })
    const { result, error } = (await response.json()) as { result?: unknown; error?: string }
    if (error !== undefined) throw new Error(`${command[0]}: ${error}`)
    return result
  }
  const dumps: string[] = []
  for (const key of (await run('KEYS', '*')) as string[]) {
    const type = String(await run('TYPE', key))
    const command = READ_COMMANDS[type]
    if (command === undefined) throw new Error(`no command reads a ${type}`)
    dumps.push(`${key}: ${JSON.stringify(await run(...command(key)))}`)
  }
  return dumps.join('\n')
}
