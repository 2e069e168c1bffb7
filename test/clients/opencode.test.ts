import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { CHAT_MODEL, MESSAGES_MODEL } from '../harness/sdk-clients.ts'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { installClient } from './support/client-install.ts'
import { CLIENT_TEST_LIMIT_MS, runClient } from './support/client-run.ts'
import { bodyOf, expectRecorded, modelCalls, upstreamCalls } from './support/governed-calls.ts'
import { prepareToolTask, TOOL_TURN_USAGE } from './support/tool-task.ts'
import { expectTranslated } from './support/translated-calls.ts'

const client = await installClient({
  name: 'opencode',
  npm: 'opencode-ai',
  version: '1.18.33',
  // The baseline build runs on every processor of its kind.
  programs: ['-baseline', '', '-baseline-musl', '-musl'].map(
    (variant) => `opencode-${process.platform}-${process.arch}${variant}/bin/opencode`,
  ),
})
const skipped = 'missing' in client

/** Its ways to talk to the gateway, each on the two models: bytes pass to one of the same protocol. */
const WAYS = [
  {
    way: 'its OpenAI-compatible provider',
    provider: 'headgate',
    protocol: 'chat',
    path: '/v1/chat/completions',
    header: 'authorization',
    scheme: 'Bearer ',
  },
  {
    way: 'its Anthropic provider',
    provider: 'anthropic',
    protocol: 'messages',
    path: '/v1/messages',
    header: 'x-api-key',
    scheme: '',
  },
  {
    way: 'its OpenAI provider',
    provider: 'openai',
    protocol: 'responses',
    path: '/v1/responses',
    header: 'authorization',
    scheme: 'Bearer ',
  },
] as const
const RUNS = WAYS.flatMap((way) => [
  { ...way, model: CHAT_MODEL, upstream: 'chat' as const },
  { ...way, model: MESSAGES_MODEL, upstream: 'messages' as const },
])

let bench: Bench
beforeEach(async () => {
  bench = await setUpBench()
})
afterEach(() => bench.clear())

/** The configuration that a user would write, without features that contact other hosts. */
function configuration({ provider, model }: (typeof RUNS)[number]): string {
  const options = { baseURL: `${bench.proxy.url}/v1`, apiKey: bench.tenant.key }
  return JSON.stringify({
    autoupdate: false,
    share: 'disabled',
    enabled_providers: [provider],
    permission: { '*': 'allow' },
    agent: { title: { disable: true } },
    provider: {
      [provider]: {
        ...(provider === 'headgate' && { npm: '@ai-sdk/openai-compatible', name: 'Headgate' }),
        options,
        models: { [model]: { name: model } },
      },
    },
  })
}

describe.skipIf(skipped)('opencode 1.18', { timeout: CLIENT_TEST_LIMIT_MS }, () => {
  it.each(RUNS)('completes a task with a tool call through $way on $model', async (way) => {
    const task = await prepareToolTask(
      gateway(),
      way.upstream,
      { name: 'read', pathArgument: 'filePath' },
      bench.folder,
    )
    const [{ stdout }] = await Promise.all([
      runClient({
        program: 'program' in client ? client.program : '',
        arguments: ['run', '--model', `${way.provider}/${way.model}`, task.prompt],
        environment: {
          ...bench.environment,
          OPENCODE_CONFIG_CONTENT: configuration(way),
          OPENCODE_DISABLE_MODELS_FETCH: '1',
          OPENCODE_DISABLE_AUTOUPDATE: '1',
          OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
          OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        },
        folder: bench.folder,
      }),
      task.handOver(),
    ])
    expect(stdout).toContain(task.secretWord)

    const calls = modelCalls(bench)
    expect(calls.map(({ path, status }) => [path, status])).toEqual([
      [way.path, 200],
      [way.path, 200],
    ])
    for (const { headers } of calls) {
      expect(headers[way.header] === way.scheme + bench.tenant.key).toBe(true)
    }
    const seen = await upstreamCalls(bench, task.prompt)
    if (way.protocol === way.upstream) expect(seen.map(bodyOf)).toEqual(calls.map(bodyOf))
    else expectTranslated(seen, way.upstream, task.secretWord)
    const usages = await expectRecorded(bench)
    expect(usages).toEqual([
      { provenance: 'reported', ...TOOL_TURN_USAGE },
      { provenance: 'reported', input: expect.any(Number), output: expect.any(Number) },
    ])
    expect(usages[1]?.output).toBeGreaterThan(0)
  })
})
