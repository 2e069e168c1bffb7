import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { untrusted } from '../../src/responses/model/untrusted.ts'
import { DEFAULT_TOOL_RIGHTS } from '../harness/tool-rights.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  type Caller,
  lastOf,
  newCaller,
  newResponse,
  OBJECTS,
  query,
  requestOf,
  seedModel,
  until,
  useToolRuns,
} from './durable-response-harness.ts'
import { type ModelRequest, useScriptedModel } from './scripted-model.ts'
import { toolRuns } from './tool-response-stream.ts'

// Calls of tools that the service runs: who may make them, how many, and what of them is recorded.

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
useToolRuns((run) => {
  run.result = { status: 'completed', members: { output: `result of ${run.callId}` } }
})

const asked = requestOf(model)

interface SentBody {
  messages: Array<Record<string, unknown>>
  tools?: Array<{ function: { name: string } }>
  tool_choice?: unknown
}
const bodyOf = (request: ModelRequest): SentBody => JSON.parse(request.body)
const offeredTo = (request: ModelRequest) => bodyOf(request).tools?.map((tool) => tool.function.name) ?? []

/** A response in which the model calls these tools once and then ends. */
async function calling(caller: Caller, settings: Record<string, unknown>, ...names: string[]) {
  const response = newResponse(caller, OBJECTS.tools)
  await response.start(settings)
  const reader = response.follow()
  const first = await asked(1)
  for (const [index, name] of names.entries()) first.call(name, `{"n":${index}}`, index)
  first.finish('tool_calls')
  const second = await asked(2)
  second.finish()
  expect(await reader.done).toBe(true)
  return { response, first, second, last: lastOf(reader.text), text: reader.text }
}

const resultsIn = (request: ModelRequest) =>
  bodyOf(request).messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : []))

/** Waits for the first of them: the closing of a call reaches the ledger with a commit that no answer waits for. */
async function toolRecords({ organization, owner }: Caller) {
  return vi.waitFor(
    async () => {
      await organization.ledger.flush()
      const rows = await query(
        'SELECT body FROM audit_records WHERE organization_id = $1 ORDER BY sequence',
        owner.organizationId,
      )
      const records = rows
        .map(({ body }) => JSON.parse(String(body)))
        .filter(({ tool }) => tool !== undefined)
      expect(records.length).toBeGreaterThan(0)
      return records
    },
    { timeout: 10_000 },
  )
}

describe('a tool of this service', () => {
  it('is offered and shown beside the tools of the caller', async () => {
    const caller = await newCaller()
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object' } }]
    const { first, last } = await calling(caller, { tools }, 'hosted_read')
    expect(offeredTo(first)).toEqual(['look', 'hosted_read', 'hosted_write'])
    expect(last.tools).toEqual([
      expect.objectContaining({ name: 'look' }),
      { type: 'shell' },
      { type: 'computer' },
    ])
  })

  it('is hidden by a function of the caller with its name', async () => {
    const caller = await newCaller()
    const tools = [{ type: 'function', name: 'hosted_read', parameters: { type: 'object' } }]
    const response = newResponse(caller, OBJECTS.tools)
    await response.start({ tools })
    const reader = response.follow()
    const first = await asked(1)
    expect(offeredTo(first)).toEqual(['hosted_read', 'hosted_write'])
    first.call('hosted_read', '{}')
    first.finish('tool_calls')
    expect(await reader.done).toBe(true)
    expect(lastOf(reader.text)).toMatchObject({ status: 'incomplete', tools: [{}, { type: 'shell' }] })
    expect(toolRuns.all).toEqual([])
  })

  it('is shown once where the caller lists it', async () => {
    const { last } = await calling(
      await newCaller(),
      { tools: [{ type: 'computer_use_preview' }] },
      'hosted_read',
    )
    expect(last.tools).toEqual([{ type: 'computer_use_preview' }, { type: 'shell' }])
  })

  it('has a record of its own, with its name and what was inspected', async () => {
    const caller = await newCaller()
    await calling(caller, {}, 'hosted_write')
    const [record, ...others] = await toolRecords(caller)
    expect(others).toEqual([])
    expect(record).toMatchObject({
      kind: 'call',
      tool: 'hosted_write',
      modelId: null,
      status: 200,
      errorCode: null,
      cost: 0,
      actor: { userId: caller.owner.userId },
    })
    const { request, response } = record
    for (const counts of [request, response]) {
      expect(counts.inspected + counts.uninspected).toBe(counts.released + counts.withheld)
      expect(counts.inspected).toBeGreaterThan(0)
    }
  })

  it('that is switched off is not offered, and its call is refused', async () => {
    const caller = await newCaller()
    caller.principal.tools = { ...DEFAULT_TOOL_RIGHTS, off: ['shell'] }
    const { first, second, last } = await calling(caller, {}, 'hosted_write')
    expect(offeredTo(first)).toEqual(['hosted_read'])
    expect(last.tools).toEqual([{ type: 'computer' }])
    expect(resultsIn(second)).toEqual(['There is no tool named hosted_write.'])
    expect(toolRuns.all).toEqual([])
  })

  it('that is switched off while its response runs is refused, with a record', async () => {
    const caller = await newCaller()
    const response = newResponse(caller, OBJECTS.tools)
    await response.start()
    const reader = response.follow()
    const first = await asked(1)
    const settings = { off: [{ subject_type: 'user', subject_id: caller.owner.userId, tools: ['shell'] }] }
    const { web, shell } = DEFAULT_TOOL_RIGHTS
    const [row] = await query(
      'UPDATE organizations SET tool_settings = $2::jsonb, epoch = epoch + 1 WHERE id = $1 RETURNING epoch',
      caller.owner.organizationId,
      JSON.stringify({ ...settings, web, shell }),
    )
    await caller.organization.ledger.learnEpoch(Number(row?.epoch))
    first.call('hosted_write', '{}')
    first.finish('tool_calls')
    const second = await asked(2)
    expect(resultsIn(second)).toEqual(['The tool hosted_write is switched off for this caller.'])
    second.finish()
    expect(await reader.done).toBe(true)
    expect(toolRuns.all).toEqual([])
    expect(await toolRecords(caller)).toMatchObject([{ status: 403, errorCode: 'tool_not_allowed' }])
  })
})

