// npm run serve: one node in production, with a PostgreSQL and a Redis of its own. docs/self-hosting.md has its settings.
// `-- --tools` runs the script of tools alone, for a container or unit with limits of its own.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { migrateDatabase, missingMigrations } from './migrate.ts'
import { StartError } from './node/start-error.ts'
import type { RunningTools } from './node/tools-script.ts'
import { BUNDLE_FOLDER } from './serve/bundle.ts'
import { readOptions } from './serve/command-line.ts'
import { claimDataFolder, type FolderOwner } from './serve/data-folder.ts'
import { type DatabaseLock, lockDatabase } from './serve/database-lock.ts'
import { checkInstallation, refuseUnfinishedRestore } from './serve/installation.ts'
import { log } from './serve/log.ts'
import { GatewayNode } from './serve/node.ts'
import {
  type NodeSettings,
  readNodeSettings,
  readToolsSettings,
  SettingsError,
  type ToolsSettings,
} from './serve/settings.ts'
import { startToolsOf } from './serve/tools.ts'

const USAGE = `usage: npm run serve [-- --tools]

Serves one node with a PostgreSQL and a Redis of its own, until SIGTERM.

  --tools     runs the script of tools alone, at TOOLS_PORT; the node reaches it at its TOOLS_URL
  -h, --help  this text

A node needs DATABASE_URL, REDIS_URL, DATA_DIR, CONTENT, BASE_URL, ADMIN_TOKEN, KEY_PEPPERS and VAULT_KEYS, the tools DATA_DIR.
docs/self-hosting.md has all settings.
`

/** Functions that end parts of the process, called in reverse order. */
const cleanUps: Array<() => unknown> = []

/** What a first signal does: it ends the process in order. */
let stop = async (): Promise<void> => {}
let abort = async (): Promise<void> => {}
let isStopping = false
/** When the first signal came, by `performance.now()`. */
let stoppingSince = 0
/** One Ctrl-C comes twice under npm: from the terminal, and from npm. */
const SAME_SIGNAL_MS = 1_000

async function serve(settings: NodeSettings): Promise<void> {
  const { dataFolder, stopLimitMs, database } = settings
  let lock: DatabaseLock | undefined
  const node = new GatewayNode(settings, log, async () => (lock === undefined ? 0 : countLive(lock)))
  cleanUps.push(
    await claimFor(dataFolder, { pause: () => node.pause(stopLimitMs), resume: () => node.resume() }),
  )
  abort = () => node.abort()
  const port = await node.listen()
  lock = await lockDatabase(database, () => fail(new StartError('another node has taken the database')))
  cleanUps.push(lock.release)
  await prepareDatabase(settings, lock)
  stop = () => node.stop(stopLimitMs)
  await node.open()
  if (!isStopping)
    log('info', 'ready', { host: settings.host, port, base_url: settings.baseUrl, ...node.pids() })
}

/** Claims the data folder. A process that cannot continue after a pause ends. */
const claimFor = (folder: string, { pause, resume }: FolderOwner) =>
  claimDataFolder(folder, {
    pause,
    resume: async () => {
      try {
        await resume()
      } catch (error) {
        fail(error)
        throw error
      }
    },
  })

async function countLive({ client }: DatabaseLock): Promise<number> {
  const { rows } = await client.query(
    `select count(*)::int as live from responses where status = 'in_progress'`,
  )
  return rows[0].live as number
}

async function prepareDatabase(settings: NodeSettings, { client }: DatabaseLock): Promise<void> {
  const address = { DATABASE_URL: settings.database.connectionString ?? '', connection: settings.database }
  await refuseUnfinishedRestore(client)
  if (settings.migrates) {
    const { applied } = await migrateDatabase(address)
    if (applied.length > 0) log('info', 'migrated', { applied })
  } else {
    const missing = await missingMigrations(address)
    if (missing.length > 0)
      throw new StartError(
        `the database lacks ${missing.length} migrations, and MIGRATE is off; run npm run migrate`,
      )
  }
  await checkInstallation(client, settings.dataFolder)
}

async function serveTools(settings: ToolsSettings): Promise<void> {
  const { dataFolder, host, port } = settings
  const start = () =>
    startToolsOf({
      ...settings,
      address: `${host}:${port}`,
      memoryLimitBytes: settings.toolsMemoryBytes,
      log,
    })
  let tools: RunningTools | null = null
  const pause = async (): Promise<void> => {
    if (tools === null) throw new StartError('it is starting')
    await tools.stop()
  }
  const resume = async (): Promise<void> => {
    tools = await start()
  }
  cleanUps.push(await claimFor(dataFolder, { pause, resume }))
  stop = async () => tools?.stop()
  abort = stop
  tools = await start()
  log('info', 'ready', { host, port, tools: tools.pid })
}

async function endAll(): Promise<void> {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
}

/** The first signal stops in order, one that comes a second later or more at once. */
function onSignal(signal: string): void {
  if (isStopping) {
    if (performance.now() - stoppingSince < SAME_SIGNAL_MS) return
    log('warn', 'aborting', { signal })
    void abort().finally(() => process.exit(1))
    return
  }
  isStopping = true
  stoppingSince = performance.now()
  log('info', 'stopping', { signal })
  stop()
    .then(endAll)
    .then(
      () => {
        log('info', 'stopped')
        process.exit(0)
      },
      (error: Error) => fail(error),
    )
}

let hasFailed = false

function fail(error: unknown): void {
  if (hasFailed) return
  hasFailed = true
  const reason = (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? ''
  if (error instanceof SettingsError)
    for (const problem of error.problems) log('error', 'setting', { reason: problem })
  else log('error', 'failed', { reason })
  abort()
    .then(endAll)
    .finally(() => process.exit(1))
}

async function main(): Promise<void> {
  const { tools } = readOptions(USAGE, { tools: { type: 'boolean' } })
  // What this process and those that it starts make belongs to this user alone.
  process.umask(0o077)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => onSignal(signal))
  const run = tools ? prepared(readToolsSettings, serveTools) : prepared(readNodeSettings, serve)
  await run()
}

/** Reads and checks everything before anything is started. */
function prepared<Settings>(
  readSettings: (environment: NodeJS.ProcessEnv) => Settings,
  start: (settings: Settings) => Promise<void>,
): () => Promise<void> {
  const settings = readSettings(process.env)
  if (!existsSync(join(BUNDLE_FOLDER, 'gateway.js')))
    throw new StartError('there is nothing to serve in dist; run npm run build')
  return () => start(settings)
}

main().catch(fail)
