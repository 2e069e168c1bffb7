import { defineConfig } from 'vitest/config'

const SHARED_GATEWAY = './test/harness/global-setup.ts'
const CONTRACT = './test/harness/contract-setup.ts'
const BUNDLE = './test/harness/bundle-setup.ts'

interface ProjectOptions {
  globalSetup?: string
  testTimeout?: number
  isolate?: boolean
  exclude?: string[]
  env?: Record<string, string>
  setupFiles?: string
  expect?: { poll: { timeout: number } }
}

const project = (name: string, include: string | string[], options: ProjectOptions = {}) => ({
  extends: true as const,
  test: { name, include: [include].flat(), ...options },
})

// Files that share the modules of a worker save a sixth of the time; what a test stubs, it puts back itself.
const SHARED_MODULES = { isolate: false }

/** Unit tests with random texts, of which `test:dlp` runs more. */
const DLP_CAMPAIGNS = ['stream-hold', 'counted-bytes'].map((name) => `test/unit/dlp/${name}.test.ts`)

/** Unit tests of properties with random inputs, of which `test:faults` tries more. */
const PROPERTIES = [
  'responses/emitter-properties',
  'gateway/translation/events/fence-stripper',
  'gateway/translation/events/round-trips',
  'gateway/translation/requests/request-properties',
  'gateway/translation/requests/responses-properties',
  'dlp/dictionary',
  'ledger/account',
  'lib/json-scan',
].map((name) => `test/unit/${name}.test.ts`)

/**
 * Unit tests that count steps (`test/harness/counted-steps.ts`). They have a worker of their own: code whose steps were once
 * counted runs at half its speed from then on.
 */
const COUNTED = [
  'gateway/token-estimate-steps',
  'gateway/translation/events/fence-stripper',
  'gateway/translation/requests/bounded-cost',
  'dlp/steps',
  'dlp/slices',
  'readers',
  'responses/redaction',
  'workspace/steps',
].map((name) => `test/unit/${name}.test.ts`)

// The Durable Objects' tests run inside the runtime, under test/durable/vitest.config.ts.
export default defineConfig({
  test: {
    passWithNoTests: true,
    // Tests wait for local systems about as long as they compute.
    maxWorkers: 3,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    projects: [
      project('unit', 'test/unit/**/*.test.ts', { ...SHARED_MODULES, exclude: COUNTED }),
      project('steps', COUNTED, SHARED_MODULES),
      project('local', 'test/local/**/*.test.ts', SHARED_MODULES),
      project('http', 'test/http/**/*.test.ts', {
        ...SHARED_MODULES,
        globalSetup: SHARED_GATEWAY,
        setupFiles: CONTRACT,
      }),
      project('dlp', ['test/dlp/**/*.test.ts', ...DLP_CAMPAIGNS], {
        testTimeout: 300_000,
        env: { FUZZ_ROUNDS: process.env.FUZZ_ROUNDS ?? '40' },
      }),
      project('faults', ['test/faults/**/*.test.ts', ...PROPERTIES], {
        globalSetup: BUNDLE,
        testTimeout: 300_000,
        env: { PROPERTY_RUNS: process.env.PROPERTY_RUNS ?? '1000' },
      }),
      project('clients', 'test/clients/**/*.test.ts', { globalSetup: SHARED_GATEWAY, testTimeout: 60_000 }),
      project('browser', 'test/browser/**/*.test.ts', {
        globalSetup: SHARED_GATEWAY,
        testTimeout: 120_000,
        expect: { poll: { timeout: 15_000 } },
      }),
    ],
  },
})
