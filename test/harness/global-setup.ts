import type { TestProject } from 'vitest/node'
import { buildBundle } from './bundle.ts'
import { type GatewayAddress, startGateway } from './start-gateway.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The gateway that all tests of the project share. */
    gateway: GatewayAddress
    /** Folder with the built Worker, for gateways that a test starts itself. */
    bundleDirectory: string
  }
}

const VARIABLES = {
  // Test files run side by side, some with bodies of 50 MB; how many of these fit at once is tested apart.
  BUFFER_LIMIT_BYTES: String(512 * 1024 * 1024),
  CORS_ORIGINS: 'https://chat.example, http://localhost:3000/',
}

let end: (() => Promise<void>) | undefined

/** Builds the Worker and starts one gateway with its local system, shared by every test file of the project. */
export async function setup(project: TestProject): Promise<void> {
  const bundle = await buildBundle()
  const gateway = await startGateway({ bundleDirectory: bundle.directory, variables: VARIABLES }).catch(
    (error: unknown) => {
      bundle.remove()
      throw error
    },
  )
  end = async () => {
    await gateway.stop()
    bundle.remove()
  }
  const { workerd: _workerd, tools: _tools, processes: _processes, ...rest } = gateway
  // Only plain data reaches the test processes.
  project.provide('gateway', JSON.parse(JSON.stringify(rest)) as GatewayAddress)
  project.provide('bundleDirectory', bundle.directory)
}

export async function teardown(): Promise<void> {
  await end?.()
}
