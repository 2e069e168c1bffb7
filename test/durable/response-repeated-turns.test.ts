import { abortAllDurableObjects } from 'cloudflare:test'
import { beforeAll, describe, expect, it } from 'vitest'
import { useDatabaseGate } from './database-gate.ts'
import {
  type LiveTrial,
  lastOf,
  newCaller,
  newResponse,
  OBJECTS,
  phaseOf,
  requestOf,
  seedModel,
  settledCalls,
  until,
  useToolRuns,
} from './durable-response-harness.ts'
import { type ModelRequest, useScriptedModel } from './scripted-model.ts'
import { toolRuns } from './tool-response-stream.ts'

// What the object of a step's response does that dies in the middle of a turn: it asks the model again.

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
useToolRuns()

const asked = requestOf(model)

/** A response in the background whose turns are repeated, as that of a step. The model has its first request. */
async function begun(request: object = {}, objects = OBJECTS.responses) {
  const caller = await newCaller()
  const response = newResponse(caller, objects, null, undefined, { repeatsTurns: true })
  expect(await response.start({ stream: false, background: true, ...request })).toMatchObject({ error: null })
  return { caller, response, first: await asked(1) }
}

/** The object dies; its alarm wakes the next one, which asks the model for the given time. */
async function dieAndAsk(response: LiveTrial, count: number): Promise<ModelRequest> {
  await abortAllDurableObjects()
  await response.runAlarm()
  return asked(count)
}

/** What the object has stored of the text that the model wrote, without a reader. */
const storedText = async (response: LiveTrial, text: string) =>
  until(async () => expect(await response.storedEvents()).toContain(text))

const finish = async (response: LiveTrial, turn: ModelRequest, text: string) => {
  turn.say(text)
  turn.finish()
  await response.ended()
  return lastOf(await response.replay())
}