describe('max_tool_calls', () => {
  it('ends the execution of tools, and the model is told', async () => {
    const { second, last } = await calling(
      await newCaller(),
      { max_tool_calls: 1 },
      'hosted_read',
      'hosted_write',
    )
    expect(toolRuns.all).toHaveLength(1)
    expect(resultsIn(second)[1]).toContain('max_tool_calls')
    expect(last.output).toMatchObject([{ status: 'completed' }, { status: 'failed' }])
  })
})

describe('tool_choice', () => {
  it.each([
    [{ type: 'allowed_tools', mode: 'auto', tools: [{ type: 'computer' }] }, ['hosted_read'], 'auto'],
    [{ type: 'allowed_tools', mode: 'auto', tools: [{ type: 'shell' }] }, ['hosted_write'], 'auto'],
    [{ type: 'computer' }, ['hosted_read'], { type: 'function', function: { name: 'hosted_read' } }],
    [
      { type: 'function', name: 'hosted_write' },
      ['hosted_write'],
      { type: 'function', function: { name: 'hosted_write' } },
    ],
    ['none', [], 'none'],
  ] as const)('%o lets only those tools run', async (choice, allowed, sent) => {
    const { first, second } = await calling(
      await newCaller(),
      { tool_choice: choice },
      'hosted_read',
      'hosted_write',
    )
    expect(bodyOf(first).tool_choice).toEqual(sent)
    // A call is forced once.
    if (choice !== 'none') expect(bodyOf(second).tool_choice ?? 'auto').toBe('auto')
    expect(toolRuns.all).toHaveLength(allowed.length)
    expect(resultsIn(second).filter((text) => String(text).includes('may not be used now'))).toHaveLength(
      2 - allowed.length,
    )
  })
})

describe('calls of one turn', () => {
  it('that only read run at the same time, and others one after the other', async () => {
    toolRuns.answer = () => {}
    const response = newResponse(await newCaller(), OBJECTS.tools)
    await response.start()
    const reader = response.follow()
    const first = await asked(1)
    const names = ['hosted_read', 'hosted_read', 'hosted_write', 'hosted_write']
    for (const [index, name] of names.entries()) first.call(name, `{"n":${index}}`, index)
    first.finish('tool_calls')
    const numbers = () => toolRuns.all.map((run) => (JSON.parse(run.arguments) as { n: number }).n).sort()
    const running = (...expected: number[]) => until(() => expect(numbers()).toEqual(expected))
    const answer = (n: number) => {
      const run = toolRuns.all.find((each) => each.arguments === `{"n":${n}}`)
      if (run) run.result = { status: 'completed', members: { output: `done ${n}` } }
    }
    await running(0, 1)
    answer(1)
    answer(0)
    await running(0, 1, 2)
    answer(2)
    await running(0, 1, 2, 3)
    answer(3)
    const second = await asked(2)
    expect(resultsIn(second)).toEqual([
      untrusted('the tool hosted_read', 'done 0'),
      untrusted('the tool hosted_read', 'done 1'),
      untrusted('the tool hosted_write', 'done 2'),
      untrusted('the tool hosted_write', 'done 3'),
    ])
    second.finish()
    expect(await reader.done).toBe(true)
  })
})

