import { abortAllDurableObjects } from 'cloudflare:test'
import { beforeAll, describe, expect, it } from 'vitest'
import { keyIdOf } from '../../src/identity/principal.ts'
import type { StoredToolCall } from '../../src/responses/model/tool-result.ts'
import { untrusted } from '../../src/responses/model/untrusted.ts'
import { useDatabaseGate } from './database-gate.ts'
import {
  type LiveTrial,
  lastOf,
  newCaller,
  newResponse,
  OBJECTS,
  phaseOf,
  query,
  replayed,
  requestOf,
  seedModel,
  settledCalls,
  until,
  useToolRuns,
} from './durable-response-harness.ts'
import { holdLedger } from './held-ledger.ts'
import { type ModelRequest, useScriptedModel } from './scripted-model.ts'
import { type ToolRun, toolRuns } from './tool-response-stream.ts'

// What an object does that comes to life between two turns, or while a tool of this side runs.

const gate = useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
useToolRuns()

const RIGHTS = '\\"api_keys\\"'

const asked = requestOf(model)

const runs = async (count: number): Promise<ToolRun> => {
  await until(() => expect(toolRuns.all).toHaveLength(count))
  return toolRuns.all[count - 1] as ToolRun
}

const told = (request: ModelRequest | undefined) =>
  (JSON.parse(request?.body ?? '{}') as { messages: Array<Record<string, unknown>> }).messages

/** A response whose first turn has ended with a call that is refused; nothing of the second one was done. */
async function betweenTurns() {
  const caller = await newCaller()
  const response = newResponse(caller)
  await response.start()
  const reader = response.follow()
  const first = await asked(1)
  const ledger = holdLedger()
  // Further lives ask Postgres what their caller may do.
  gate.heldText = RIGHTS
  gate.held = true
  first.say('One.')
  first.call('nothing_there', '{"a":1}')
  first.finish('tool_calls')
  await until(async () => expect(await phaseOf(response)).toBe('between_turns'))
  await abortAllDurableObjects()
  ledger.release()
  return { caller, response, reader }
}

/** The next life of an object, and what its readers see. */
async function restart(response: LiveTrial) {
  await abortAllDurableObjects()
  gate.held = false
  return response.follow()
}

describe('an object that dies between two turns', () => {
  it('goes on with the next one, and readers miss nothing', async () => {
    const { caller, response, reader } = await betweenTurns()
    const again = await restart(response)
    const second = await asked(2)
    expect(told(second).slice(-2)).toMatchObject([
      { role: 'assistant', content: 'One.', tool_calls: [{ function: { name: 'nothing_there' } }] },
      { role: 'tool', content: 'There is no tool named nothing_there.' },
    ])
    second.say('Two.')
    second.finish()
    expect(await again.done).toBe(true)
    expect(again.text.startsWith(reader.text)).toBe(true)
    const last = lastOf(again.text)
    expect(last).toMatchObject({ status: 'completed', output_text: 'One.Two.' })
    expect(last.usage).toMatchObject({ input_tokens: 10, output_tokens: 14 })
    expect(await response.snapshot()).toEqual(last as never)
    expect(await response.settle()).toBe('settled')
    expect(await response.row()).toMatchObject({ status: 'completed' })
    expect(await settledCalls(caller.organization)).toEqual([200, 200])
  })

  it('goes on under the rights that its caller has by then', async () => {
    const { caller, response } = await betweenTurns()
    await query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', keyIdOf(caller.principal))
    const again = await restart(response)
    expect(await again.done).toBe(true)
    const last = lastOf(again.text)
    expect(last).toMatchObject({ status: 'failed', output_text: 'One.', error: { code: 'key_revoked' } })
    expect(model.requests).toHaveLength(1)
    expect(await settledCalls(caller.organization)).toEqual([200, 401])
  })

  it('ends with what it said when it dies there again and again', async () => {
    const { response } = await betweenTurns()
    for (let life = 0; life < 5; life++) {
      await abortAllDurableObjects()
      expect(await phaseOf(response)).toBe('between_turns')
    }
    await abortAllDurableObjects()
    const { last } = await replayed(response)
    gate.held = false
    expect(last).toMatchObject({ status: 'failed', output_text: 'One.', error: { code: 'server_error' } })
    expect(model.requests).toHaveLength(1)
  })

  it('is cancelled in its next life', async () => {
    const { response } = await betweenTurns()
    await abortAllDurableObjects()
    const cancelled = response.cancel()
    await until(async () => expect(await phaseOf(response)).toBeDefined())
    gate.held = false
    expect(await cancelled).toMatchObject({ status: 'incomplete', output_text: 'One.' })
    expect(model.requests).toHaveLength(1)
  })

  it('and then in the middle of the next one has failed', async () => {
    const { caller, response } = await betweenTurns()
    const again = await restart(response)
    const second = await asked(2)
    second.say('Two')
    await until(() => expect(again.text).toContain('"delta":"Two"'))
    await abortAllDurableObjects()
    const { last } = await replayed(response)
    expect(last).toMatchObject({ status: 'failed', output_text: 'One.Two' })
    expect(last.usage).toMatchObject({ output_tokens: 7 + 1 })
    await response.runAlarm()
    expect(await settledCalls(caller.organization)).toEqual([200, 0])
  })
})

