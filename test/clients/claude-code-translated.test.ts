import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { CHAT_MODEL } from '../harness/sdk-clients.ts'
import { uniqueName } from '../harness/tenant.ts'
import { marker } from '../harness/upstream.ts'
import { PICTURE } from '../http/support/translated-request.ts'
import { askClaudeCode, claudeCodeMissing } from './support/claude-code.ts'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { CLIENT_TEST_LIMIT_MS } from './support/client-run.ts'
import { bodyOf, expectRecorded, modelCalls, upstreamCalls } from './support/governed-calls.ts'
import { chatTurn, prepareToolTask, TOOL_TURN_USAGE } from './support/tool-task.ts'
import { expectTranslated } from './support/translated-calls.ts'

type Json = Record<string, unknown>

const JSON_TYPE = { 'content-type': 'application/json' }
const EVENTS = { 'content-type': 'text/event-stream' }
const CHAT_PATH = '/v1/chat/completions'

let bench: Bench
beforeEach(async () => {
  bench = await setUpBench()
})
afterEach(() => bench.clear())

/** Registers what the model answers, turn by turn. @returns the prompt that gets these answers. */
async function scripted(responses: Array<{ steps: object[] }>): Promise<string> {
  const script = uniqueName('turns')
  await upstreamControl(gateway()).putScript(script, { responses })
  return `Please do it. script:${script}`
}

const turn = (calls: Array<{ name: string; input: object }>, text = '') => {
  const written = calls.map(({ name, input }) => ({ name, input: JSON.stringify(input) }))
  return { steps: [{ status: 200, headers: EVENTS }, { sse: chatTurn(written, text) }] }
}

/** Calls that were let through: each run begins with one whose messages of role system are refused. */
const answered = () => modelCalls(bench).filter(({ status }) => status === 200)

const messagesOf = (body: Json | undefined) => (body?.messages ?? []) as Json[]

