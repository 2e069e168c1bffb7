import { abortAllDurableObjects } from 'cloudflare:test'
import { beforeAll, describe, expect, it } from 'vitest'
import { keyIdOf } from '../../src/identity/principal.ts'
import { useDatabaseGate } from './database-gate.ts'
import {
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
import { useScriptedModel } from './scripted-model.ts'
import { toolRuns } from './tool-response-stream.ts'

// What an object does that dies around a compaction, and compactions between the turns of a response.

const gate = useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
useToolRuns()

const LONG_TEXT = 'It was discussed at length. '.repeat(400)
const MANAGED = { context_management: [{ type: 'compaction', compact_threshold: 2_000 }] }
const CONVERSATION = {
  ...MANAGED,
  input: [
    { role: 'user', content: 'Plan the launch.' },
    { role: 'assistant', content: LONG_TEXT },
    { role: 'user', content: 'And now?' },
  ],
}

const asked = requestOf(model)

async function compacting() {
  const caller = await newCaller()
  const response = newResponse(caller)
  const started = response.start(CONVERSATION)
  const summary = await asked(1)
  return { caller, response, started, summary }
}

/** A response that is compacted; nothing of its turn was done. */
async function compacted() {
  const { caller, response, started, summary } = await compacting()
  summary.say('Launch on Tuesday.')
  await started
  const reader = response.follow()
  await until(async () => expect(await phaseOf(response)).toBe('compacting'))
  const ledger = holdLedger()
  // Further lives ask Postgres what their caller may do.
  gate.heldText = '\\"api_keys\\"'
  gate.held = true
  summary.finish()
  await until(async () => expect(await phaseOf(response)).toBe('between_turns'))
  await abortAllDurableObjects()
  ledger.release()
  return { caller, response, reader }
}

describe('an object that dies between a compaction and its turn', () => {
  it('goes on with the turn, and compacts nothing again', async () => {
    const { caller, response, reader } = await compacted()
    await abortAllDurableObjects()
    gate.held = false
    const again = response.follow()
    const turn = await asked(2)
    expect(turn.body).toContain('Launch on Tuesday.')
    expect(turn.body).toContain('And now?')
    expect(turn.body).not.toContain('discussed at length')
    turn.say('Send the mails.')
    turn.finish()
    expect(await again.done).toBe(true)
    expect(again.text.startsWith(reader.text)).toBe(true)
    const last = lastOf(again.text)
    expect(last).toMatchObject({ status: 'completed', output_text: 'Send the mails.' })
    expect(last.output).toMatchObject([{ type: 'compaction' }, { type: 'message' }])
    expect(last.usage).toMatchObject({ input_tokens: 10, output_tokens: 14 })
    expect(await settledCalls(caller.organization)).toEqual([200, 200])
  })

  it('makes no turn for a caller without rights', async () => {
    const { caller, response } = await compacted()
    await query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', keyIdOf(caller.principal))
    await abortAllDurableObjects()
    gate.held = false
    const { last } = await replayed(response)
    expect(last).toMatchObject({ status: 'failed', error: { code: 'key_revoked' } })
    expect(model.requests).toHaveLength(1)
    expect(await settledCalls(caller.organization)).toEqual([200, 401])
  })
})

describe('an object that dies in a compaction', () => {
  it('has failed, and charges the one call', async () => {
    const { caller, response, started, summary } = await compacting()
    summary.say('Launch on')
    await started
    await until(async () => expect(await phaseOf(response)).toBe('compacting'))
    await abortAllDurableObjects()
    const { last } = await replayed(response)
    expect(last).toMatchObject({ status: 'failed', output: [], error: { code: 'server_error' } })
    expect(model.requests).toHaveLength(1)
    await response.runAlarm()
    expect(await settledCalls(caller.organization)).toEqual([0])
    const usage = last.usage as { input_tokens: number }
    expect(usage.input_tokens).toBeGreaterThan(1_000)
  })

  it('is cancelled', async () => {
    const { caller, response, started, summary } = await compacting()
    summary.say('Launch on')
    await started
    expect(await response.cancel()).toMatchObject({ status: 'incomplete', output: [] })
    expect(summary.aborted).toBe(true)
    expect(await settledCalls(caller.organization)).toHaveLength(1)
  })
})

it('compacts between turns when results of tools made the context grow', async () => {
  const caller = await newCaller()
  const response = newResponse(caller, OBJECTS.tools)
  toolRuns.answer = (run) => {
    run.result = { status: 'completed', members: { output: `Result ${run.arguments}. ${LONG_TEXT}` } }
  }
  await response.start({ ...MANAGED, input: 'Research it.' })
  const reader = response.follow()
  for (const turn of [1, 2]) {
    const request = await asked(turn)
    expect(request.body).not.toContain('You write the summary')
    request.call('hosted_read', `{"n":${turn}}`)
    request.finish('tool_calls')
  }
  const summary = await asked(3)
  expect(summary.body).toContain('You write the summary')
  expect(summary.body).toContain('Research it.')
  expect(summary.body).toContain('Result {\\"n\\":1}')
  expect(summary.body).not.toContain('Result {\\"n\\":2}')
  summary.say('The first result is known.')
  summary.finish()
  const turn = await asked(4)
  expect(turn.body).toMatch(/The first result is known.*Research it\..*Result \{\\"n\\":2\}/)
  expect(turn.body).not.toContain('Result {\\"n\\":1}')
  turn.say('Done.')
  turn.finish()
  expect(await reader.done).toBe(true)
  const last = lastOf(reader.text)
  expect(last).toMatchObject({ status: 'completed', output_text: 'Done.' })
  expect((last.output as Array<{ type: string }>).map(({ type }) => type)).toEqual([
    'mcp_call',
    'mcp_call',
    'compaction',
    'message',
  ])
  expect(last.usage).toMatchObject({ input_tokens: 20, output_tokens: 28 })
  expect(await settledCalls(caller.organization)).toEqual([200, 200, 200, 200, 200, 200])
})
