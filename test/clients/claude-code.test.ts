import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  blockDeltaFrame,
  blockStartFrame,
  messageFrame,
  messageStartFrame,
} from '../../scripts/local/model-upstream/message-frames.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { MESSAGES_MODEL, SCRIPTED_TEXT } from '../harness/sdk-clients.ts'
import { uniqueName } from '../harness/tenant.ts'
import { marker } from '../harness/upstream.ts'
import { askClaudeCode, CREDENTIALS, claudeCodeMissing } from './support/claude-code.ts'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { CLIENT_TEST_LIMIT_MS } from './support/client-run.ts'
import { bodyOf, expectRecorded, modelCalls, upstreamCalls } from './support/governed-calls.ts'
import { prepareToolTask, TOOL_TURN_USAGE } from './support/tool-task.ts'

/** Ways for an upstream to break off a stream. */
const BREAKS = [
  {
    name: 'an error',
    ending: {
      sse: [messageFrame('error', '"error":{"type":"overloaded_error","message":"Overloaded"}')],
    },
  },
  { name: 'a cut', ending: { destroy: true } },
] as const

const USAGE = { input: 30, created5m: 0, created1h: 0, read: 0, output: 7, thinking: 0 }
const JSON_TYPE = { 'content-type': 'application/json' }
const WHOLE_ANSWER = JSON.stringify({
  id: 'msg_whole',
  type: 'message',
  role: 'assistant',
  model: MESSAGES_MODEL,
  content: [{ type: 'text', text: 'It is whole now.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: USAGE.input, output_tokens: USAGE.output },
})

/** A response of a script that begins an answer and ends like this. */
function brokenStream(ending: object) {
  const frames = [
    messageStartFrame('msg_broken', MESSAGES_MODEL, USAGE),
    blockStartFrame(0, '{"type":"text","text":""}'),
    blockDeltaFrame(0, 'text_delta', 'text', 'It is broken'),
  ]
  const headers = { 'content-type': 'text/event-stream' }
  return { steps: [{ status: 200, headers }, { sse: frames }, ending] }
}

let bench: Bench
beforeEach(async () => {
  bench = await setUpBench()
})
afterEach(() => bench.clear())

const ask = (prompt: string, variable: string) =>
  askClaudeCode(bench, { prompt, model: MESSAGES_MODEL, variable })

describe.skipIf(claudeCodeMissing)('Claude Code 2.1', { timeout: CLIENT_TEST_LIMIT_MS }, () => {
  it.each(CREDENTIALS)('completes a task with a tool call, its key in $variable', async (credential) => {
    const task = await prepareToolTask(
      gateway(),
      'messages',
      { name: 'Read', pathArgument: 'file_path' },
      bench.folder,
    )
    const [result] = await Promise.all([ask(task.prompt, credential.variable), task.handOver()])
    expect(result).toMatchObject({ subtype: 'success', is_error: false, num_turns: 2 })
    expect(result.result).toContain(task.secretWord)

    const calls = modelCalls(bench)
    expect(calls.every(({ path }) => path === '/v1/messages?beta=true')).toBe(true)
    for (const { headers, body } of calls) {
      expect(headers[credential.header] === credential.scheme + bench.tenant.key).toBe(true)
      expect(JSON.parse(body)).toHaveProperty('metadata')
    }
    const answered = calls.filter(({ status }) => status === 200)
    const seen = await upstreamCalls(bench, task.prompt)
    expect([answered.length, seen.length]).toEqual([2, 2])
    for (const [index, { headers, body }] of seen.entries()) {
      const sent = answered[index]
      const { metadata, ...rest } = JSON.parse(sent?.body ?? '') as Record<string, unknown>
      expect(metadata).toBeDefined()
      expect(JSON.parse(body)).toEqual(rest)
      for (const name of ['anthropic-version', 'anthropic-beta', 'x-claude-code-session-id']) {
        expect(headers[name], name).toBeTypeOf('string')
        expect(headers[name], name).toBe(sent?.headers[name])
      }
    }
    const usages = await expectRecorded(bench)
    expect(usages).toEqual([
      { provenance: 'reported', ...TOOL_TURN_USAGE },
      { provenance: 'reported', input: expect.any(Number), output: expect.any(Number) },
    ])
    expect(usages[1]?.output).toBeGreaterThan(0)
    expect(bench.proxy.strays).toEqual([])
  })

  it('recovers from the refusal of a message of role system', async () => {
    const text = marker()
    const result = await ask(`Say something to ${text}. script:canned`, 'ANTHROPIC_AUTH_TOKEN')
    expect(result).toMatchObject({ subtype: 'success', is_error: false, result: SCRIPTED_TEXT })

    const calls = modelCalls(bench)
    const roles = calls.map((call) => (bodyOf(call).messages as { role: string }[]).map(({ role }) => role))
    expect(calls.map(({ status }) => status)).toEqual([400, 200])
    expect(roles).toEqual([['user', 'system'], ['user']])
    expect(JSON.parse(calls[0]?.answer ?? '')).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: "messages.1.role: Input should be 'user' or 'assistant'",
      },
      request_id: expect.stringMatching(/^req_/),
    })
    expect(await upstreamCalls(bench, text)).toHaveLength(1)
    expect(await expectRecorded(bench)).toHaveLength(1)
  })

  it.each(BREAKS)('asks again without a stream after $name in mid-stream', async ({ ending }) => {
    const script = uniqueName('break')
    await upstreamControl(gateway()).putScript(script, {
      responses: [brokenStream(ending), { steps: [{ status: 200, headers: JSON_TYPE, body: WHOLE_ANSWER }] }],
    })
    const result = await ask(`Say something. script:${script}`, 'ANTHROPIC_API_KEY')
    expect(result).toMatchObject({ subtype: 'success', is_error: false, result: 'It is whole now.' })

    const answered = modelCalls(bench).filter(({ status }) => status === 200)
    expect(answered.map((call) => bodyOf(call).stream)).toEqual([true, false])
    expect(answered[0]?.answer).toContain('It is broken')
    expect(answered[0]?.answer).toContain('event: error')
    expect(answered[0]?.answer).not.toContain('message_stop')
    expect(await upstreamCalls(bench, script)).toHaveLength(2)
    const [broken, whole] = await expectRecorded(bench)
    expect(broken?.provenance).toBe('estimated')
    expect(whole).toEqual({ provenance: 'reported', input: 30, output: 7 })
  })
})
