import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { readResponseStream } from '../harness/response-stream-text.ts'
import { answered, failed, inTurn } from '../harness/routed-model.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest } from '../harness/upstream.ts'
import {
  callAgent,
  endOf,
  readRunResponse,
  runEvents,
  runPath,
  shapeOf,
  textsOf,
} from './support/agent-responses.ts'
import { createAgent, definitionOf, endedRun, trigger } from './support/agents.ts'
import { addPolicy, codePolicy, someCode } from './support/dlp.ts'
import { callTool, framesOf, say, think } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'
import { checkedEvents, turnsScript } from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const management = () => administrator(gateway())
const says = (text: string) => inTurn(gateway(), answered('chat', text, true))
const runIdOf = ({ id }: { id: string }) => id.slice('resp_run_'.length)
const SSE = { headers: { 'content-type': 'text/event-stream' } }
const release = (signal: string) => upstreamControl(gateway()).release(signal)

/** A stream of a run that is being read. */
const follow = (who: Pick<Tenant, 'key'>, runId: string) =>
  openStream(`${gateway().baseUrl}${runPath(runId, '?stream=true')}`, bearer(who.key), '', 'GET')

/** The types of the events of a whole stream that are not of an item. */
const framing = (events: ReturnType<typeof readResponseStream>) =>
  shapeOf(events).filter((type) => !/item|part|text/.test(type))

describe.concurrent('a run that is watched', () => {
  it('fails with its error, and goes on where its failed step is repeated', async () => {
    const signal = marker()
    const script = await inTurn(gateway(), failed(400, '{"error":{"message":"not today","code":"no"}}'), [
      { waitForSignal: signal },
      ...answered('chat', 'Now.', true),
    ])
    const steps = [{ instructions: await says('One.') }, { instructions: script }]
    const { events, response } = await callAgent(tenant, await createAgent(tenant, definitionOf(steps)), {
      stream: true,
    })
    const runId = runIdOf(response)
    expect(framing(events)).toEqual(['response.created', 'response.in_progress', 'error', 'response.failed'])
    expect(events.at(-2)?.data.error).toMatchObject({ type: 'server_error', code: 'stream_error' })
    expect(response).toMatchObject({
      status: 'failed',
      error: { code: expect.any(String), message: expect.stringContaining('not today') },
      completed_at: null,
      usage: { total_tokens: 18 },
    })
    expect(textsOf(response)).toEqual(['One.'])
    expect(await runEvents(tenant, runId)).toEqual(events)
    expect(await readRunResponse(tenant, runId)).toEqual(response)

    await management().ask('POST', `${tenant.base}/runs/${runId}/rerun`)
    expect(await readRunResponse(tenant, runId)).toMatchObject({
      status: 'in_progress',
      error: null,
      usage: null,
    })
    const live = runEvents(tenant, runId)
    await release(signal)
    const again = await live
    // All but its end is what the first reader got.
    expect(again.slice(0, events.length - 2)).toEqual(events.slice(0, -2))
    expect(textsOf(endOf(again))).toEqual(['One.', 'Now.'])
    expect(endOf(again)).toMatchObject({ status: 'completed', error: null })
    expect(await readRunResponse(tenant, runId)).toEqual(endOf(again))
  })

  it('has the items of an attempt that is repeated, and then those of the next one', async () => {
    const broken = [
      SSE,
      { sse: framesOf('chat', [say('Half an ans')], undefined, false) },
      { end: true as const },
    ]
    const script = await inTurn(gateway(), broken, answered('chat', 'Whole.', true))
    const steps = [{ instructions: script, max_attempts: 2 }, { instructions: await says('After.') }]
    const agentId = await createAgent(tenant, definitionOf(steps))
    const { events, response } = await callAgent(tenant, agentId, { stream: true })
    expect(framing(events)).toEqual(['response.created', 'response.in_progress', 'response.completed'])
    expect(textsOf(response)).toEqual(['Half an ans', 'Whole.', 'After.'])
    expect(response.output.map(({ status }) => status)).toEqual(['incomplete', 'completed', 'completed'])
    expect(await runEvents(tenant, runIdOf(response))).toEqual(events)
    expect(await readRunResponse(tenant, runIdOf(response))).toEqual(response)
  })

  it('has no items of a step that was refused', async () => {
    const barred = await createTenant(gateway(), { models: [] })
    const agentId = await createAgent(barred, definitionOf([{ instructions: 'Hi' }]))
    const { events, response } = await callAgent(barred, agentId, { stream: true })
    expect(shapeOf(events)).toEqual(['response.created', 'response.in_progress', 'error', 'response.failed'])
    expect(response).toMatchObject({
      output: [],
      output_text: '',
      error: { code: 'model_access_denied' },
      usage: { total_tokens: 0 },
    })
    const read = await ask(barred.key, 'GET', runPath(runIdOf(response), '/input_items'))
    expect(expectJson<Json>(read)).toMatchObject({ object: 'list', data: [], has_more: false })
  })

  it.each(['its user', 'an administrator'])('ends when %s cancels it', async (who) => {
    const text = marker()
    const begun = framesOf('chat', [say('I begin')], undefined, false)
    const script = await registerScript(gateway(), [SSE, { sse: begun }, { waitForSignal: marker() }])
    const steps = [{ instructions: `${script} ${text}` }, { instructions: 'Never.' }]
    const { runId } = await trigger(tenant, await createAgent(tenant, definitionOf(steps)))
    await seenRequest(gateway(), text)
    const live = await follow(tenant, runId)
    await live.until((arrived) => arrived.includes('response.output_text.delta'))
    if (who === 'its user') {
      const cancelled = expectJson<ToldResponse>(await ask(tenant.key, 'POST', runPath(runId, '/cancel')))
      expect(cancelled).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'cancelled' } })
    } else await management().ask('POST', `${tenant.base}/runs/${runId}/cancel`)
    const events = readResponseStream(await live.end())
    expect(framing(events)).toEqual(['response.created', 'response.in_progress', 'response.completed'])
    const response = endOf(events)
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'cancelled' },
      error: null,
      output_text: 'I begin',
      output: [{ status: 'incomplete' }],
    })
    expect((await endedRun(tenant, runId)).status).toBe('cancelled')
    expect(await runEvents(tenant, runId)).toEqual(events)
    // It stays as it is.
    expect(expectJson(await ask(tenant.key, 'POST', runPath(runId, '/cancel')))).toEqual(response)
  })

  it('ends when its time is over', async () => {
    const script = await registerScript(gateway(), [SSE, { waitForSignal: marker() }])
    const definition = definitionOf([{ instructions: script }], { limits: { timeout_seconds: 1 } })
    const { response } = await callAgent(tenant, await createAgent(tenant, definition), { stream: true })
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_time' } })
  })

  it('that has ended stays as it is when it is cancelled', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: await says('Ended.') }]))
    const { response } = await callAgent(tenant, agentId)
    const cancelled = await ask(tenant.key, 'POST', runPath(runIdOf(response), '/cancel'))
    expect(expectJson(cancelled)).toEqual(response)
  })
})

