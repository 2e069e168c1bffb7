import { afterEach, beforeEach, describe, it } from 'vitest'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { installLibrary } from './support/client-install.ts'
import { CLIENT_TEST_LIMIT_MS } from './support/client-run.ts'
import { runLibrary } from './support/library-run.ts'
import { expectNotesRead, NOTE_MODELS, prepareNoteTask, THINKING_MODEL } from './support/note-task.ts'

const library = await installLibrary('langchain', {
  '@langchain/openai': '1.6.0',
  '@langchain/core': '1.4.0',
  zod: '4.6.7',
})

/** It sends everything again in both ways, and without sealed reasoning in the first. */
const WAYS = [
  { name: 'stored', options: {} },
  {
    name: 'not stored',
    options: { zdrEnabled: true, callOptions: { include: ['reasoning.encrypted_content'] } },
  },
]
const RUNS = [...NOTE_MODELS, THINKING_MODEL].flatMap((model) =>
  WAYS.flatMap((way) => [true, false].map((streamed) => ({ ...model, ...way, streamed }))),
)

let bench: Bench
beforeEach(async () => {
  bench = await setUpBench()
})
afterEach(() => bench.clear())

describe.skipIf('missing' in library)('LangChain 1', { timeout: CLIENT_TEST_LIMIT_MS }, () => {
  it.each(RUNS)('reads notes on $model, $name, streamed: $streamed', async (run) => {
    const { model, streamed, thinks, options } = run
    const task = await prepareNoteTask(run)
    const outcome = await runLibrary(bench, library, 'langchain.mjs', {
      model,
      prompt: task.prompt,
      streamed,
      options: { ...options, ...(thinks && { reasoning: { effort: 'high' } }) },
    })
    await expectNotesRead(bench, task, outcome)
  })
})
