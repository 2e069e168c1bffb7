import { defineConfig } from 'vitest/config'

const SHARED_GATEWAY = './test/harness/global-setup.ts'
const BUNDLE = './test/harness/bundle-setup.ts'

const project = (
  name: string,
  include: string,
  more: { globalSetup?: string; testTimeout?: number; isolate?: boolean } = {},
) => ({
  extends: true as const,
  test: { name, include: [include], ...more },
})

// Files that share the modules of a worker save a sixth of the time; what a test stubs, it puts back itself.
const SHARED_MODULES = { isolate: false }

// The Durable Objects' tests run inside the runtime, under test/durable/vitest.config.ts.
export default defineConfig({
  test: {
    passWithNoTests: true,
    // Two workers: tests of time behave the same on a small machine.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    projects: [
      project('unit', 'test/unit/**/*.test.ts', SHARED_MODULES),
      project('local', 'test/local/**/*.test.ts', SHARED_MODULES),
      project('http', 'test/http/**/*.test.ts', { ...SHARED_MODULES, globalSetup: SHARED_GATEWAY }),
      project('dlp', 'test/dlp/**/*.test.ts', { testTimeout: 300_000 }),
      project('faults', 'test/faults/**/*.test.ts', { globalSetup: BUNDLE, testTimeout: 300_000 }),
      project('clients', 'test/clients/**/*.test.ts', { globalSetup: SHARED_GATEWAY, testTimeout: 60_000 }),
      project('browser', 'test/browser/**/*.test.ts', { globalSetup: SHARED_GATEWAY, testTimeout: 120_000 }),
    ],
  },
})
