import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Children } from '../local/children.ts'
import { inheritedEnvironment } from '../node/inherited-environment.ts'
import { StartError } from '../node/start-error.ts'
import type { Call, Scenario } from './scenarios.ts'

/** Another gateway in a process of its own, which governs nothing. */
export interface RunningPortkey {
  port: number
  pid: number
}

const PACKAGE = 'node_modules/@portkey-ai/gateway'
const SERVER = 'build/start-server.js'
const START_LIMIT_MS = 15_000

/**
 * The server of an installed `@portkey-ai/gateway`.
 *
 * @param given the package's folder, or the one that it was installed in; none for a package installed in this repository
 * @param root of this repository
 * @returns its path; null when nothing was given and nothing is installed
 * @throws StartError when the folder that was given has none
 */
export function findPortkey(given: string | undefined, root: string): string | null {
  const folders = given === undefined ? [join(root, PACKAGE)] : [given, join(given, PACKAGE)]
  const found = folders.map((folder) => join(folder, SERVER)).find(existsSync)
  if (found === undefined && given !== undefined) throw new StartError(`there is no ${PACKAGE} in ${given}`)
  return found ?? null
}

/** Starts Portkey and waits until it answers. @throws StartError when it does not */
export async function startPortkey(
  children: Children,
  server: string,
  port: number,
): Promise<RunningPortkey> {
  const child = await children.spawn({
    name: 'portkey',
    command: process.execPath,
    arguments: [server, '--headless', `--port=${port}`],
    environment: { ...inheritedEnvironment(), NODE_ENV: 'production' },
  })
  const end = performance.now() + START_LIMIT_MS
  while (performance.now() < end && child.alive()) {
    const answered = await fetch(`http://127.0.0.1:${port}/`).then(
      (response) => response.arrayBuffer().then(() => true),
      () => false,
    )
    if (answered) return { port, pid: child.pid }
    await setTimeout(100)
  }
  throw new StartError('portkey was not ready in time')
}

/**
 * The requests to Portkey: those to the gateway, with the address of the upstream. Some may fail; that shows in the run.
 *
 * @param upstream URL of the model upstream
 */
export function portkeyCall({ call, upstream: protocol }: Scenario, upstream: string): Call {
  const { authorization = '', ...headers } = call.headers
  const config = {
    provider: protocol === 'chat' ? 'openai' : 'anthropic',
    custom_host: `${upstream}/v1`,
    api_key: authorization.replace('Bearer ', ''),
  }
  return { ...call, headers: { ...headers, 'x-portkey-config': JSON.stringify(config) } }
}