describe.skipIf(claudeCodeMissing)(
  'Claude Code 2.1 on a chat model',
  { timeout: CLIENT_TEST_LIMIT_MS },
  () => {
    it('completes a task with a tool call', async () => {
      const tool = { name: 'Read', pathArgument: 'file_path' }
      const task = await prepareToolTask(gateway(), 'chat', tool, bench.folder)
      const [result] = await Promise.all([
        askClaudeCode(bench, { prompt: task.prompt, model: CHAT_MODEL }),
        task.handOver(),
      ])
      expect(result).toMatchObject({ subtype: 'success', is_error: false, num_turns: 2 })
      expect(result.result).toContain(task.secretWord)

      const seen = await upstreamCalls(bench, task.prompt)
      expectTranslated(seen, 'chat', task.secretWord)
      for (const { headers, body } of seen) {
        // Members that only their own provider supports are not sent.
        expect(Object.keys(headers).filter((name) => /^(anthropic|x-claude)-/.test(name))).toEqual([])
        expect(body).not.toMatch(/x-anthropic-billing-header|cache_control|context_management|"thinking"/)
        expect(JSON.parse(body).tools).toMatchObject([{ type: 'function', function: { name: 'Read' } }])
      }
      const usages = await expectRecorded(bench)
      expect(usages[0]).toEqual({ provenance: 'reported', ...TOOL_TURN_USAGE })
      const [input, output] = [usages.reduce((sum, usage) => sum + usage.input, 0), usages[1]?.output ?? 0]
      expect(result.usage).toMatchObject({
        input_tokens: input,
        output_tokens: output + TOOL_TURN_USAGE.output,
      })
      expect(output).toBeGreaterThan(0)
      expect(bench.proxy.strays).toEqual([])
    })

    it('looks at a picture, reads, writes and runs, some of it at once', async () => {
      const path = (name: string) => join(bench.folder, name)
      writeFileSync(path('picture.png'), Buffer.from(PICTURE, 'base64'))
      writeFileSync(path('note.txt'), 'Write it twice.')
      const prompt = await scripted([
        turn(
          [
            { name: 'Read', input: { file_path: path('picture.png') } },
            { name: 'Read', input: { file_path: path('note.txt') } },
          ],
          'I look at both.',
        ),
        turn([{ name: 'Write', input: { file_path: path('answer.txt'), content: 'twice twice' } }]),
        turn([{ name: 'Bash', input: { command: 'cat missing.txt', description: 'Fails' } }]),
        turn([], 'It is written.'),
      ])
      const tools = ['Read', 'Write', 'Bash']
      const result = await askClaudeCode(bench, { prompt, model: CHAT_MODEL, tools })
      expect(result).toMatchObject({ subtype: 'success', result: 'It is written.', permission_denials: [] })
      expect(readFileSync(path('answer.txt'), 'utf8')).toBe('twice twice')

      const bodies = (await upstreamCalls(bench, prompt)).map(bodyOf)
      expect(bodies).toHaveLength(4)
      const last = messagesOf(bodies[3])
      expect(last.map(({ role }) => role)).toEqual([
        'system',
        'user',
        'assistant',
        'tool',
        'tool',
        'user',
        'assistant',
        'tool',
        'assistant',
        'tool',
      ])
      expect(last[2]).toMatchObject({ content: 'I look at both.' })
      const calls = last.flatMap(({ tool_calls: calls = [] }) => (calls as Json[]).map(({ id }) => id))
      const results = last.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : []))
      expect(results.toSorted()).toEqual(calls.toSorted())
      const url = `data:image/png;base64,${PICTURE}`
      expect(last[5]?.content).toEqual([{ type: 'image_url', image_url: { url } }])
      expect(last[9]?.content).toMatch(/^Error: .*missing\.txt/s)
      expect(await expectRecorded(bench)).toHaveLength(4)
    })

    it('tells a model that reasons how much, and drops what it cannot read again', async () => {
      const text = marker()
      // The example's path names no file: the tool fails, and the model hears of it.
      const prompt = `Think of ${text}. script:thinking-tools`
      const result = await askClaudeCode(bench, { prompt, model: 'scripted-chat-reasoning' })
      expect(result).toMatchObject({ subtype: 'success', is_error: false, num_turns: 2 })
      const bodies = (await upstreamCalls(bench, text)).map(bodyOf)
      expect(bodies.map((body) => body.reasoning_effort)).toEqual(['high', 'high'])
      expect(messagesOf(bodies[1]).at(-1)?.content).toMatch(/^Error: /)
      const sent = answered().map(({ body }) => body)
      const thought = 'First I need the facts.'
      expect(sent.map((body) => body.includes(thought))).toEqual([false, true])
      expect(JSON.stringify(bodies)).not.toContain(thought)
    })

    it.each([
      ['an error', { sse: ['data: {"error":{"message":"Overloaded","type":"server_error"}}\n\n'] }],
      ['a cut', { destroy: true }],
    ])('asks again without a stream after %s in mid-stream', async (_how, ending) => {
      const [role = '', words = ''] = chatTurn([], 'It is broken')
      const choice = {
        index: 0,
        message: { role: 'assistant', content: 'It is whole now.' },
        finish_reason: 'stop',
      }
      const usage = { prompt_tokens: 30, completion_tokens: 7, total_tokens: 37 }
      const whole = { id: 'chatcmpl-whole', object: 'chat.completion', created: 1, choices: [choice], usage }
      const prompt = await scripted([
        { steps: [{ status: 200, headers: EVENTS }, { sse: [role, words] }, ending] },
        { steps: [{ status: 200, headers: JSON_TYPE, body: JSON.stringify(whole) }] },
      ])
      const result = await askClaudeCode(bench, { prompt, model: CHAT_MODEL })
      expect(result).toMatchObject({ subtype: 'success', is_error: false, result: 'It is whole now.' })
      const [broken] = answered()
      expect(answered().map((call) => bodyOf(call).stream)).toEqual([true, false])
      expect(broken?.answer).toContain('It is broken')
      expect(broken?.answer).toContain('event: error')
      expect(broken?.answer).not.toContain('message_stop')
      const seen = await upstreamCalls(bench, prompt)
      expect(seen.map(({ path }) => path)).toEqual([CHAT_PATH, CHAT_PATH])
      const [first, second] = await expectRecorded(bench)
      expect(first?.provenance).toBe('estimated')
      expect(second).toEqual({ provenance: 'reported', input: 30, output: 7 })
    })

    it('continues without a search that only another provider has', async () => {
      const prompt = await scripted([
        turn([{ name: 'WebSearch', input: { query: 'weather of today' } }]),
        turn([], 'I could not search.'),
      ])
      const result = await askClaudeCode(bench, { prompt, model: CHAT_MODEL, tools: ['WebSearch'] })
      expect(result).toMatchObject({ subtype: 'success', result: 'I could not search.' })
      const bodies = (await upstreamCalls(bench, prompt)).map(bodyOf)
      expect(messagesOf(bodies[1]).at(-1)).toMatchObject({
        role: 'tool',
        content: expect.stringContaining('tools.0: tools of type web_search_20250305 are not supported'),
      })
    })

    it('finds tools that it had kept back', async () => {
      const name = 'ToolSearch'
      const prompt = await scripted([turn([{ name, input: { query: 'select:WebFetch', max_results: 1 } }])])
      // It says that the tool is loaded, and so the model goes on by itself: with the first tool, which fails.
      const result = await askClaudeCode(bench, {
        prompt,
        model: CHAT_MODEL,
        tools: ['NotebookEdit', name, 'WebFetch'],
      })
      expect(result).toMatchObject({ subtype: 'success', is_error: false })
      const bodies = (await upstreamCalls(bench, prompt)).map(bodyOf)
      const told = bodies.map(({ tools }) =>
        (tools as Array<{ function: Json }>).map((tool) => tool.function.name),
      )
      expect(told.map((names) => names.includes('WebFetch'))).toEqual([
        false,
        ...told.slice(1).map(() => true),
      ])
      expect(messagesOf(bodies[1]).slice(-2)).toMatchObject([
        { role: 'tool', content: 'Tool: WebFetch' },
        { role: 'user', content: 'Tool loaded.' },
      ])
    })

    it('counts tokens for its overview of the context', async () => {
      const result = await askClaudeCode(bench, { prompt: '/context', model: CHAT_MODEL })
      expect(result).toMatchObject({ is_error: false, result: expect.stringContaining('System prompt') })
      const calls = modelCalls(bench)
      expect(calls.length).toBeGreaterThan(3)
      for (const { path, status, answer } of calls) {
        expect([path, status]).toEqual(['/v1/messages/count_tokens?beta=true', 200])
        expect(JSON.parse(answer).input_tokens).toBeGreaterThan(0)
      }
    })

    it('understands that a conversation has become too long', async () => {
      const message = "This model's maximum context length is 128000 tokens."
      const error = {
        message,
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      }
      const body = JSON.stringify({ error })
      const prompt = await scripted([{ steps: [{ status: 400, headers: JSON_TYPE, body }] }])
      const failed = askClaudeCode(bench, { prompt, model: CHAT_MODEL })
      await expect(failed).rejects.toThrow('"terminal_reason":"prompt_too_long"')
      expect(await upstreamCalls(bench, prompt)).toHaveLength(1)
    })
  },
)
