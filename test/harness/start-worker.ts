import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { startHostForwarder } from '../../scripts/node/host-forwarder.ts'
import { freePorts } from '../../scripts/node/ports.ts'
import { startWorkerd } from '../../scripts/node/workerd.ts'
import { readRuntimeSettings } from '../../scripts/node/wrangler-settings.ts'
import { gateway } from './gateway.ts'
import { type GatewayAddress, WRANGLER_FILE } from './start-gateway.ts'

/** A Worker with variables of its own over the stand-ins of the shared gateway. */
export interface StartedWorker extends GatewayAddress {
  stop(): Promise<void>
}

/**
 * Starts the Worker with other variables over the shared Postgres, Redis, QStash, upstream and content store. It takes
 * a tenth of the time of `startGateway`. Its Durable Objects are its own, and an audit chain has one writer. So an
 * organization may only be called through the Worker that created it, and models and providers may only be changed
 * through the shared gateway.
 * @param toolsUrl of a script of tools of its own, for tests that stop it.
 */
export async function startWorker(
  variables: Record<string, string>,
  { toolsUrl = gateway().toolsUrl } = {},
): Promise<StartedWorker> {
  const shared = gateway()
  const folder = mkdtempSync(join(tmpdir(), 'headgate-test-worker-'))
  const [port = 0] = await freePorts(1)
  const own = {
    ...shared.variables,
    ...variables,
    BASE_URL: `http://127.0.0.1:${port}`,
  }
  const workerd = await startWorkerd({
    bundleDirectory: inject('bundleDirectory'),
    port,
    bindings: own,
    buckets: { CONTENT: shared.standIns.contentStore },
    services: { TOOLS: toolsUrl },
    logFile: join(folder, 'workerd.log'),
    ...readRuntimeSettings(WRANGLER_FILE),
  })
  const forwarder = await startHostForwarder({ port: 0, targetPort: port, host: shared.llmHost })
  return {
    ...shared,
    baseUrl: workerd.url,
    toolsUrl,
    llmUrl: forwarder.url,
    variables: own,
    logFolder: folder,
    pids: { ...shared.pids, workerd: workerd.pid },
    stop: async () => {
      await forwarder.close()
      await workerd.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
