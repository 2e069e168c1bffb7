import { abortAllDurableObjects } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { Random } from '../faults/support/random.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  type Caller,
  type Follower,
  type LiveTrial,
  lastOf,
  newCaller,
  newResponse,
  seedModel,
  settledCalls,
  writerOf,
} from './durable-response-harness.ts'
import { LEASE_MS } from './ledger-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

const RUNS = Number(env.RESPONSE_FAULT_RUNS)
const TOGETHER = 10

const gate = useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

interface Trial {
  response: LiveTrial
  said: string
  reader: Follower | null
  /** What its owner was told of the removal that it asked for: nothing when the object died meanwhile. */
  removal: 'none' | 'asked' | 'removed'
}

/** Each answer is as long and as slow as its request says. */
function answerAll(): void {
  model.answer = (request) => {
    const [, words, pause] = /words=(\d+) pause=(\d+)/.exec(request.body) ?? []
    for (let word = 0; word < Number(words); word += 1) {
      request.pause(Number(pause))
      request.say(` word${word}`)
    }
    request.finish()
  }
}

/** One response that is begun, sometimes twice, and perhaps ended by its owner. Never throws. */
async function run(trial: Trial, random: Random, request: object): Promise<void> {
  const { response } = trial
  const starts = Array.from({ length: random.chance(0.3) ? 2 : 1 }, () => response.start(request))
  const acts = { pause: random.integer(0, 25), act: random.integer(0, 9) }
  const results = await Promise.all(starts.map((start) => start.catch(() => null)))
  const begun = results.filter((result) => result?.error === null)
  expect(begun.length).toBeLessThanOrEqual(1)
  if (begun.length === 0) return
  trial.reader = response.follow()
  await wait(acts.pause)
  if (acts.act === 0) await response.cancel().catch(() => null)
  if (acts.act === 1) {
    trial.removal = 'asked'
    if (await response.remove().catch(() => false)) trial.removal = 'removed'
  }
  if (acts.act === 2) await response.runAlarm().catch(() => false)
  await trial.reader.done
}

/** What is so after the crash, once Postgres is there: an end that agrees with everything that was seen, or nothing. */
async function check({ response, said, reader, removal }: Trial): Promise<void> {
  const seen = reader?.text ?? ''
  const snapshot = await response.snapshot()
  if (removal === 'removed') expect(snapshot).toBeNull()
  if (snapshot === null) {
    expect(seen === '' || removal !== 'none', `gone: ${seen.slice(-200)}`).toBe(true)
    await vi.waitFor(async () => {
      await response.runAlarm()
      const { status, conversation_id: conversation } = (await response.row()) ?? {}
      // What was written before it was removed is the route's to delete.
      if (removal === 'none') expect(status).toBeUndefined()
      expect(status).not.toBe('in_progress')
      if (conversation) expect(await writerOf(conversation)).toBeNull()
    })
    return
  }
  await response.ended()
  const text = await response.replay()
  expect(text.startsWith(seen)).toBe(true)
  const last = lastOf(text)
  expect(said.startsWith(last.output_text)).toBe(true)
  if (last.status === 'completed') expect(last.output_text).toBe(said)
  expect(await response.snapshot()).toEqual(last as never)
  await vi.waitFor(async () => expect(await response.settle()).toBe('settled'))
  const row = await response.row()
  expect(row).toMatchObject({ status: last.status, last_sequence: text.match(/^id: /gm)?.length })
  expect(await writerOf(row?.conversation_id ?? '')).toBeNull()
}

function newTrial(caller: Caller, random: Random) {
  const words = random.integer(0, 20)
  const trial: Trial = {
    response: newResponse(caller),
    said: Array.from({ length: words }, (_, word) => ` word${word}`).join(''),
    reader: null,
    removal: 'none',
  }
  const input = `${trial.response.responseId} words=${words} pause=${random.integer(0, 4)}`
  return { trial, input }
}

/** Waits until some of the newest responses have got as far as the model, or nearly. */
async function someAsked(before: number, random: Random): Promise<void> {
  const wanted = before + random.integer(1, TOGETHER - 1)
  await vi.waitFor(() => expect(model.requests.length).toBeGreaterThanOrEqual(wanted), {
    timeout: 20_000,
    interval: 2,
  })
}

describe('objects', () => {
  it('that die anywhere, with Postgres away or not, leave one end of each response, or nothing, and one settlement of each call', async () => {
    answerAll()
    const random = new Random(1)
    const statuses = new Map<string, number>()
    for (let done = 0; done < RUNS; done += TOGETHER) {
      const caller = await newCaller()
      const trials = Array.from({ length: TOGETHER }, () => newTrial(caller, random))
      const asking = model.requests.length
      const running = Promise.all(trials.map(({ trial, input }) => run(trial, random, { input })))
      if (random.chance(0.7)) await someAsked(asking, random)
      await wait(random.integer(0, 40))
      if (random.chance(0.4)) gate.mode = random.pick(['away', 'answer_lost'])
      await wait(random.integer(0, 60))
      if (random.chance(0.85)) await abortAllDurableObjects()
      await running
      gate.mode = 'open'
      for (const { trial } of trials) {
        await check(trial)
        const { status = 'none' } = (await trial.response.row()) ?? {}
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
      const asked = trials.map(
        ({ trial }) => model.requests.filter(({ body }) => body.includes(trial.response.responseId)).length,
      )
      expect(Math.max(...asked)).toBeLessThanOrEqual(1)
      passTime(20 * LEASE_MS)
      const calls = await settledCalls(caller.organization)
      expect(calls.length).toBeGreaterThanOrEqual(asked.filter((count) => count === 1).length)
      expect(calls.length).toBeLessThanOrEqual(TOGETHER)
    }
    // Something of everything has to have happened.
    for (const status of ['none', 'completed', 'failed']) {
      expect(statuses.get(status) ?? 0, status).toBeGreaterThan(RUNS / 20 - 1)
    }
  }, 240_000)

  it('that are begun by several at once are begun by one', async () => {
    answerAll()
    const random = new Random(2)
    for (let done = 0; done < RUNS; done += TOGETHER) {
      const caller = await newCaller()
      const trials = Array.from({ length: TOGETHER }, () => newTrial(caller, random))
      await Promise.all(trials.map(({ trial, input }) => beginAgain(trial, random, { input })))
      await vi.waitFor(async () => expect(await settledCalls(caller.organization)).toHaveLength(TOGETHER))
      expect(await settledCalls(caller.organization)).toEqual(trials.map(() => 200))
    }
  }, 240_000)
})

/** Several producers: at the same moment, while the response runs, and when it has ended. */
async function beginAgain({ response, said }: Trial, random: Random, request: object): Promise<void> {
  const pauses = [0, 0, random.integer(0, 60)]
  const results = await Promise.all(
    pauses.map(async (pause) => {
      await wait(pause)
      return response.start(request)
    }),
  )
  expect(results.filter(({ error }) => error === null)).toHaveLength(1)
  const last = lastOf(await response.replay())
  expect(last).toMatchObject({ status: 'completed', output_text: said })
  expect((await response.start(request)).error).toMatchObject({ status: 500 })
  const asked = model.requests.filter(({ body }) => body.includes(response.responseId))
  expect(asked).toHaveLength(1)
  expect(await response.snapshot()).toEqual(last as never)
}
