import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { installLibrary } from './support/client-install.ts'
import { CLIENT_TEST_LIMIT_MS } from './support/client-run.ts'
import { modelCalls } from './support/governed-calls.ts'
import { runLibrary } from './support/library-run.ts'
import { expectNotesRead, NOTE_MODELS, prepareNoteTask, THINKING_MODEL } from './support/note-task.ts'

const library = await installLibrary('ai-sdk', { ai: '7.0.173', '@ai-sdk/openai': '4.0.118', zod: '4.6.7' })

/**
 * With stored responses, the SDK refers to earlier items. Otherwise it sends them again, with sealed reasoning on
 * request.
 */
const WAYS = [
  { name: 'stored', openai: {}, referring: true },
  {
    name: 'not stored',
    openai: { store: false, include: ['reasoning.encrypted_content'] },
    referring: false,
  },
] as const
const RUNS = [...NOTE_MODELS, THINKING_MODEL].flatMap((model) =>
  WAYS.flatMap((way) => [true, false].map((streamed) => ({ ...model, ...way, streamed }))),
)

let bench: Bench
beforeEach(async () => {
  bench = await setUpBench()
})
afterEach(() => bench.clear())

describe.skipIf('missing' in library)('AI SDK 7', { timeout: CLIENT_TEST_LIMIT_MS }, () => {
  it.each(RUNS)('reads notes on $model, $name, streamed: $streamed', async (run) => {
    const task = await prepareNoteTask(run)
    const outcome = await runLibrary(bench, library, 'ai-sdk.mjs', {
      model: run.model,
      prompt: task.prompt,
      streamed: run.streamed,
      options: {
        providerOptions: {
          // The SDK does not know the model, so an option says that it reasons.
          openai: { ...run.openai, ...(run.thinks && { forceReasoning: true, reasoningEffort: 'high' }) },
        },
      },
    })
    await expectNotesRead(bench, task, outcome)
    const last = modelCalls(bench).map(({ body }) => body)[2]
    expect(last?.includes('"item_reference"')).toBe(run.referring)
  })
})
