import { abortAllDurableObjects } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, expect, it, vi } from 'vitest'
import { Random } from '../faults/support/random.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  type Caller,
  type Follower,
  type LiveTrial,
  lastOf,
  newCaller,
  newResponse,
  OBJECTS,
  seedModel,
  settledCalls,
} from './durable-response-harness.ts'
import { LEASE_MS } from './ledger-harness.ts'
import { type ModelRequest, useScriptedModel } from './scripted-model.ts'
import { toolRuns } from './tool-response-stream.ts'

const RUNS = Number(env.RESPONSE_FAULT_RUNS)
const TOGETHER = 10

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const pick = (random: Random) => random.pick(['hosted_read', 'hosted_write', 'nothing_there'])

/** A response of several turns: each but the last one calls a tool, or what is none. */
interface Trial {
  response: LiveTrial
  calls: string[]
  /** Whether it is that of a step, which asks an interrupted turn again. */
  repeats: boolean
  /** Whether its events are read while it runs. */
  isRead: boolean
  reader: Follower | null
}

/** How many of its calls a request says were answered: the scripted model goes on from there. */
function turnOf({ body }: ModelRequest): number {
  const { messages } = JSON.parse(body) as { messages: Array<{ role: string }> }
  return messages.filter(({ role }) => role === 'tool').length
}

const trialsById = new Map<string, Trial>()

/** Each turn says its number, and calls what comes next. */
function answerAll(): void {
  model.answer = (request) => {
    const [, id, pause] = /(resp_\w+) pause=(\d+)/.exec(request.body) ?? []
    const calls = trialsById.get(id ?? '')?.calls ?? []
    const turn = turnOf(request)
    request.pause(Number(pause))
    request.say(`t${turn};`)
    request.pause(Number(pause))
    const call = calls[turn]
    if (call) request.call(call, JSON.stringify({ id, turn }))
    request.finish(call ? 'tool_calls' : 'stop')
  }
  toolRuns.answer = (run) => {
    setTimeout(() => {
      run.result = { status: 'completed', members: { output: 'found' } }
    }, 3)
  }
}

function newTrial(caller: Caller, random: Random): Trial {
  const calls = Array.from({ length: random.integer(1, 3) }, () => pick(random))
  const repeats = random.chance(0.5)
  const response = newResponse(caller, OBJECTS.tools, null, undefined, { repeatsTurns: repeats })
  const trial = { response, calls, repeats, isRead: !repeats || random.chance(0.5), reader: null }
  trialsById.set(trial.response.responseId, trial)
  return trial
}

async function run(trial: Trial, pause: number): Promise<void> {
  const { response, repeats, isRead } = trial
  const input = `${response.responseId} pause=${pause}`
  const form = repeats ? { stream: false, background: true } : {}
  const started = await response.start({ input, ...form }).catch(() => null)
  if (started?.error !== null || !isRead) return
  trial.reader = response.follow()
  await trial.reader.done
}

/** One end that agrees with everything that was seen: whole, or as far as it came. @returns its status */
async function check({ response, calls, repeats, isRead, reader }: Trial): Promise<string> {
  const seen = reader?.text ?? ''
  if ((await response.snapshot()) === null) {
    expect(seen).toBe('')
    return 'none'
  }
  await response.ended()
  const text = await response.replay()
  expect(text.startsWith(seen)).toBe(true)
  const last = lastOf(text)
  const turns = Array.from({ length: calls.length + 1 }, (_, turn) => `t${turn};`)
  // Of a turn that is asked again, what a reader has got stays.
  const said = repeats && isRead ? last.output_text.replace(/(t\d;)\1+/g, '$1') : last.output_text
  if (last.status === 'completed') expect(said).toBe(turns.join(''))
  else expect(turns.join('').startsWith(said)).toBe(true)
  expect(await response.snapshot()).toEqual(last as never)
  await vi.waitFor(async () => expect(await response.settle()).toBe('settled'))
  expect(await response.row()).toMatchObject({ status: last.status })
  return last.status
}

/** Only a tool that may not be run twice fails a response that repeats its turns. */
function checkRepeated({ repeats, calls }: Trial, status: string): void {
  if (repeats && status === 'failed') expect(calls).toContain('hosted_write')
}

/** What may not be run twice is not, and what a response has a result of was run. */
function checkTools({ response, calls }: Trial, status: string): void {
  const runs = toolRuns.all.map((one) => JSON.parse(one.arguments) as { id: string; turn: number })
  for (const [turn, name] of calls.entries()) {
    const count = runs.filter((one) => one.id === response.responseId && one.turn === turn).length
    if (name === 'hosted_write') expect(count).toBeLessThanOrEqual(1)
    if (status === 'completed') expect(count > 0).toBe(name !== 'nothing_there')
  }
}

it('objects that die anywhere between and in turns go on or end once, and every call is settled once', async () => {
  answerAll()
  const random = new Random(7)
  const statuses = new Map<string, number>()
  let resumed = 0
  for (let done = 0; done < RUNS; done += TOGETHER) {
    const caller = await newCaller()
    const trials = Array.from({ length: TOGETHER }, () => newTrial(caller, random))
    const wanted = model.requests.length + random.integer(TOGETHER / 2, TOGETHER * 2)
    const running = Promise.all(trials.map((trial) => run(trial, random.integer(0, 4))))
    await vi.waitFor(() => expect(model.requests.length).toBeGreaterThanOrEqual(wanted), {
      timeout: 10_000,
      interval: 2,
    })
    await wait(random.integer(0, 20))
    await abortAllDurableObjects()
    await running
    for (const trial of trials) {
      const status = await check(trial)
      checkTools(trial, status)
      checkRepeated(trial, status)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      const head = (await trial.response.stored('head')) as { restarts: number } | null
      if (status === 'completed' && (head?.restarts ?? 0) > 0) resumed += 1
    }
    passTime(20 * LEASE_MS)
    await settledCalls(caller.organization)
  }
  // Something of everything has to have happened.
  expect(statuses.get('completed') ?? 0).toBeGreaterThan(RUNS / 20)
  expect(statuses.get('failed') ?? 0).toBeGreaterThan(RUNS / 20)
  expect(resumed).toBeGreaterThan(RUNS / 30)
}, 240_000)
