import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { gateway, query, upstreamControl } from '../harness/gateway.ts'
import { CHAT_MODEL } from '../harness/sdk-clients.ts'
import { uniqueName } from '../harness/tenant.ts'
import { PICTURE } from '../http/support/translated-request.ts'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { CLIENT_TEST_LIMIT_MS } from './support/client-run.ts'
import { askCodex, type CodexEvent, codexMissing } from './support/codex.ts'
import { bodyOf, expectRecorded, modelCalls, upstreamCalls } from './support/governed-calls.ts'
import { NOTE_MODELS, THINKING_MODEL } from './support/note-task.ts'
import { type ScriptedTurn, scriptTurns, TURN_USAGE } from './support/scripted-turns.ts'
import { toldConversation } from './support/told-conversation.ts'
import { chatTurn } from './support/tool-task.ts'

type Json = Record<string, unknown>

const WORD = uniqueName('marmalade')
const COMMAND = { name: 'exec_command', input: { cmd: 'cat note.txt' } }
/** Its server is `my-notes`, and its tools are given within a namespace. */
const NAMESPACE = 'mcp__my_notes'
const NOTE_TOOL = `${NAMESPACE}__read_note`

let bench: Bench
beforeEach(async () => {
  bench = await setUpBench()
  writeFileSync(join(bench.folder, 'note.txt'), `The word of the day is ${WORD}.\n`)
})
afterEach(() => bench.clear())

const promptOf = async (protocol: 'chat' | 'messages', turns: ScriptedTurn[]) =>
  `Read the notes of ${uniqueName('author')}. ${await scriptTurns(protocol, turns)}`

const finished = (events: CodexEvent[], type: string) =>
  events.flatMap(({ type: event, item }) => (event === 'item.completed' && item?.type === type ? [item] : []))
const messages = (events: CodexEvent[]) => finished(events, 'agent_message').map(({ text }) => text)

/** Streams in the form of Open Responses end with `[DONE]`. */
const lastEvent = (answer: string) =>
  JSON.parse(answer.slice(answer.lastIndexOf('data: {') + 6).replace('data: [DONE]', '')) as {
    type: string
    response: Json
  }

/** The upstream's tools by name, whatever its protocol. */
const toolNames = (body: Json) =>
  (body.tools as Array<{ name?: string; function?: { name: string } }>).map(
    (tool) => tool.function?.name ?? tool.name,
  )