/** A response whose first turn called tools of this side, the first of which runs. */
async function runningTool(...names: string[]) {
  const caller = await newCaller()
  const response = newResponse(caller, OBJECTS.tools)
  await response.start({ tools: [{ type: 'function', name: 'look', parameters: { type: 'object' } }] })
  const reader = response.follow()
  const first = await asked(1)
  first.say('Let me see.')
  for (const [index, name] of names.entries()) first.call(name, `{"n":${index}}`, index)
  first.finish('tool_calls')
  const run = await runs(1)
  // What a tool does outside waits for what is stored; these tools do nothing there.
  await until(async () => expect(await response.stored('tool_call/0')).toMatchObject({ state: 'dispatched' }))
  return { caller, response, reader, run }
}

const found = (output: string) => ({ status: 'completed' as const, members: { output } })

describe('a tool of this side', () => {
  it('runs when the turn has ended, and the model is told its result', async () => {
    const { caller, response, reader, run } = await runningTool('hosted_read')
    expect(await phaseOf(response)).toBe('running_tools')
    expect(await response.stored('tool_call/0')).toMatchObject({ state: 'dispatched', result: null })
    expect(JSON.parse(run.arguments)).toEqual({ n: 0 })
    await until(() => expect(reader.text).toContain('event: response.mcp_call_arguments.done'))
    expect(reader.text).not.toContain('"type":"mcp_call","status":"completed"')
    run.result = found('It is there.')
    const second = await asked(2)
    expect(told(second).slice(-2)).toMatchObject([
      { tool_calls: [{ function: { arguments: '{"n":0}' } }] },
      { role: 'tool', content: untrusted('the tool hosted_read', 'It is there.') },
    ])
    second.say('There.')
    second.finish()
    expect(await reader.done).toBe(true)
    const last = lastOf(reader.text)
    expect(last).toMatchObject({ status: 'completed', output_text: 'Let me see.There.' })
    expect(last.output).toMatchObject([
      { type: 'message' },
      { type: 'mcp_call', name: 'hosted_read', status: 'completed', output: 'It is there.' },
      { type: 'message' },
    ])
    expect(await settledCalls(caller.organization)).toEqual([200, 200, 200])
  })

  it('that fails is told to the model', async () => {
    const { reader, run } = await runningTool('hosted_write')
    run.result = new Error('a secret reason')
    const second = await asked(2)
    expect(told(second).at(-1)).toMatchObject({ role: 'tool', content: 'The tool failed.' })
    second.finish()
    expect(await reader.done).toBe(true)
    expect(lastOf(reader.text).output).toMatchObject([
      { type: 'message' },
      { type: 'mcp_call', status: 'failed', error: 'The tool failed.' },
    ])
    expect(reader.text).not.toContain('secret')
  })

  it('runs before a response ends with a call of the caller', async () => {
    const { reader, run } = await runningTool('hosted_write', 'look')
    run.result = found('done')
    expect(await reader.done).toBe(true)
    const last = lastOf(reader.text)
    expect(last).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'tool_use' } })
    expect(last.output).toMatchObject([
      { type: 'message' },
      { type: 'mcp_call', output: 'done' },
      { type: 'function_call', name: 'look' },
    ])
    expect(model.requests).toHaveLength(1)
  })

  it('is stopped when its response is cancelled', async () => {
    const { response, reader, run } = await runningTool('hosted_write')
    expect(await response.cancel()).toMatchObject({ status: 'incomplete' })
    expect(run.aborted).toBe(true)
    expect(await reader.done).toBe(true)
    expect(lastOf(reader.text).output).toMatchObject([
      { type: 'message' },
      { type: 'mcp_call', status: 'incomplete' },
    ])
  })
})

