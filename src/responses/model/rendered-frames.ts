/** An event of a stream: its type, and its payload as JSON on one line. */
export interface StreamEvent {
  type: string
  /** Id of a rendered event, when it differs from the original one. */
  id?: string
  payload: string
}

/** An event as a client gets it; null for one that it does not get. */
type RenderEvent = (event: StreamEvent) => StreamEvent | null

/**
 * The frames of a response's stream, each rendered.
 * @param frames of this service, in chunks of any size. An error of theirs is passed on.
 * @param endingOf text that follows the last event, by its type.
 */
export function renderedFrames(
  frames: ReadableStream<Uint8Array>,
  render: RenderEvent,
  endingOf: (last: string) => string = () => '',
): ReadableStream<Uint8Array> {
  const renderer = new FrameRenderer(frames, render, endingOf)
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

/**
 * The official client for JavaScript, whose stream helper fails on types of events that it does not know
 * (https://github.com/openai/openai-node, lib/responses/ResponseStream).
 */
const FAILS_ON_UNKNOWN_EVENTS = /^OpenAI\/JS\b/

/**
 * Events that its versions do not know: those of this service, the extensions of the form of Open Responses, and an
 * official one that is newer than 7.0. Their content is in their item as well.
 */
const UNKNOWN_EVENT = /^(headgate:|response\.service_call_arguments\.|response\.compaction\.compacting$)/

/** The frames for a client, in the form of their response: without events on which its stream helper would fail. */
export function framesFor(userAgent: string | undefined, frames: ReadableStream<Uint8Array>) {
  if (!FAILS_ON_UNKNOWN_EVENTS.test(userAgent ?? '')) return frames
  return renderedFrames(frames, (event) => (UNKNOWN_EVENT.test(event.type) ? null : event))
}

const encoder = new TextEncoder()
const FRAME_END = '\n\n'
const FRAME = /^event: (.*)\nid: (.*)\ndata: (.*)$/

class FrameRenderer {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #render: RenderEvent
  readonly #endingOf: (last: string) => string
  readonly #decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
  /** The beginning of a frame. */
  #pending = ''
  #last = ''
  #done = false

  constructor(frames: ReadableStream<Uint8Array>, render: RenderEvent, endingOf: (last: string) => string) {
    this.#reader = frames.getReader()
    this.#render = render
    this.#endingOf = endingOf
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

  /** A stream that fails has no end, so that its client resumes it. */
  #ending(): string {
    return this.#endingOf(this.#last)
  }

  /** Renders the frames that end in a text. */
  #whole(text: string): string {
    const from = Math.max(0, this.#pending.length - 1)
    this.#pending += text
    if (!this.#pending.includes(FRAME_END, from)) return ''
    const frames = this.#pending.split(FRAME_END)
    this.#pending = frames.pop() ?? ''
    return frames.map((frame) => this.#rendered(frame)).join('')
  }

  /** Comments are passed on. */
  #rendered(frame: string): string {
    const [, type, id, payload] = FRAME.exec(frame) ?? []
    if (type === undefined || payload === undefined) return frame + FRAME_END
    const event = this.#render({ type, payload })
    if (event === null) return ''
    this.#last = event.type
    return `event: ${event.type}\nid: ${event.id ?? id}\ndata: ${event.payload}${FRAME_END}`
  }
}
