import { cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { addKey } from '../harness/tenant.ts'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { installLibrary } from './support/client-install.ts'
import { CLIENT_TEST_LIMIT_MS, runClient } from './support/client-run.ts'
import { NOTE_MODELS } from './support/note-task.ts'

// The public compliance tests of Open Responses (https://www.openresponses.org/compliance). They are no part of this
// repository: OPEN_RESPONSES_SUITE names a folder that has them.

const suite = process.env.OPEN_RESPONSES_SUITE
if (suite === undefined) process.stderr.write('SKIPPED: OPEN_RESPONSES_SUITE is not set\n')
// It is written for Bun, which runs TypeScript and finds files without their extension.
const library =
  suite === undefined
    ? { missing: 'OPEN_RESPONSES_SUITE is not set' }
    : await installLibrary('open-responses-suite', { tsx: '4.23.15', zod: '3.25.76' })

const TESTS = [
  'assistant-phase',
  'basic-response',
  'compact-missing-model',
  'compact-response',
  'image-input',
  'multi-turn',
  'response-output-phase-schema',
  'streaming-response',
  'system-prompt',
  'tool-calling',
  'websocket-compact-new-chain',
  'websocket-continuation',
  'websocket-failed-continuation-evicts-cache',
  'websocket-previous-response-not-found',
  'websocket-reconnect-store-false-recovery',
  'websocket-response',
  'websocket-sequential-responses',
]

interface Report {
  results: Array<{ id: string; status: string }>
}

/** Runs the suite in a copy beside the packages that it imports. @throws with the end of its report if a test fails. */
async function runSuite(bench: Bench, folder: string, model: string): Promise<Report> {
  if ('missing' in library) throw new Error(library.missing)
  for (const part of ['bin', 'src']) {
    cpSync(join(folder, part), join(bench.folder, part), { recursive: true })
  }
  symlinkSync(library.modules, join(bench.folder, 'node_modules'))
  const { base, userId } = bench.tenant
  const { key } = await addKey(gateway(), base, userId, { compatibility: 'open_responses' })
  const options = ['--base-url', `${gateway().baseUrl}/v1`, '--model', model, '--filter', TESTS.join()]
  const { stdout } = await runClient({
    program: process.execPath,
    arguments: ['--import', 'tsx', 'bin/compliance-test.ts', ...options, '--json'],
    environment: { ...bench.environment, OPENRESPONSES_API_KEY: key },
    folder: bench.folder,
  })
  return JSON.parse(stdout) as Report
}

let bench: Bench
beforeEach(async () => {
  bench = await setUpBench()
})
afterEach(() => bench.clear())

describe.skipIf('missing' in library)(
  'the suite of Open Responses',
  { timeout: CLIENT_TEST_LIMIT_MS },
  () => {
    it.each(NOTE_MODELS)('passes on $model', async ({ model }) => {
      const { results } = await runSuite(bench, suite ?? '', model)
      expect(results.map(({ id, status }) => [id, status]).sort()).toEqual(TESTS.map((id) => [id, 'passed']))
    })
  },
)