describe('a run with tools and reasoning', () => {
  it('is one response with the items of all of its turns', async () => {
    const command = { commands: ['echo kept > note; cat note'], timeout_ms: null, max_output_length: null }
    const script = await turnsScript('messages', [
      [think('I should look.'), say('Let me see.'), callTool('shell', command)],
      [callTool('read_file', { path: 'note' })],
      [say('It is kept.')],
    ])
    const steps = [
      { instructions: script, model: 'scripted-messages', tools: { hosted: ['shell', 'files'] } },
      { instructions: await says('Thank you.') },
    ]
    const agentId = await createAgent(tenant, definitionOf(steps))
    const { events, response } = await callAgent(tenant, agentId, { stream: true })
    expect(response.output.map(({ type, status }) => [type, status])).toEqual([
      ['reasoning', 'completed'],
      ['message', 'completed'],
      ['shell_call', 'completed'],
      ['service_call', 'completed'],
      ['message', 'completed'],
      ['message', 'completed'],
    ])
    expect(response.output[2]).toMatchObject({ output: [{ stdout: 'kept\n' }] })
    expect(await runEvents(tenant, runIdOf(response))).toEqual(events)
    expect(await readRunResponse(tenant, runIdOf(response))).toEqual(response)
    const path = runPath(runIdOf(response), '?include[]=reasoning.encrypted_content')
    const [reasoning] = expectJson<ToldResponse>(await ask(tenant.key, 'GET', path)).output
    expect(reasoning).toHaveProperty('encrypted_content')
    expect(response.output[0]).not.toHaveProperty('encrypted_content')
  })
})

