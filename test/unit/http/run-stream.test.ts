import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { OpenReaders } from '../../../src/http/open-readers.ts'
import { type RunSource, runStream } from '../../../src/http/run-stream.ts'
import type { ResponseObject } from '../../../src/wire/responses.ts'

const encoder = new TextEncoder()
const response = (status: string) => ({ status, error: null }) as unknown as ResponseObject
const added = (sequence: number) =>
  `event: response.output_item.added\nid: ${sequence}\ndata: ${JSON.stringify({
    type: 'response.output_item.added',
    sequence_number: sequence,
    output_index: 0,
    item: {},
  })}\n\n`

interface FakeRun {
  status: string
  attempts: Array<{ responseId: string; hasResponse: boolean; isOpen: boolean }>
}

const attempt = (responseId: string, hasResponse = true, isOpen = true) => ({
  responseId,
  hasResponse,
  isOpen,
})
const run = (status: string, ...attempts: FakeRun['attempts']): FakeRun => ({ status, attempts })

/** A source whose run is read as each of these in turn, the last one repeatedly. An error is thrown. */
function sourceOf(readings: Array<FakeRun | Error>, open: RunSource<FakeRun>['openAttempt']) {
  const readRun = vi.fn(async () => {
    const [next] = readings.length > 1 ? readings.splice(0, 1) : readings
    if (next === undefined || next instanceof Error) throw next
    return next
  })
  const source: RunSource<FakeRun> = {
    readRun,
    openAttempt: open,
    beginning: () => response('in_progress'),
    ended: async ({ status }) => response(status),
    heartbeatMilliseconds: 1_000,
  }
  return { source, readRun }
}

const frames = (...texts: string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const text of texts) controller.enqueue(encoder.encode(text))
      controller.close()
    },
  })

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const textOf = async (stream: ReadableStream<Uint8Array>): Promise<string> => {
  const text = new Response(stream).text()
  text.catch(() => {})
  await vi.runAllTimersAsync()
  return text
}
const idsOf = (text: string): string[] => [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => String(id))

describe('the stream of a run', () => {
  it('goes on while the run cannot be read, and numbers the attempts as one', async () => {
    const away = Array.from({ length: 5 }, () => new Error('Postgres is away'))
    const readings = [
      ...away,
      run('in_progress', attempt('a', true, false), attempt('b', false)),
      run('success', attempt('a', true, false), attempt('b', true, false)),
    ]
    const { source } = sourceOf(readings, async () => frames(added(3)))
    const text = await textOf(runStream(source, run('in_progress')))
    expect(idsOf(text)).toEqual(['1', '2', '3', '4', '5'])
    expect(text).toContain('"output_index":1')
    expect(text).toContain('"status":"success"')
    expect(text).toContain(': keep-alive')
  })

  it.each([true, false])(
    'of a run that is cancelled while a response begins waits for it (begins: %s)',
    async (begins) => {
      const readings = [
        run('cancelled', attempt('a', false)),
        // Its row is stored, but its object does not show it yet.
        run('cancelled', attempt('a', true)),
        run('cancelled', attempt('a', begins, false)),
      ]
      const { source, readRun } = sourceOf(readings, async () =>
        readRun.mock.calls.length < 3 ? null : frames(added(3)),
      )
      const text = await textOf(runStream(source, run('in_progress', attempt('a', false))))
      expect(idsOf(text)).toEqual(begins ? ['1', '2', '3', '4'] : ['1', '2', '3'])
      expect(text).toContain('"status":"cancelled"')
    },
  )

  it('breaks off when the run cannot be read for long', async () => {
    const { source } = sourceOf([new Error('Postgres is away')], async () => null)
    await expect(textOf(runStream(source, run('in_progress')))).rejects.toThrow('Postgres is away')
  })

  it('polls less and less often while nothing happens', async () => {
    const { source, readRun } = sourceOf([run('in_progress', attempt('a', false))], async () => null)
    const reader = runStream(source, run('in_progress')).getReader()
    await reader.read()
    const reading = (async () => {
      while (!(await reader.read()).done);
    })()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(readRun.mock.calls.length).toBeGreaterThan(20)
    expect(readRun.mock.calls.length).toBeLessThan(65)
    await reader.cancel()
    await reading
    const asked = readRun.mock.calls.length
    await vi.advanceTimersByTimeAsync(60_000)
    expect(readRun.mock.calls.length).toBe(asked)
  })

  it.each(['is read', 'is being opened'])('ends an attempt that %s when its reader leaves', async (when) => {
    const left = vi.fn()
    const silent = new ReadableStream<Uint8Array>({ cancel: left })
    const opening = Promise.withResolvers<ReadableStream<Uint8Array>>()
    const { source } = sourceOf([run('in_progress')], () => opening.promise)
    const reader = runStream(source, run('in_progress', attempt('a'))).getReader()
    await reader.read()
    const reading = reader.read()
    if (when === 'is read') opening.resolve(silent)
    await vi.advanceTimersByTimeAsync(1)
    const cancelled = reader.cancel('left')
    if (when === 'is being opened') opening.resolve(silent)
    await cancelled
    expect((await reading).done).toBe(true)
    expect(left).toHaveBeenCalledOnce()
  })
})

describe('the readers of a user', () => {
  it('are as many as allowed, without those that have left or were not seen for a minute', () => {
    const readers = new OpenReaders(2)
    const [first, second] = [readers.open('a', 0), readers.open('a', 0)]
    expect(readers.open('a', 0)).toBeNull()
    expect(readers.open('b', 0)).not.toBeNull()
    second?.close()
    expect(readers.open('a', 0)).not.toBeNull()
    first?.seen(50_000)
    // Only the first one was seen lately.
    expect(readers.open('a', 61_000)).not.toBeNull()
    expect(readers.open('a', 61_000)).toBeNull()
  })
})
