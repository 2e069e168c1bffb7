// npm run dev: the whole gateway on this machine, in one command. `-- --fresh` begins with empty data, PORT moves it.
import { basename, join } from 'node:path'
import { buildScripts, TOOLS_CONFIGURATION } from './build.ts'
import { startEdge } from './local/edge.ts'
import { type LocalWorker, runLocalWorker } from './local/local-worker.ts'
import { type LocalSystem, runLocalSystem, shownPath } from './local-system.ts'
import { startSchedule } from './node/schedule.ts'
import { StartError } from './node/start-error.ts'
import { type RunningTools, startTools } from './node/tools-script.ts'
import { type RunningWorkerd, startWorkerd } from './node/workerd.ts'
import { readCrons, readRuntimeSettings } from './node/wrangler-settings.ts'
import { LOCAL_FOLDER, SERVICES_FOLDER } from './script-environment.ts'

const ROOT = join(import.meta.dirname, '..')

/** Set while the system starts. */
let gatewayWorker: LocalWorker | undefined

async function startGateway(system: LocalSystem): Promise<void> {
  const { port, workerPort, cleanUps } = system
  const worker = await startWorker(system)
  cleanUps.push(() => worker.stop())
  gatewayWorker = worker
  const edge = await startEdge(`http://127.0.0.1:${workerPort}`, port)
  cleanUps.push(edge.close)
}

function startWorker(system: LocalSystem): Promise<LocalWorker> {
  const { folder, workerPort, toolsPort, variables, urls, fail } = system
  const bundleDirectory = join(folder, 'bundle')
  return runLocalWorker({
    root: ROOT,
    build: async () => {
      await buildScripts(bundleDirectory)
    },
    start: async (onCrash) => {
      const tools = await startToolsOf(system, bundleDirectory)
      const gateway = await startWorkerd({
        ...readRuntimeSettings(join(ROOT, 'wrangler.toml')),
        bundleDirectory,
        folder: join(folder, 'workerd'),
        port: workerPort,
        bindings: variables,
        storageDirectory: join(folder, 'state'),
        buckets: { CONTENT: urls.contentStore },
        services: { TOOLS: `http://127.0.0.1:${toolsPort}` },
        logFile: join(folder, 'logs/worker.log'),
        scheduled: true,
        onCrash,
      })
      return reloadedTogether(gateway, tools)
    },
    report: (message, final) => {
      if (final) fail(message)
      else process.stderr.write(`headgate: ${message}\n`)
    },
  })
}

function startToolsOf(system: LocalSystem, bundleDirectory: string): Promise<RunningTools> {
  const { folder, toolsPort, cleanUps } = system
  const started = startTools({
    ...readRuntimeSettings(TOOLS_CONFIGURATION),
    bundleDirectory,
    port: toolsPort,
    storageDirectory: join(folder, 'tools-state'),
    logFile: join(folder, 'logs/tools.log'),
    report: (message) => process.stderr.write(`headgate: ${message}\n`),
  })
  cleanUps.push(async () => (await started.catch(() => null))?.stop())
  return started
}

/** The gateway's runtime, of which a rebuild also reloads the tools. */
const reloadedTogether = (gateway: RunningWorkerd, tools: RunningTools): RunningWorkerd =>
  Object.assign(Object.create(gateway) as RunningWorkerd, {
    reload: async () => {
      await tools.reload()
      await gateway.reload()
    },
  })

/** Lists the models as a caller before "ready" is printed: the call uses gateway, ledger and database. */
async function checkGateway(system: LocalSystem): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${system.port}/v1/models`, {
    headers: { authorization: `Bearer ${system.secrets.keys.owner}` },
    signal: AbortSignal.timeout(20_000),
  }).catch(() => null)
  await response?.body?.cancel()
  if (response?.ok) {
    system.cleanUps.push(startTriggers())
    return
  }
  const answer = response === null ? 'does not answer' : `answers ${response.status} to`
  throw new StartError(`the gateway ${answer} GET /v1/models; see ${shownPath(system, 'logs/worker.log')}`)
}

/** Triggers of wrangler.toml; the catalogues of integrations are listed at once, so that their tools are soon there. */
function startTriggers(): () => void {
  const crons = readCrons(join(ROOT, 'wrangler.toml'))
  return startSchedule(crons, {
    run: async (cron) => gatewayWorker?.runScheduled(cron),
    report: (line) => process.stderr.write(`headgate: ${line}\n`),
    atOnce: crons.filter((cron) => cron.startsWith('*/')),
  })
}

runLocalSystem({
  command: 'npm run dev',
  folder: LOCAL_FOLDER,
  kept: ['clients', basename(SERVICES_FOLDER)],
  takesPort: true,
  startGateway,
  checkGateway,
  announcement: (_, seconds) => `Headgate is ready after ${seconds} s`,
})