describe('under a policy that is made later, a run', () => {
  const code = someCode()

  it.each([true, false])('is redacted as its responses are (while it runs: %s)', async (isRunning) => {
    const own = await createTenant(gateway())
    const signal = marker()
    const text = marker()
    const last = await registerScript(gateway(), [
      { waitForSignal: signal },
      ...answered('chat', `Again ${code}.`, true),
    ])
    const steps = [{ instructions: await says(`It is ${code}.`) }, { instructions: `${last} ${text}` }]
    const { runId } = await trigger(own, await createAgent(own, definitionOf(steps)))
    await seenRequest(gateway(), text)
    if (!isRunning) {
      await release(signal)
      await endedRun(own, runId)
    }
    await addPolicy(own, codePolicy('redact'))
    const stream = runEvents(own, runId, { condensed: true })
    if (isRunning) await release(signal)
    const events = await stream
    const response = await readRunResponse(own, runId)
    expect(endOf(events)).toEqual(response)
    expect(JSON.stringify([events, response])).not.toContain(code)
    expect(textsOf(response)).toEqual([
      expect.stringMatching(/^It is .+\.$/),
      expect.stringMatching(/^Again .+\.$/),
    ])
    const numbers = events.map(({ data }) => Number(data.sequence_number))
    expect(numbers).toEqual([...new Set(numbers)].sort((left, right) => left - right))
  })
})

/** A step that begins with a text, and ends when the signal is given. */
async function halting(text: string): Promise<{ script: string; signal: string }> {
  const signal = marker()
  const [first, ...rest] = [framesOf('chat', [say(text)], [99], false), framesOf('chat', [say(', at last.')])]
  const script = await registerScript(gateway(), [
    SSE,
    { sse: first },
    { waitForSignal: signal },
    ...rest.map((sse) => ({ sse })),
    { end: true as const },
  ])
  return { script, signal }
}

describe('with other variables', () => {
  let address: StartedWorker

  beforeAll(async () => {
    address = await startWorker({ RESPONSE_WINDOW_MS: '1', STREAM_HEARTBEAT_MS: '100' })
  }, 60_000)
  afterAll(() => address.stop())

  it('a run after its windows has its live events without the deltas, with their numbers', async () => {
    const own = await createTenant(address)
    // Each step waits until its reader is there: its events are gone as soon as it has ended.
    const steps = await Promise.all(['One', 'Two'].map(async (text) => ({ text, ...(await halting(text)) })))
    const agentId = await createAgent(
      own,
      definitionOf(steps.map(({ script }) => ({ instructions: script }))),
      address,
    )
    const body = JSON.stringify({ model: `agent/${agentId}`, stream: true })
    const headers = { ...bearer(own.key), 'content-type': 'application/json' }
    const live = await openStream(`${address.baseUrl}/v1/responses`, headers, body)
    for (const { text, signal } of steps) {
      await live.until((arrived) => arrived.includes(`"delta":"${text}"`), 15_000)
      await release(signal)
    }
    const events = checkedEvents(await live.end())
    const response = endOf(events)
    expect(response.output_text).toBe('One, at last.Two, at last.')
    const kept = events.filter(({ event }) => !event.endsWith('.delta'))
    await vi.waitFor(
      async () =>
        expect(await runEvents(own, runIdOf(response), { ...address, condensed: true })).toEqual(kept),
      { timeout: 10_000 },
    )
    expect(await readRunResponse(own, runIdOf(response), address)).toEqual(response)
  })

  it('a reader of a run that waits gets heartbeats, until it leaves', async () => {
    // The first of its two calls starts the run.
    const limited = await createTenant(address, { organization: { rate_limit_per_minute: 1 } })
    const agentId = await createAgent(limited, definitionOf([{ instructions: 'Hi' }]), address)
    const body = JSON.stringify({ model: `agent/${agentId}`, input: '', stream: true })
    const headers = { ...bearer(limited.key), 'content-type': 'application/json' }
    const stream = await openStream(`${address.baseUrl}/v1/responses`, headers, body)
    await stream.until((text) => text.split(': keep-alive\n\n').length > 4)
    expect(readResponseStream(stream.text()).map(({ event }) => event)).toEqual([
      'response.created',
      'response.in_progress',
    ])
    const id = /"id":"resp_run_([^"]+)"/.exec(stream.text())?.[1]
    await administrator(address).ask('POST', `${limited.base}/runs/${id}/cancel`)
    const events = readResponseStream(await stream.end())
    expect(endOf(events)).toMatchObject({ status: 'incomplete', output: [] })
  })
})
