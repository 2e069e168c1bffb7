import { join } from 'node:path'
import { type RunningTools, startTools } from '../node/tools-script.ts'
import { readRuntimeSettings } from '../node/wrangler-settings.ts'
import { BUNDLE_FOLDER, TOOLS_CONFIGURATION } from './bundle.ts'
import { DATA } from './data-folder.ts'
import { type Log, logOutput } from './log.ts'

/** Runs the script of tools, alone or as part of a node. @throws StartError */
export function startToolsOf(options: {
  dataFolder: string
  /** As workerd takes it. */
  address: string
  memoryLimitBytes: number
  log: Log
}): Promise<RunningTools> {
  const { dataFolder, address, memoryLimitBytes, log } = options
  return startTools({
    ...readRuntimeSettings(TOOLS_CONFIGURATION),
    bundleDirectory: BUNDLE_FOLDER,
    folder: join(dataFolder, DATA.run, 'tools'),
    address,
    storageDirectory: join(dataFolder, DATA.tools),
    memoryLimitBytes,
    onLine: (line) => logOutput('tools', line),
    report: (reason, event) =>
      log(event === 'process_started_again' ? 'info' : 'error', event, { process: 'tools', reason }),
  })
}
