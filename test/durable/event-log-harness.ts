import { env } from 'cloudflare:workers'
import { expect } from 'vitest'
import type { EmittedEvent } from '../../src/responses/model/events.ts'
import type { EventLogObject } from './event-log-object.ts'
import type { SharedLogsObject } from './shared-logs-object.ts'

const decoder = new TextDecoder()

/** A log of its own for a test. Every call takes a fresh stub, since one that saw the object die stays broken. */
export function newEventLog(objects: DurableObjectNamespace = env.EVENT_LOG) {
  const name = crypto.randomUUID()
  return () => objects.getByName(name) as DurableObjectStub<EventLogObject>
}

/** A log beside others in one object. */
export function newSharedLog() {
  const log = newEventLog(env.SHARED_LOGS)
  return () => log() as unknown as DurableObjectStub<SharedLogsObject>
}

/** An event whose payload says its number and, so that one that was lost and made again is told apart, a word. */
export function event(sequence: number, options: { boundary?: boolean; word?: string } = {}): EmittedEvent {
  const { boundary = false, word = 'word' } = options
  return { sequence, type: 'delta', payload: JSON.stringify({ sequence, word }), boundary }
}

export const events = (from: number, to: number, boundary = false): EmittedEvent[] =>
  Array.from({ length: to - from + 1 }, (_, index) => event(from + index, { boundary }))

export const frameOf = ({ type, sequence, payload }: EmittedEvent): string =>
  `event: ${type}\nid: ${sequence}\ndata: ${payload}\n\n`

export const framesOf = (list: readonly EmittedEvent[]): string => list.map(frameOf).join('')

/** Reads a tail from beginning to end, noting how it ended. */
export class TailReader {
  text = ''
  chunks: string[] = []
  error: unknown
  /** Resolves when the stream has ended, failed or been left. */
  readonly done: Promise<void>
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  readonly #pause: () => Promise<void>

  /** @param pause awaited before every read: a slow reader takes its time. */
  constructor(stream: ReadableStream<Uint8Array>, pause: () => Promise<void> = async () => {}) {
    this.#reader = stream.getReader()
    this.#pause = pause
    this.done = this.#read()
  }

  /** Waits, as long as a test may take, until the text is there. */
  async until(text: string): Promise<void> {
    await expect.poll(() => this.text, { timeout: 10_000, interval: 2 }).toBe(text)
  }

  async leave(): Promise<void> {
    // The stream may have failed before.
    await this.#reader.cancel('left').catch(() => {})
    await this.done
  }

  async #read(): Promise<void> {
    try {
      for (;;) {
        await this.#pause()
        const { done, value } = await this.#reader.read()
        if (done) return
        this.chunks.push(decoder.decode(value))
        this.text += this.#decoder.decode(value, { stream: true })
      }
    } catch (error) {
      this.error = error
    }
  }
}

/** All that a tail gives, of a log that ends. */
export async function readAll(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = new TailReader(stream)
  await reader.done
  if (reader.error !== undefined) throw reader.error
  return reader.text
}
