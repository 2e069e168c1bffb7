import { abortAllDurableObjects } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { configurationOf, createDatabase } from '../../src/deps.ts'
import { responseObjectClient } from '../../src/responses/pool/pool-client.ts'
import { releaseLeftResponses } from '../../src/responses/store/left-responses.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  type Caller,
  conversationOf,
  type LiveTrial,
  newCaller,
  newResponse,
  OBJECTS,
  requestOf,
  seedModel,
  until,
  writerOf,
} from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

// A statement whose request has failed may still reach Postgres: after the rollback of its response, or during its next start.

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
const asked = requestOf(model)

const deps = {
  database: createDatabase(configurationOf(env)),
  clock: () => Date.now(),
  responseObject: (organizationId: string, id: string) =>
    responseObjectClient(OBJECTS.responses, organizationId, id),
}

const BEGINNING = 'INSERT INTO \\"responses\\"'
const ROLLBACK = 'DELETE FROM \\"responses\\"'

/** Fails the next requests with a text, until Postgres gets them late. */
function delayed(text: string) {
  const through = globalThis.fetch
  const late: Array<() => Promise<unknown>> = []
  globalThis.fetch = async (input, init) => {
    if (!String(init?.body).includes(text)) return through(input as Request, init)
    const { signal: _, ...sent } = init ?? {}
    late.push(() => through(input as Request, sent).then((answer) => answer.text()))
    throw new TypeError('connection reset (test)')
  }
  return {
    late,
    /** Lets further requests pass. */
    end: () => {
      globalThis.fetch = through
    },
    /** Postgres gets the request now. */
    arrive: async () => {
      expect(late.length).toBeGreaterThan(0)
      for (const send of late.splice(0)) await send()
    },
  }
}

async function finish(response: LiveTrial, requests: number) {
  const request = await asked(requests)
  request.say('Hello')
  request.finish()
  expect(await response.ended()).toMatchObject({ status: 'completed' })
  await until(async () => expect(await response.settle()).toBe('settled'))
}

/** A conversation with one ended response. */
async function newConversation(caller: Caller): Promise<string> {
  const response = newResponse(caller)
  await response.start()
  await finish(response, 1)
  return conversationOf(response)
}

/** A response whose row and lock reached Postgres after its rollback. */
async function leftOver(caller: Caller, members: object = {}) {
  const response = newResponse(caller)
  const beginnings = delayed(BEGINNING)
  expect(await response.start(members)).toMatchObject({ error: { kind: 'internal' } })
  expect(await response.settle()).toBe('absent')
  beginnings.end()
  await beginnings.arrive()
  expect(await response.row()).toMatchObject({ status: 'in_progress' })
  return response
}

describe('a row that reached Postgres after the rollback of its response', () => {
  it('does not lock out the next start of that response', async () => {
    const caller = await newCaller()
    const conversation = await newConversation(caller)
    const response = await leftOver(caller, { conversation })
    expect(await writerOf(conversation)).toBe(response.responseId)

    expect(await response.start({ conversation })).toMatchObject({ error: null })

    expect(await writerOf(conversation)).toBe(response.responseId)
    await finish(response, 2)
    expect(await response.row()).toMatchObject({ status: 'completed', conversation_id: conversation })
    expect(await writerOf(conversation)).toBeNull()
  })

  it('is replaced, with the conversation that it created', async () => {
    const caller = await newCaller()
    const response = await leftOver(caller)
    const left = await conversationOf(response)

    expect(await response.start()).toMatchObject({ error: null })
    await finish(response, 1)

    const conversation = await conversationOf(response)
    expect(conversation).not.toBe(left)
    expect([await writerOf(left), await writerOf(conversation)]).toEqual([null, null])
    const next = newResponse(caller)
    expect(await next.start({ previous_response_id: response.responseId })).toMatchObject({ error: null })
    await finish(next, 2)
    expect(await conversationOf(next)).toBe(conversation)
  })

  it('does not lock its conversation for other responses', async () => {
    const caller = await newCaller()
    const conversation = await newConversation(caller)
    const left = await leftOver(caller, { conversation })

    const next = newResponse(caller)
    expect(await next.start({ conversation })).toMatchObject({ error: null })

    expect(await left.row()).toBeUndefined()
    await finish(next, 2)
    expect(await writerOf(conversation)).toBeNull()
  })

  it('is deleted by the scheduled job, which spares what runs', async () => {
    const caller = await newCaller()
    const conversation = await newConversation(caller)
    const left = await leftOver(caller, { conversation })
    const running = newResponse(caller)
    expect(await running.start()).toMatchObject({ error: null })
    passTime(599_000)
    await releaseLeftResponses(deps)
    expect(await left.row()).toMatchObject({ status: 'in_progress' })

    passTime(1_000)
    await releaseLeftResponses(deps)

    expect(await left.row()).toBeUndefined()
    expect(await writerOf(conversation)).toBeNull()
    expect(await running.row()).toMatchObject({ status: 'in_progress' })
    expect(await writerOf(await conversationOf(running))).toBe(running.responseId)
    await finish(running, 2)
    expect(await running.row()).toMatchObject({ status: 'completed' })
  })

  it('is replaced when it arrives while the next start is under way', async () => {
    const caller = await newCaller()
    const conversation = await newConversation(caller)
    for (const [index, members] of [{ conversation }, {}].entries()) {
      const response = newResponse(caller)
      const first = delayed(BEGINNING)
      expect(await response.start(members)).toMatchObject({ error: { kind: 'internal' } })
      first.end()
      passTime(1_000)
      // Just before the row of the second start.
      const through = globalThis.fetch
      globalThis.fetch = async (input, init) => {
        if (first.late.length > 0 && String(init?.body).includes(BEGINNING)) await first.arrive()
        return through(input as Request, init)
      }
      expect(await response.start(members)).toMatchObject({ error: null })
      globalThis.fetch = through
      await finish(response, index + 2)
      expect(await response.row()).toMatchObject({ status: 'completed' })
      expect(await writerOf(await conversationOf(response))).toBeNull()
    }
  })

  it('changes nothing when it arrives after the next start', async () => {
    const caller = await newCaller()
    const response = newResponse(caller)
    const first = delayed(BEGINNING)
    await response.start()
    first.end()
    passTime(1_000)
    expect(await response.start()).toMatchObject({ error: null })
    const conversation = await conversationOf(response)
    await first.arrive()
    await finish(response, 1)
    await until(async () => expect(await conversationOf(response)).toBe(conversation))
    expect(await writerOf(conversation)).toBeNull()
  })
})

