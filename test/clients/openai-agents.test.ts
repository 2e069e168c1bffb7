import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CHAT_MODEL } from '../harness/sdk-clients.ts'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { installLibrary } from './support/client-install.ts'
import { CLIENT_TEST_LIMIT_MS } from './support/client-run.ts'
import { runLibrary } from './support/library-run.ts'
import { expectNotesRead, NOTE_MODELS, prepareNoteTask, THINKING_MODEL } from './support/note-task.ts'

const library = await installLibrary('openai-agents', {
  '@openai/agents': '0.20.0',
  openai: '7.55.0',
  zod: '4.6.7',
})

const OPEN_RESPONSES = { 'x-headgate-compatibility': 'open-responses' }
const WAYS = [
  { name: 'stored', options: {} },
  {
    name: 'not stored',
    options: { store: false, providerData: { include: ['reasoning.encrypted_content'] } },
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

describe.skipIf('missing' in library)('OpenAI Agents SDK 0.20', { timeout: CLIENT_TEST_LIMIT_MS }, () => {
  it.each(RUNS)('reads notes on $model, $name, streamed: $streamed', async (run) => {
    const { model, streamed, thinks, options } = run
    const task = await prepareNoteTask(run)
    const outcome = await runLibrary(bench, library, 'openai-agents.mjs', {
      model,
      prompt: task.prompt,
      streamed,
      headers: OPEN_RESPONSES,
      options: { ...options, ...(thinks && { reasoning: { effort: 'high' } }) },
    })
    await expectNotesRead(bench, task, outcome)
  })

  it('gives up at a call without the header of Open Responses', async () => {
    const { prompt } = await prepareNoteTask(NOTE_MODELS[0])
    const task = { model: CHAT_MODEL, prompt, streamed: false }
    await expect(runLibrary(bench, library, 'openai-agents.mjs', task)).rejects.toThrow('response.incomplete')
  })
})