describe('a tool that ignores its signal', () => {
  it('does not keep a response that is cancelled, and its call is settled', async () => {
    toolRuns.answer = (run) => {
      run.ignoresSignal = true
    }
    const caller = await newCaller()
    const response = newResponse(caller, OBJECTS.tools)
    await response.start()
    const reader = response.follow()
    const first = await asked(1)
    first.call('hosted_write', '{}')
    first.finish('tool_calls')
    await until(() => expect(toolRuns.all).toHaveLength(1))
    expect(await response.cancel()).toMatchObject({ status: 'incomplete' })
    expect(await reader.done).toBe(true)
    await until(async () =>
      expect(await toolRecords(caller)).toMatchObject([{ status: 499, errorCode: 'client_left' }]),
    )
  })
})

describe('many calls of one turn', () => {
  it('that only read run one after the other with parallel_tool_calls: false', async () => {
    let most = 0
    toolRuns.answer = (run) => {
      const running = toolRuns.all.filter(({ result }) => result === null).length
      most = Math.max(most, running)
      setTimeout(() => {
        run.result = { status: 'completed', members: { output: 'x' } }
      }, 3)
    }
    const names = ['hosted_read', 'hosted_read', 'hosted_read']
    await calling(await newCaller(), {}, ...names)
    expect(most).toBe(3)
    model.requests.length = 0
    toolRuns.all.length = 0
    most = 0
    await calling(await newCaller(), { parallel_tool_calls: false }, ...names)
    expect(toolRuns.all).toHaveLength(3)
    expect(most).toBe(1)
  })

  it('run six at a time, and no more than the limit of a turn', async () => {
    const [most, running] = [{ count: 0 }, new Set<unknown>()]
    toolRuns.answer = (run) => {
      running.add(run)
      most.count = Math.max(most.count, running.size)
      setTimeout(() => {
        running.delete(run)
        run.result = { status: 'completed', members: { output: 'done' } }
      }, 2)
    }
    const names = Array.from({ length: 70 }, () => 'hosted_read')
    const { second } = await calling(await newCaller(), {}, ...names)
    expect(most.count).toBe(6)
    expect(toolRuns.all).toHaveLength(64)
    expect(resultsIn(second).filter((text) => String(text).includes('limit of tool calls'))).toHaveLength(6)
  })

  it('whose results are too large are cut off, and the model is told', async () => {
    toolRuns.answer = (run) => {
      const size = run.arguments === '{"n":0}' ? 2_000_000 : 900_000
      run.result = { status: 'completed', members: { output: 'x'.repeat(size) } }
    }
    const names = Array.from({ length: 6 }, () => 'hosted_read')
    const { second } = await calling(await newCaller(), {}, ...names)
    const results = resultsIn(second).map(String)
    expect(results[0]).toContain('is longer than 1048576 bytes')
    expect(results.filter((text) => text.includes('no room left'))).toHaveLength(1)
  })
})

