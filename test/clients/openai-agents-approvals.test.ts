import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import {
  createIntegration,
  type IntegrationItem,
  type McpServer,
  mcpTool,
  startMcpServer,
} from '../harness/integrations.ts'
import { uniqueName } from '../harness/tenant.ts'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { installLibrary } from './support/client-install.ts'
import { CLIENT_TEST_LIMIT_MS, runClient } from './support/client-run.ts'
import { bodyOf, modelCalls, upstreamCalls } from './support/governed-calls.ts'
import { runLibrary } from './support/library-run.ts'
import { NOTE_MODELS } from './support/note-task.ts'
import { type ScriptedTurn, scriptTurns } from './support/scripted-turns.ts'

const library = await installLibrary('openai-agents', {
  '@openai/agents': '0.20.0',
  openai: '7.55.0',
  zod: '4.6.7',
})

const NOT_STORED = 'the whole history, nothing stored'
/** The messages of a client after the request for approval, and the form of its first run. */
const SENDS = [
  { sends: 'the whole history', before: false, options: {} },
  { sends: NOT_STORED, before: false, options: { store: false } },
  { sends: 'what is new, after a response', before: 'response', options: {} },
  { sends: 'what is new, to a conversation', before: 'conversation', options: {} },
] as const
const FORMS = ['open-responses', 'headgate'] as const
/** A callback in the run, or an interruption of it. */
const ASKS = ['callback', 'interruption'] as const
const RUNS = SENDS.flatMap((send, index) =>
  FORMS.flatMap((form) =>
    ASKS.map((asks, at) => ({ ...send, form, asks, streamed: at === 0, model: NOTE_MODELS[index % 2] })),
  ),
)

let bench: Bench
let server: McpServer
let crm: IntegrationItem
beforeEach(async () => {
  bench = await setUpBench()
  server = await startMcpServer(gateway(), {
    tools: [mcpTool('add')],
    results: { add: { content: [{ type: 'text', text: 'Bob is in.' }] } },
  })
  crm = await createIntegration(gateway(), bench.tenant, { url: server.url })
})
afterEach(() => bench.clear())

interface Outcome {
  text: string
  interruptions: number
}

/** A prompt whose answer is a call that needs an approval; where the form has them, with calls of the caller's tool beside and after it. */
async function prepare(run: (typeof RUNS)[number], approves: boolean, last: string) {
  const { protocol } = run.model as (typeof NOTE_MODELS)[number]
  const note = (name: string) => ({ name: 'read_note', input: { name } })
  const add = { name: `${crm.slug}_add`, input: { text: 'Bob' } }
  const turns: ScriptedTurn[] =
    run.form === 'headgate'
      ? [{ calls: [add] }, { text: last }]
      : [{ calls: [note('one'), add] }, { calls: [note('two')] }, { text: last }]
  const prompt = `For ${uniqueName('clerk')}. ${await scriptTurns(protocol, turns)}`
  const before = run.before && {
    ...{ id: run.before, prompt: `Hello. ${await scriptTurns(protocol, [{ text: 'Hello.' }])}` },
  }
  const task = {
    ...{ model: run.model?.model ?? '', prompt, before, server: crm.slug, asks: run.asks, approves },
    ...{ streamed: run.streamed, options: run.options },
    headers: { 'x-headgate-compatibility': run.form },
  }
  return { prompt, turns: turns.length, task }
}

describe.skipIf('missing' in library)('OpenAI Agents SDK 0.20', { timeout: CLIENT_TEST_LIMIT_MS }, () => {
  it.each(RUNS)('has a call approved by a $asks, sending $sends, in the form $form', async (run) => {
    const { prompt, turns, task } = await prepare(run, true, 'Bob was added.')
    const outcome = await runLibrary<Outcome>(bench, library, 'openai-agents-approval.mjs', task)
    expect(outcome).toEqual({
      text: 'Bob was added.',
      interruptions: run.asks === 'interruption' ? 1 : 0,
    })
    expect(await server.calls('add')).toBe(1)
    // The model gets the result without making the call again.
    const told = await upstreamCalls(bench, prompt)
    expect(told).toHaveLength(turns)
    const messages = JSON.stringify(bodyOf(told.at(-1) ?? { body: '{}' }).messages)
    expect(messages.split(`"${crm.slug}_add"`)).toHaveLength(2)
    // The client sends calls back without their results, which are here only where they are stored.
    const isLost = run.sends === NOT_STORED && run.form === 'open-responses'
    expect(messages).toContain(isLost ? 'The call was made.' : 'Bob is in.')
    const [last] = modelCalls(bench).slice(-1)
    const input = last && (bodyOf(last).input as unknown[])
    expect(input?.length).toBe(run.before ? 1 : run.form === 'headgate' ? 3 : 8)
  })

  it('has its call approved as docs/clients.md shows it', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/clients.md'), 'utf8')
    const [, program = ''] = /```js\n(import \{ Agent[\s\S]+?)```/.exec(page) ?? []
    const [run] = RUNS
    if (!run || 'missing' in library) throw new Error('nothing to run')
    const { task } = await prepare({ ...run, form: 'headgate' }, true, 'Bob was added.')
    const shown = {
      "'scripted-chat'": task.model,
      "'memory'": crm.slug,
      "'Read the graph.'": task.prompt,
    }
    const own = Object.entries(shown).reduce((text, [example, value]) => {
      expect(text.split(example)).toHaveLength(2)
      return text.replace(example, () => JSON.stringify(value))
    }, program)
    const path = join(bench.folder, 'example.mjs')
    writeFileSync(path, own)
    symlinkSync(library.modules, join(bench.folder, 'node_modules'))
    const { stdout } = await runClient({
      program: process.execPath,
      arguments: [path],
      environment: { ...bench.environment, HEADGATE_URL: bench.proxy.url, HEADGATE_KEY: bench.tenant.key },
      folder: bench.folder,
    })
    expect(stdout.trim()).toBe('Bob was added.')
    expect(await server.calls('add')).toBe(1)
  })

  it.each(RUNS.filter(({ asks, form }) => (asks === 'callback') === (form === 'headgate')))(
    'has a call denied by a $asks, sending $sends, in the form $form',
    async (run) => {
      const { prompt, task } = await prepare(run, false, 'Then not.')
      const outcome = await runLibrary<Outcome>(bench, library, 'openai-agents-approval.mjs', task)
      expect(outcome).toMatchObject({ text: 'Then not.' })
      expect(await server.calls('add')).toBe(0)
      const told = await upstreamCalls(bench, prompt)
      const messages = JSON.stringify(bodyOf(told.at(-1) ?? { body: '{}' }).messages)
      expect(messages).toContain('the user denied it. Reason: Not today.')
    },
  )
})
