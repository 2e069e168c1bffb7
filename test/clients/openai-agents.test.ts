import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CHAT_MODEL } from '../harness/sdk-clients.ts'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { installLibrary } from './support/client-install.ts'
import { CLIENT_TEST_LIMIT_MS } from './support/client-run.ts'
import { bodyOf, modelCalls, upstreamCalls } from './support/governed-calls.ts'
import { runLibrary } from './support/library-run.ts'
import {
  expectNotesRead,
  NOTE_MODELS,
  noteConversation,
  prepareNoteTask,
  THINKING_MODEL,
} from './support/note-task.ts'
import { type Told, toldConversation } from './support/told-conversation.ts'

const library = await installLibrary('openai-agents', {
  '@openai/agents': '0.20.0',
  openai: '7.55.0',
  zod: '4.6.7',
})

const PLAIN = { headers: { 'x-headgate-compatibility': 'headgate' } }
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

const CONTINUED = NOTE_MODELS.flatMap((model) => [true, false].map((streamed) => ({ ...model, streamed })))

/** Numbers the calls of several conversations in a row. */
function renumbered(told: readonly Told[]): Told[] {
  let calls = 0
  let begun = 0
  return told.map(([kind, ...rest]): Told => {
    if (kind === 'user') begun = calls
    if (kind !== 'call' && kind !== 'result') return [kind, ...rest] as Told
    const number = begun + Number(rest[0])
    calls = Math.max(calls, number + 1)
    return [kind, number, ...rest.slice(1)] as Told
  })
}

let bench: Bench
beforeEach(async () => {
  bench = await setUpBench({ key: { compatibility: 'open_responses' } })
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
      options: { ...options, ...(thinks && { reasoning: { effort: 'high' } }) },
    })
    await expectNotesRead(bench, task, outcome)
  })

  it.each(CONTINUED)('continues a response by its id on $model, streamed: $streamed', async (run) => {
    const { model, streamed } = run
    const [first, next] = [await prepareNoteTask(run), await prepareNoteTask(run)]
    const task = { model, streamed, prompt: first.prompt, continuation: next.prompt }
    const outcome = await runLibrary(bench, library, 'openai-agents.mjs', task)
    expect(outcome).toMatchObject({ text: expect.stringMatching(/Three notes are read\.$/), steps: 3 })
    const answers = modelCalls(bench).map(({ answer }) => /"id":"(resp_[^"]+)"/.exec(answer)?.[1])
    const sent = modelCalls(bench).map(bodyOf)
    // The second run sends new items only, each time after the response before.
    expect(sent.slice(3).map(({ previous_response_id: id }) => id)).toEqual(answers.slice(2, 5))
    expect(sent.slice(3).map(({ input }) => (input as unknown[]).length)).toEqual([1, 1, 2])
    const told = (await upstreamCalls(bench, next.prompt)).map(toldConversation).at(-1)
    const whole = [...noteConversation(first), ['text', 'Three notes are read.'], ...noteConversation(next)]
    expect(told).toEqual(renumbered(whole as Told[]))
  })

  it('gives up at a call in the form of this service', async () => {
    const { prompt } = await prepareNoteTask(NOTE_MODELS[0])
    const task = { model: CHAT_MODEL, prompt, streamed: false, ...PLAIN }
    await expect(runLibrary(bench, library, 'openai-agents.mjs', task)).rejects.toThrow('response.incomplete')
  })
})