describe('a rollback that reaches Postgres late', () => {
  it('leaves the row of the next start', async () => {
    const caller = await newCaller()
    const conversation = await newConversation(caller)
    const response = newResponse(caller)
    const beginnings = delayed(BEGINNING)
    const rollbacks = delayed(ROLLBACK)
    expect(await response.start({ conversation })).toMatchObject({ error: { kind: 'internal' } })
    rollbacks.end()
    beginnings.end()
    passTime(1_000)
    expect(await response.start({ conversation })).toMatchObject({ error: null })
    await rollbacks.arrive()
    expect(await response.row()).toMatchObject({ status: 'in_progress' })
    expect(await writerOf(conversation)).toBe(response.responseId)
    await finish(response, 2)
    expect(await response.row()).toMatchObject({ status: 'completed' })
    expect(await writerOf(conversation)).toBeNull()
  })
})

describe('a start', () => {
  it('waits for the rollback that an earlier one needs', async () => {
    const response = newResponse(await newCaller())
    const beginnings = delayed(BEGINNING)
    const rollbacks = delayed(ROLLBACK)
    expect(await response.start()).toMatchObject({ error: { kind: 'internal' } })
    expect(await response.start()).toMatchObject({ error: { kind: 'internal', retryAfterSeconds: 2 } })
    rollbacks.end()
    beginnings.end()
    expect(await response.start()).toMatchObject({ error: null })
    await finish(response, 1)
  })

  it('follows one whose object died', async () => {
    const response = newResponse(await newCaller())
    const through = globalThis.fetch
    let isWaiting = false
    globalThis.fetch = async (input, init) => {
      if (!String(init?.body).includes(BEGINNING)) return through(input as Request, init)
      isWaiting = true
      return new Promise(() => {})
    }
    const first = response.start().catch(() => null)
    await until(() => expect(isWaiting).toBe(true))
    await abortAllDurableObjects()
    await first
    globalThis.fetch = through
    expect(await response.start()).toMatchObject({ error: null })
    await finish(response, 1)
  })

  it('is not changed by an earlier one whose statement is answered late', async () => {
    const caller = await newCaller()
    const response = newResponse(caller)
    const through = globalThis.fetch
    const answer = Promise.withResolvers<void>()
    let waiting = 0
    // Postgres is away: neither the row nor the probe is answered.
    globalThis.fetch = async (input, init) => {
      const body = String(init?.body)
      if (body.includes('SELECT 1"')) return new Promise(() => {})
      if (!body.includes(BEGINNING)) return through(input as Request, init)
      waiting += 1
      await answer.promise
      return through(input as Request, init)
    }
    expect(await response.start()).toMatchObject({ error: { kind: 'internal' } })
    expect(waiting).toBe(1)
    globalThis.fetch = through
    // Its work is not over, so that the response cannot begin yet.
    expect(await response.start()).toMatchObject({ error: { kind: 'internal', retryAfterSeconds: 2 } })
    answer.resolve()
    await until(async () => expect(await response.settle()).toBe('absent'))
    expect(await response.row()).toBeUndefined()
    expect(await response.start()).toMatchObject({ error: null })
    await finish(response, 1)
    expect(await response.row()).toMatchObject({ status: 'completed' })
  })
})
