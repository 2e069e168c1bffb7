import type { ResponseObject } from '../../wire/responses.ts'
import type { Members } from '../item-types/item-type.ts'
import { eventTypeOnWire } from './names.ts'
import { openResponsesItem } from './rendered-item.ts'
import { renderedResponse } from './rendered-response.ts'

/** An event of a stream: its type, and its payload as JSON on one line. */
export interface StreamEvent {
  type: string
  payload: string
}

/** Events that end a stream. */
const LAST_EVENTS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
])

/** How events with more than a text are rendered. Those of other types keep their members. */
const RENDERERS: Readonly<Record<string, (event: Members) => Members>> = {
  'response.created': withResponse,
  'response.in_progress': withResponse,
  'response.failed': withResponse,
  // The specification ends an incomplete response with an event of its own.
  'response.completed': (event) => ({
    ...withResponse(event),
    type: (event.response as ResponseObject).status === 'incomplete' ? 'response.incomplete' : event.type,
  }),
  'response.output_item.added': withItem,
  'response.output_item.done': withItem,
  error: ({ error, ...event }) => ({
    ...event,
    error: { ...(error as object), param: event.param ?? null },
  }),
}

function withResponse(event: Members): Members {
  return { ...event, response: renderedResponse(event.response as ResponseObject) }
}

function withItem(event: Members): Members {
  return { ...event, item: openResponsesItem(event.item as object) }
}

/** An event as Open Responses describes it. Events of other types have the prefix of this service. */
export function openResponsesEvent({ type, payload }: StreamEvent): StreamEvent {
  const onWire = eventTypeOnWire(type)
  const render = RENDERERS[type]
  // Most events are deltas, which need not be parsed.
  if (!render && onWire === type) return { type, payload }
  const event = JSON.parse(payload) as Members
  const rendered = render ? render(event) : { ...event, type: onWire }
  return { type: String(rendered.type), payload: JSON.stringify(rendered) }
}

/**
 * The frames of a response's stream in the form of Open Responses. `[DONE]` follows the last event.
 * @param frames of this service, in chunks of any size. An error of theirs is passed on.
 */
export function openResponsesFrames(frames: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const renderer = new FrameRenderer(frames)
  return new ReadableStream(
    {
      async pull(controller) {
        const bytes = await renderer.next()
        if (bytes === null) controller.close()
        else controller.enqueue(bytes)
      },
      cancel: (reason) => renderer.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

const encoder = new TextEncoder()
const FRAME_END = '\n\n'
const FRAME = /^event: (.*)\nid: (.*)\ndata: (.*)$/

class FrameRenderer {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
  /** The beginning of a frame. */
  #pending = ''
  #last = ''
  #done = false

  constructor(frames: ReadableStream<Uint8Array>) {
    this.#reader = frames.getReader()
  }

  /** @returns whole frames; null at the end. */
  async next(): Promise<Uint8Array | null> {
    while (!this.#done) {
      const { done, value } = await this.#reader.read()
      this.#done = done
      const text = done ? this.#ending() : this.#whole(this.#decoder.decode(value, { stream: true }))
      if (text !== '') return encoder.encode(text)
    }
    return null
  }

  cancel(reason: unknown): Promise<void> {
    this.#done = true
    return this.#reader.cancel(reason)
  }

  /** A stream that breaks off has no end, so that its client resumes it. */
  #ending(): string {
    return LAST_EVENTS.has(this.#last) ? `data: [DONE]${FRAME_END}` : ''
  }

  /** Renders the frames that end in a text. */
  #whole(text: string): string {
    const from = Math.max(0, this.#pending.length - 1)
    this.#pending += text
    if (!this.#pending.includes(FRAME_END, from)) return ''
    const frames = this.#pending.split(FRAME_END)
    this.#pending = frames.pop() ?? ''
    return frames.map((frame) => `${this.#rendered(frame)}${FRAME_END}`).join('')
  }

  /** Comments are passed on. */
  #rendered(frame: string): string {
    const [, type, id, payload] = FRAME.exec(frame) ?? []
    if (type === undefined || payload === undefined) return frame
    const event = openResponsesEvent({ type, payload })
    this.#last = event.type
    return `event: ${event.type}\nid: ${id}\ndata: ${event.payload}`
  }
}