describe('the files of a response', () => {
  const WINDOW_MS = 15 * 60_000
  /** The script of tools. @returns the paths that it was asked for. */
  function toolsScript(status: () => number): string[] {
    const paths: string[] = []
    vi.spyOn(env.TOOLS, 'fetch').mockImplementation(async (request) => {
      paths.push(decodeURIComponent(new URL(String(request)).pathname))
      return Response.json({ removed: true }, { status: status() })
    })
    return paths
  }
  const removalOf = ({ owner }: Caller, responseId: string) =>
    `/workspaces/${owner.organizationId}:${owner.userId}:${responseId}/remove`

  it('without a conversation are removed at its end, once', async () => {
    const caller = await newCaller()
    const paths = toolsScript(() => 200)
    const { response } = await calling(caller, { store: false }, 'hosted_read')
    await until(() => expect(paths).toEqual([removalOf(caller, response.responseId)]))
    await until(async () =>
      expect(await response.stored('head')).toMatchObject({ filesGone: true, unsettled: [] }),
    )
    passTime(WINDOW_MS)
    await response.runAlarm()
    expect(await response.runAlarm()).toBe(false)
    expect(paths).toHaveLength(1)
  })

  it('without a conversation are removed after its window if the script of tools is away', async () => {
    const caller = await newCaller()
    let status = 503
    const paths = toolsScript(() => status)
    const { response } = await calling(caller, { store: false }, 'hosted_read')
    await until(() => expect(new Set(paths)).toEqual(new Set([removalOf(caller, response.responseId)])))
    expect(await response.snapshot()).not.toBeNull()
    passTime(WINDOW_MS)
    await response.runAlarm()
    expect(await response.snapshot()).toBeNull()
    paths.length = 0
    status = 200
    await response.runAlarm()
    expect(paths).toEqual([removalOf(caller, response.responseId)])
    expect(await response.runAlarm()).toBe(false)
  })

  it('without a conversation are removed with it', async () => {
    const caller = await newCaller()
    const { response } = await calling(caller, { store: false }, 'hosted_read')
    const paths = toolsScript(() => 200)
    expect(await response.remove()).toBe(true)
    expect(paths).toContain(removalOf(caller, response.responseId))
  })

  const HOUR_MS = 3_600_000
  const onConnection = (caller: Caller, continues: string | null) =>
    newResponse(caller, OBJECTS.tools, null, { continues, until: Date.now() + HOUR_MS })
  /** A response of a connection that may have written files, and has ended. */
  async function heldResponse(caller: Caller) {
    const response = onConnection(caller, null)
    model.answer = (request) => {
      if (!request.body.includes('"tool"')) request.call('hosted_write', '{}')
      request.finish(request.body.includes('"tool"') ? 'stop' : 'tool_calls')
    }
    await response.start({ store: false })
    await response.ended()
    model.answer = () => {}
    model.requests.length = 0
    return response
  }
  const release = ({ client }: { client: ReturnType<typeof newResponse>['client'] }, { owner }: Caller) =>
    client.release(owner)

  it('of a connection belong to the response that continues, also when it dies', async () => {
    const caller = await newCaller()
    const paths = toolsScript(() => 200)
    const first = await heldResponse(caller)
    const second = onConnection(caller, first.responseId)
    await second.start({ store: false, previous_response_id: first.responseId })
    await asked(1)
    await release(first, caller)
    await runInDurableObject(second.stub(), (_, state) => state.abort('the test ends this object')).catch(
      () => {},
    )
    expect(await second.ended()).toMatchObject({ status: 'failed' })
    expect(paths).toEqual([])
    await release(second, caller)
    await until(() => expect(paths).toEqual([removalOf(caller, first.responseId)]))
  })

  it('of a connection are removed with a response that was refused after it got them', async () => {
    const caller = await newCaller()
    const paths = toolsScript(() => 200)
    const first = await heldResponse(caller)
    const second = onConnection(caller, first.responseId)
    model.answer = (request) => request.breakOff()
    const started = await second.start({ store: false, previous_response_id: first.responseId })
    expect(started).toMatchObject({ previousResponseId: first.responseId })
    if (started.error === null && 'held' in started) await second.remove()
    await until(() => expect(paths).toContain(removalOf(caller, first.responseId)))
    paths.length = 0
    await release(first, caller)
    expect(paths).toEqual([])
  })

  it('of a connection that is not heard of again are removed when it is too old', async () => {
    const caller = await newCaller()
    const paths = toolsScript(() => 200)
    const first = await heldResponse(caller)
    passTime(WINDOW_MS)
    await first.runAlarm()
    expect(paths).toEqual([])
    passTime(HOUR_MS)
    await first.runAlarm()
    expect(paths).toEqual([removalOf(caller, first.responseId)])
    expect(await first.runAlarm()).toBe(false)
  })

  it('of a conversation stay', async () => {
    const caller = await newCaller()
    const { response } = await calling(caller, {}, 'hosted_read')
    const paths = toolsScript(() => 200)
    expect(await response.settle()).toBe('settled')
    passTime(WINDOW_MS)
    await response.runAlarm()
    expect(await response.snapshot()).toBeNull()
    expect(paths).toEqual([])
  })
})
