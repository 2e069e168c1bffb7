import { afterEach, describe, expect, it, vi } from 'vitest'
import { readAll } from '../../../src/lib/bytes/read-bytes.ts'
import type { ResponseMethods, StartRequest } from '../../../src/responses/model/types.ts'
import { responseStreamClient } from '../../../src/responses/object/object-client.ts'

const OWNER = { organizationId: 'organization', userId: 'user' }
const PAGE = { limit: 20, order: 'desc' } as const
const ID = 'resp_1'
const bodyOf = (text: string) => new Response(text).body as ReadableStream<Uint8Array>
const textOf = async (body: ReadableStream<Uint8Array>) => new TextDecoder().decode(await readAll(body, 1000))

type Method = keyof ResponseMethods
type Use = (object: ResponseMethods) => Promise<unknown>

/** A namespace with one answer for each stub that is asked for, in their order. */
function namespaceOf(...answers: Array<(method: string, parameters: unknown[]) => Promise<unknown>>) {
  const names: string[] = []
  const namespace = {
    getByName(name: string) {
      names.push(name)
      const answer = answers.shift()
      if (answer === undefined) throw new Error('no further stub was expected')
      return new Proxy({} as Record<string, unknown>, {
        get:
          (_, method) =>
          (...parameters: unknown[]) =>
            answer(String(method), parameters),
      })
    },
  } as unknown as DurableObjectNamespace
  return { object: responseStreamClient(namespace, ID), names }
}

const failing =
  (properties: object = {}) =>
  async () => {
    throw Object.assign(new Error('secret of the object'), properties)
  }
const silent = () => new Promise<never>(() => {})

const SOON: Array<[Method, Use]> = [
  ['snapshot', (object) => object.snapshot(OWNER)],
  ['cancel', (object) => object.cancel(OWNER)],
  ['remove', (object) => object.remove(OWNER)],
  ['inputItems', (object) => object.inputItems(OWNER, PAGE)],
  ['state', (object) => object.state(OWNER)],
  ['settle', (object) => object.settle(OWNER)],
]
const PATIENT: Array<[Method, Use]> = [
  ['follow', (object) => object.follow(OWNER, 7)],
  ['ended', (object) => object.ended(OWNER)],
]
const START: [Method, Use] = ['start', (object) => object.start({} as StartRequest, bodyOf('body'))]

afterEach(() => void vi.useRealTimers())

describe('responseStreamClient', () => {
  it.each([...SOON, ...PATIENT])('asks the object of the response: %s', async (name, use) => {
    const asked: unknown[] = []
    const { object, names } = namespaceOf(async (...call) => asked.push(call))
    expect(await use(object)).toBe(1)
    const more = name === 'follow' ? [7] : name === 'inputItems' ? [PAGE] : []
    expect(asked).toEqual([[name, [OWNER, ...more]]])
    expect(names).toEqual([ID])
  })

  it.each([...SOON, ...PATIENT])('asks once more on a fresh stub: %s', async (_name, use) => {
    const { object, names } = namespaceOf(failing(), async () => 'answer')
    expect(await use(object)).toBe('answer')
    expect(names).toEqual([ID, ID])
  })

  it.each([
    ['twice', [failing(), failing()]],
    ['because it is overloaded', [failing({ overloaded: true, retryable: true })]],
    ['by its own code', [failing({ remote: true })]],
  ])('throws an internal error that tells nothing when the object fails %s', async (_how, answers) => {
    const { object, names } = namespaceOf(...answers)
    const failure = await object.state(OWNER).catch((error) => error)
    expect(failure).toMatchObject({ name: 'ApiError', kind: 'internal', status: 500 })
    expect(failure.message).not.toContain('secret')
    expect(failure.cause.message).toContain('secret')
    expect(names).toHaveLength(answers.length)
  })

  it.each(SOON)('waits ten seconds for %s', async (_name, use) => {
    vi.useFakeTimers()
    const late = Promise.withResolvers<never>()
    const { object, names } = namespaceOf(() => late.promise)
    const outcome = use(object).catch((error) => error)
    await vi.advanceTimersByTimeAsync(9_999)
    expect(await Promise.race([outcome, 'waiting'])).toBe('waiting')
    await vi.advanceTimersByTimeAsync(1)
    expect(await outcome).toMatchObject({ kind: 'internal' })
    late.reject(new Error('a late failure, after which nobody waits for a second call'))
    await vi.advanceTimersByTimeAsync(20_000)
    expect(names).toHaveLength(1)
  })

  it.each([...PATIENT, START])('waits for %s as long as it takes', async (_name, use) => {
    vi.useFakeTimers()
    const { object } = namespaceOf(silent)
    const outcome = use(object).catch((error) => error)
    await vi.advanceTimersByTimeAsync(3_600_000)
    expect(await Promise.race([outcome, 'waiting'])).toBe('waiting')
  })
})