describe.skipIf(codexMissing)('Codex 0.169', { timeout: CLIENT_TEST_LIMIT_MS }, () => {
  it.each([...NOTE_MODELS, THINKING_MODEL])(
    'runs a command and calls a tool of a server on $model',
    async ({ model, protocol, thinks }) => {
      const thinking = thinks ? { thinking: 'The file may say it.' } : {}
      const prompt = await promptOf(protocol, [
        { ...thinking, text: 'I read the file.', calls: [COMMAND] },
        { ...thinking, calls: [{ name: NOTE_TOOL, input: { name: 'one' } }] },
        { text: 'Both are read.' },
      ])
      const effort = thinks ? 'high' : undefined
      const events = await askCodex(bench, { prompt, model, effort })
      expect(messages(events)).toEqual(['I read the file.', 'Both are read.'])
      expect(finished(events, 'command_execution')).toMatchObject([
        { exit_code: 0, aggregated_output: `The word of the day is ${WORD}.\n` },
      ])
      const content = [{ type: 'text', text: 'This is note one.' }]
      expect(finished(events, 'mcp_tool_call')).toMatchObject([{ status: 'completed', result: { content } }])
      expect(events.at(-1)).toMatchObject({
        type: 'turn.completed',
        usage: { input_tokens: 3 * TURN_USAGE.input, output_tokens: 3 * TURN_USAGE.output },
      })

      const calls = modelCalls(bench)
      expect(calls.map(({ path, status }) => [path, status])).toEqual(
        Array.from({ length: 3 }, () => ['/v1/responses', 200]),
      )
      for (const { headers, body, answer } of calls) {
        expect(headers.authorization === `Bearer ${bench.tenant.key}`).toBe(true)
        expect(JSON.parse(body)).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })
        // Codex continues after no other event.
        expect(lastEvent(answer).type).toBe('response.completed')
      }
      expect(calls.map(({ answer }) => lastEvent(answer).response.incomplete_details)).toEqual([
        { reason: 'tool_use' },
        { reason: 'tool_use' },
        null,
      ])
      expect(bodyOf(calls[2] ?? { body: '{}' }).input).toContainEqual(
        expect.objectContaining({ type: 'function_call', namespace: NAMESPACE, name: 'read_note' }),
      )

      const seen = await upstreamCalls(bench, prompt)
      for (const { body } of seen) {
        expect(toolNames(JSON.parse(body))).toEqual(
          expect.arrayContaining([COMMAND.name, NOTE_TOOL, 'multi_agent_v1__spawn_agent']),
        )
        expect(body).not.toMatch(/client_metadata|x-codex|"type":"web_search"/)
        expect(body).toContain('You are a coding agent')
      }
      const thought = thinks ? [['thinking', thinking.thinking]] : []
      const told = seen.map(toldConversation)
      // The first is its environment.
      expect(told[2]?.slice(1)).toEqual([
        ['user', prompt],
        ...thought,
        ['text', 'I read the file.'],
        ['call', 0, COMMAND.name, COMMAND.input],
        ['result', 0, expect.stringContaining(WORD)],
        ...thought,
        ['call', 1, NOTE_TOOL, { name: 'one' }],
        ['result', 1, expect.stringContaining('This is note one.')],
      ])
      const usage = { provenance: 'reported', ...TURN_USAGE }
      expect(await expectRecorded(bench)).toEqual([usage, usage, usage])
      const stored = 'select id from responses where user_id = $1'
      expect(await query(gateway(), stored, [bench.tenant.userId])).toEqual([])
    },
  )

  it('continues after a call in the mode of Open Responses too', async () => {
    const prompt = await promptOf('chat', [{ text: 'I read it.', calls: [COMMAND] }, { text: 'It is read.' }])
    const events = await askCodex(bench, { prompt, model: CHAT_MODEL, openResponses: true })
    expect(messages(events)).toEqual(['I read it.', 'It is read.'])
    const statuses = modelCalls(bench).map(({ answer }) => lastEvent(answer).response.status)
    expect(statuses).toEqual(['completed', 'completed'])
  })

  it.each(NOTE_MODELS)('looks at a picture on $model', async ({ model, protocol }) => {
    writeFileSync(join(bench.folder, 'picture.png'), Buffer.from(PICTURE, 'base64'))
    const prompt = await promptOf(protocol, [
      { calls: [{ name: 'view_image', input: { path: 'picture.png' } }] },
      { text: 'It is seen.' },
    ])
    expect(messages(await askCodex(bench, { prompt, model }))).toEqual(['It is seen.'])
    const [first, second] = await upstreamCalls(bench, prompt)
    const data = /data:image|"type":"base64"/
    expect([data.test(first?.body ?? ''), data.test(second?.body ?? '')]).toEqual([false, true])
  })

  it('asks again after a cut in mid-stream', async () => {
    const script = uniqueName('cut')
    const steps = { status: 200, headers: { 'content-type': 'text/event-stream' } }
    await upstreamControl(gateway()).putScript(script, {
      responses: [
        { steps: [steps, { sse: chatTurn([], 'It is broken').slice(0, 2) }, { destroy: true }] },
        { steps: [steps, { sse: chatTurn([], 'It is whole now.') }] },
      ],
    })
    const events = await askCodex(bench, { prompt: `Say it. script:${script}`, model: CHAT_MODEL })
    expect(messages(events).at(-1)).toBe('It is whole now.')
    const ends = modelCalls(bench).map(({ answer }) => lastEvent(answer))
    expect(ends.map(({ type }) => type)).toEqual(['response.failed', 'response.completed'])
    expect(ends[0]?.response.error).toMatchObject({ code: 'stream_error' })
    expect(await expectRecorded(bench)).toMatchObject([{ provenance: 'estimated' }, TURN_USAGE])
  })

  it('shows its user the reason of a refusal', async () => {
    const asked = askCodex(bench, { prompt: 'Hello.', model: 'no-such-model' })
    await expect(asked).rejects.toThrow(/no-such-model/)
    expect(modelCalls(bench).map(({ status }) => status)).toEqual([400])
  })
})