describe('an object that dies while a tool runs', () => {
  it('runs it again where that does no harm', async () => {
    const { caller, response, reader } = await runningTool('hosted_read')
    const { governedCallId } = (await response.stored('tool_call/0')) as StoredToolCall
    const again = await restart(response)
    const run = await runs(2)
    run.result = found('again')
    const second = await asked(2)
    expect(told(second).at(-1)).toMatchObject({
      role: 'tool',
      content: untrusted('the tool hosted_read', 'again'),
    })
    second.finish()
    expect(await again.done).toBe(true)
    expect(again.text.startsWith(reader.text)).toBe(true)
    expect(lastOf(again.text).output).toMatchObject([{ type: 'message' }, { output: 'again' }])
    // Both were one governed call.
    expect(governedCallId).toMatch(/^call_/)
    expect(await response.stored('tool_call/0')).toMatchObject({ state: 'done', governedCallId })
    expect(await settledCalls(caller.organization)).toEqual([200, 200, 200])
  })

  it('has failed where it is not known what the tool did', async () => {
    const { response } = await runningTool('hosted_write')
    const { last } = await restart(response).then(() => replayed(response))
    expect(last).toMatchObject({ status: 'failed', error: { code: 'server_error' } })
    expect(last.output).toMatchObject([{ type: 'message' }, { type: 'mcp_call', status: 'incomplete' }])
    expect(toolRuns.all).toHaveLength(1)
    expect(model.requests).toHaveLength(1)
  })

  it('keeps the results that it has', async () => {
    const { response, run } = await runningTool('hosted_write', 'hosted_read')
    run.result = found('written')
    await runs(2)
    await until(async () => {
      expect(await response.stored('tool_call/0')).toMatchObject({ state: 'done' })
      expect(await response.stored('tool_call/1')).toMatchObject({ state: 'dispatched' })
    })
    const again = await restart(response)
    const read = await runs(3)
    read.result = found('read')
    const second = await asked(2)
    expect(told(second).slice(-2)).toMatchObject([
      { content: untrusted('the tool hosted_write', 'written') },
      { content: untrusted('the tool hosted_read', 'read') },
    ])
    second.finish()
    expect(await again.done).toBe(true)
    expect(lastOf(again.text)).toMatchObject({ status: 'completed' })
    expect(toolRuns.all.map(({ arguments: json }) => JSON.parse(json).n)).toEqual([0, 1, 1])
  })

  it('does not run it again once its result is stored', async () => {
    const { caller, response, run } = await runningTool('hosted_write')
    const ledger = holdLedger()
    run.result = found('once')
    await until(async () => expect(await phaseOf(response)).toBe('between_turns'))
    await abortAllDurableObjects()
    ledger.release()
    const again = response.follow()
    const second = await asked(2)
    expect(told(second).at(-1)).toMatchObject({
      role: 'tool',
      content: untrusted('the tool hosted_write', 'once'),
    })
    second.say('Done.')
    second.finish()
    expect(await again.done).toBe(true)
    expect(lastOf(again.text)).toMatchObject({ status: 'completed', output_text: 'Let me see.Done.' })
    expect(toolRuns.all).toHaveLength(1)
    expect(await settledCalls(caller.organization)).toEqual([200, 200, 200])
  })
})
