import type { TestProject } from 'vitest/node'
import { buildBundle } from './bundle.ts'

let remove: (() => void) | undefined

/** For projects whose tests start gateways of their own: builds the Worker once for all of them. */
export async function setup(project: TestProject): Promise<void> {
  const bundle = await buildBundle()
  remove = bundle.remove
  project.provide('bundleDirectory', bundle.directory)
}

export function teardown(): void {
  remove?.()
}