describe('a turn that dies with its object', () => {
  it('before anything came is asked again, with a call of its own', async () => {
    const { caller, response, first } = await begun()
    const second = await dieAndAsk(response, 2)
    expect(second.body).toBe(first.body)
    const last = await finish(response, second, 'Hello')
    expect(last).toMatchObject({ status: 'completed', output_text: 'Hello' })
    // Both are charged: the provider may have generated an answer to the first.
    expect(last.usage).toMatchObject({ output_tokens: 7 })
    expect(await settledCalls(caller.organization)).toEqual([0, 200])
    expect(await response.row()).toMatchObject({ status: 'completed' })
  })

  it('in the middle is taken back where nobody has read it', async () => {
    const { caller, response, first } = await begun()
    first.say('Hel')
    await storedText(response, 'Hel')
    const second = await dieAndAsk(response, 2)
    expect(second.body).toBe(first.body)
    const last = await finish(response, second, 'Hello')
    expect(last).toMatchObject({
      status: 'completed',
      output_text: 'Hello',
      output: [{ status: 'completed' }],
    })
    expect(await settledCalls(caller.organization)).toEqual([0, 200])
  })

  it('in the middle stays, as incomplete, where a reader has got it', async () => {
    const { response, first } = await begun()
    const reader = response.follow()
    first.say('Hel')
    await until(() => expect(reader.text).toContain('"delta":"Hel"'))
    const second = await dieAndAsk(response, 2)
    expect(second.body).toBe(first.body)
    const last = await finish(response, second, 'Hello')
    expect((await response.replay()).startsWith(reader.text)).toBe(true)
    expect(last).toMatchObject({ status: 'completed', output_text: 'HelHello' })
    expect(last.output).toMatchObject([{ status: 'incomplete' }, { status: 'completed' }])
  })

  it('stays as well where only a snapshot of it was read', async () => {
    const { response, first } = await begun()
    first.say('Hel')
    await storedText(response, 'Hel')
    expect(await response.snapshot()).toMatchObject({ output_text: 'Hel' })
    const last = await finish(response, await dieAndAsk(response, 2), 'Hello')
    expect(last.output).toMatchObject([{ status: 'incomplete' }, { status: 'completed' }])
  })

  it('is taken back where its readers left before it', async () => {
    const { response, first } = await begun({}, OBJECTS.tools)
    const reader = response.follow()
    first.call('hosted_read', '{"n":0}')
    first.finish('tool_calls')
    await until(() => expect(toolRuns.all).toHaveLength(1))
    // Its readers are gone with it.
    await abortAllDurableObjects()
    expect(await reader.done).toBe(false)
    toolRuns.answer = (run) => {
      run.result = { status: 'completed', members: { output: 'It is there.' } }
    }
    await response.runAlarm()
    const second = await asked(2)
    second.say('The')
    await storedText(response, '"delta":"The"')
    const third = await dieAndAsk(response, 3)
    expect(third.body).toBe(second.body)
    const last = await finish(response, third, 'There.')
    expect(last.output).toMatchObject([{ type: 'mcp_call' }, { type: 'message', status: 'completed' }])
    expect(last.output_text).toBe('There.')
  })

  it('after a tool is asked again, and the tool is not run again', async () => {
    const { caller, response, first } = await begun({}, OBJECTS.tools)
    toolRuns.answer = (run) => {
      run.result = { status: 'completed', members: { output: 'written' } }
    }
    first.call('hosted_write', '{"n":0}')
    first.finish('tool_calls')
    const second = await asked(2)
    const third = await dieAndAsk(response, 3)
    expect(third.body).toBe(second.body)
    expect(await finish(response, third, 'Done.')).toMatchObject({
      status: 'completed',
      output_text: 'Done.',
    })
    expect(toolRuns.all).toHaveLength(1)
    expect(await settledCalls(caller.organization)).toEqual([200, 200, 0, 200])
  })

  it('with the call of a tool that was read takes it back or closes it, and runs only the one of the repetition', async () => {
    const { response, first } = await begun({}, OBJECTS.tools)
    toolRuns.answer = (run) => {
      run.result = { status: 'completed', members: { output: 'written' } }
    }
    const reader = response.follow()
    first.call('hosted_write', '{"n":0}')
    await until(() => expect(reader.text).toContain('response.mcp_call_arguments.delta'))
    const second = await dieAndAsk(response, 2)
    second.call('hosted_write', '{"n":1}')
    second.finish('tool_calls')
    const last = await finish(response, await asked(3), 'Done.')
    expect(last.output).toMatchObject([
      { type: 'mcp_call', status: 'incomplete' },
      { type: 'mcp_call', status: 'completed' },
      { type: 'message' },
    ])
    expect(toolRuns.all.map(({ arguments: json }) => JSON.parse(json))).toEqual([{ n: 1 }])
  })

  it('is asked at most twice again', async () => {
    const { caller, response } = await begun()
    await dieAndAsk(response, 2)
    const third = await dieAndAsk(response, 3)
    third.say('Hel')
    await storedText(response, 'Hel')
    await abortAllDurableObjects()
    await response.runAlarm()
    expect(await response.ended()).toMatchObject({ status: 'failed', output_text: 'Hel' })
    expect(model.requests).toHaveLength(3)
    await response.runAlarm()
    expect(await settledCalls(caller.organization)).toEqual([0, 0, 0])
  })

  it('counts for its turn only', async () => {
    const { response } = await begun({ tools: [{ type: 'function', name: 'look' }] })
    await dieAndAsk(response, 2)
    const third = await dieAndAsk(response, 3)
    third.call('nothing_there', '{}')
    third.finish('tool_calls')
    await asked(4)
    await dieAndAsk(response, 5)
    const sixth = await dieAndAsk(response, 6)
    expect(await finish(response, sixth, 'Hello')).toMatchObject({ status: 'completed' })
  })

  it('leaves the turns after it what they may write', async () => {
    const { response, first } = await begun({ max_output_tokens: 50 })
    first.say('x'.repeat(120))
    await storedText(response, 'xxx')
    const second = await dieAndAsk(response, 2)
    expect(JSON.parse(second.body)).toMatchObject({ max_tokens: 50 })
    await finish(response, second, 'Hello')
  })

  it('fails in a response that does not repeat its turns', async () => {
    const caller = await newCaller()
    const response = newResponse(caller)
    await response.start({ stream: false, background: true })
    await asked(1)
    await abortAllDurableObjects()
    await response.runAlarm()
    expect(await response.ended()).toMatchObject({ status: 'failed' })
    expect(model.requests).toHaveLength(1)
  })

  it('is a compaction that is made again', async () => {
    const long = 'It was discussed at length. '.repeat(400)
    const { response, first } = await begun({
      context_management: [{ type: 'compaction', compact_threshold: 2_000 }],
      input: [
        { role: 'user', content: 'Plan the launch.' },
        { role: 'assistant', content: long },
        { role: 'user', content: 'And now?' },
      ],
    })
    expect(await phaseOf(response)).toBe('compacting')
    const second = await dieAndAsk(response, 2)
    expect(second.body).toBe(first.body)
    second.say('Launch on Tuesday.')
    second.finish()
    const turn = await asked(3)
    expect(turn.body).toContain('Launch on Tuesday.')
    expect(await finish(response, turn, 'Send the mails.')).toMatchObject({ status: 'completed' })
  })
})
