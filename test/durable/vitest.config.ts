import { join } from 'node:path'
import { cloudflareTest } from '@cloudflare/vitest-plugin'
import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'

/**
 * Each module is sent to the runtime as text with its source map, which takes longer than most tests. Maps of packages are most
 * of that text; nobody steps through those.
 */
const withoutLargeSourceMaps: Plugin = {
  name: 'without-large-source-maps',
  enforce: 'post',
  transform: (code, id) => (id.includes('/node_modules/') ? { code, map: { mappings: '' } } : undefined),
}

const key = (byte: number) => `test:${Buffer.alloc(32, byte).toString('base64')}`

export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  plugins: [
    withoutLargeSourceMaps,
    cloudflareTest(({ inject }) => ({
      main: './test/durable/worker.ts',
      miniflare: {
        compatibilityDate: '2026-10-23',
        durableObjects: {
          LEDGER: { className: 'Ledger', useSQLite: true },
          WORKSPACES: { className: 'WorkspaceObject', useSQLite: true },
          EVENT_LOG: { className: 'EventLogObject', useSQLite: true },
          SHARED_LOGS: { className: 'SharedLogsObject', useSQLite: true },
          RESPONSE_STREAMS: { className: 'ResponseStream', useSQLite: true },
          RESPONSE_POOLS: { className: 'ResponsePool', useSQLite: true },
          RESPONSE_SOCKETS: { className: 'ResponseSockets', useSQLite: true },
          CONNECTION_CREDENTIALS: { className: 'ConnectionCredentials', useSQLite: true },
          TOOL_RESPONSES: { className: 'ToolResponseStream', useSQLite: true },
          PATIENT_RESPONSES: { className: 'PatientResponseStream', useSQLite: true },
          COUNTING_POOLS: { className: 'CountingResponsePool', useSQLite: true },
          TOOL_POOLS: { className: 'ToolResponsePool', useSQLite: true },
          PATIENT_POOLS: { className: 'PatientResponsePool', useSQLite: true },
          SCRIPTED_RESPONSES: { className: 'ScriptedResponse', useSQLite: true },
        },
        r2Buckets: ['CONTENT'],
        // The script of tools has tests of its own; here it is not available.
        serviceBindings: { TOOLS: () => new Response(null, { status: 503 }) as never },
        bindings: {
          DATABASE_URL: 'postgres://local@localhost/headgate',
          DATABASE_FETCH_ENDPOINT: inject('databaseEndpoint'),
          UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9',
          UPSTASH_REDIS_REST_TOKEN: 'unused',
          KEY_PEPPERS: key(1),
          VAULT_KEYS: key(2),
          // `own`: the tests run on objects of one response each, as those of earlier releases.
          RESPONSE_OBJECTS: process.env.RESPONSE_OBJECTS ?? 'shared',
          // Most tests script a model after the response has begun.
          RESPONSE_COMMIT_MS: '0',
          // The tests flush by hand; an alarm in the middle of one would make it depend on the hour.
          LEDGER_FLUSH_MS: '3600000',
          // `test:faults` runs more of each: scripts/test.ts.
          LEDGER_SEEDS: process.env.LEDGER_SEEDS ?? '1',
          EVENT_LOG_SEEDS: process.env.EVENT_LOG_SEEDS ?? '1',
          RESPONSE_FAULT_RUNS: process.env.RESPONSE_FAULT_RUNS ?? '20',
        },
      },
    })),
  ],
  test: {
    globalSetup: './test/durable/global-setup.ts',
    include: ['test/durable/**/*.test.ts'],
    testTimeout: 30_000,
    maxWorkers: 2,
    // Files share a runtime and its modules: starting one for each took half of the time. A test has its own objects.
    isolate: false,
  },
})