describe('start', () => {
  const start = (object: ResponseMethods, body = bodyOf('the body')) =>
    object.start({ responseId: ID } as StartRequest, body)
  const reading = async (_method: string, [, body]: unknown[]) => textOf(body as ReadableStream<Uint8Array>)

  it('hands the body over', async () => {
    expect(await start(namespaceOf(reading).object)).toBe('the body')
  })

  it('is repeated with the whole body while nothing of it was read', async () => {
    const { object, names } = namespaceOf(failing(), reading)
    expect(await start(object)).toBe('the body')
    expect(names).toHaveLength(2)
  })

  it('is repeated with a body of bytes, as a call of its own', async () => {
    const body = new TextEncoder().encode('the body')
    const calls: string[] = []
    const started = async (_method: string, [request, given]: unknown[]) => {
      calls.push((request as StartRequest).identity.callId)
      if (calls.length === 1) throw new Error('reset')
      return given
    }
    const { object } = namespaceOf(started, started)
    const request = { responseId: ID, identity: { callId: 'call_1' } } as StartRequest
    expect(await object.start(request, body)).toBe(body)
    expect(calls).toEqual(['call_1', expect.stringMatching(/^call_(?!1$)/)])
  })

  it('of a compaction is not repeated with a body of bytes, since a model may have been asked', async () => {
    const { object, names } = namespaceOf(failing(), async () => 'again')
    const request = { responseId: ID } as StartRequest
    await expect(object.compact(request, new TextEncoder().encode('the body'))).rejects.toThrow()
    expect(names).toHaveLength(1)
  })

  it('is not repeated once something of it was read', async () => {
    const { object, names } = namespaceOf(async (_method, [, body]) => {
      await (body as ReadableStream<Uint8Array>).getReader().read()
      throw new Error('reset')
    })
    await expect(start(object)).rejects.toMatchObject({ kind: 'internal' })
    expect(names).toHaveLength(1)
  })

  it('leaves nothing to an attempt that was given up', async () => {
    let abandoned: ReadableStream<Uint8Array> | undefined
    const { object } = namespaceOf(async (_method, [, body]) => {
      abandoned = body as ReadableStream<Uint8Array>
      throw new Error('reset')
    }, reading)
    expect(await start(object)).toBe('the body')
    await expect(abandoned?.getReader().read()).rejects.toThrow('taken back')
  })

  it('does not take the body from the second attempt when the first one is cancelled', async () => {
    const { object } = namespaceOf(
      async (_method, [, body]) => {
        setTimeout(() => void (body as ReadableStream).cancel())
        throw new Error('reset')
      },
      async (method, parameters) => {
        await new Promise((resolve) => setTimeout(resolve))
        return reading(method, parameters)
      },
    )
    expect(await start(object)).toBe('the body')
  })

  it('ends the reading of the body when the object does not want it', async () => {
    let reason: unknown
    const body = new ReadableStream({
      type: 'bytes',
      cancel(given) {
        reason = given
      },
    })
    const { object } = namespaceOf(async (_method, [, given]) => (given as ReadableStream).cancel('enough'))
    await start(object, body)
    expect(reason).toBe('enough')
  })

  it('ends the reading of the body when it fails for good', async () => {
    let cancelled = false
    const body = new ReadableStream({
      type: 'bytes',
      cancel() {
        cancelled = true
      },
    })
    const { object } = namespaceOf(failing(), failing())
    await expect(start(object, body)).rejects.toMatchObject({ kind: 'internal' })
    expect(cancelled).toBe(true)
  })

  it('tells the object when the body breaks off', async () => {
    const body = new ReadableStream({
      type: 'bytes',
      pull(controller) {
        controller.error(new Error('the caller left'))
      },
    })
    const { object } = namespaceOf(reading)
    await expect(start(object, body)).rejects.toMatchObject({ kind: 'internal' })
  })
})
