/** An event of a response, as its message. */
export interface SentEvent {
  sequence: number
  type: string
  /** JSON. */
  data: string
}

/** Opens the frames after an event number; null when no further events can follow. */
export type ReopenFrames = (after: number) => Promise<ReadableStream<Uint8Array> | null>

/**
 * The events of a response from the frames that its object sends. Events that arrive together are one batch. Frames
 * that break off are opened again after the last event, for as long as that brings a further event.
 * @param after number of the event before the first one.
 * @throws the error of frames that fail twice at the same event.
 */
export async function* followedEvents(
  frames: ReadableStream<Uint8Array>,
  after: number,
  reopen: ReopenFrames,
): AsyncGenerator<SentEvent[], undefined> {
  let source: ReadableStream<Uint8Array> | null = frames
  let [last, brokeAt] = [after, -1]
  while (source) {
    try {
      for await (const events of batches(source)) {
        // An object that restarted, or a client that has everything, can repeat events.
        const fresh = events.filter(({ sequence }) => sequence > last)
        last = fresh.at(-1)?.sequence ?? last
        yield fresh
      }
      return
    } catch (error) {
      if (brokeAt === last) throw error
      brokeAt = last
      source = await reopen(last)
      if (!source) throw error
    }
  }
}

/** An empty batch stands for a comment: the response is silent, and its object is there. */
async function* batches(source: ReadableStream<Uint8Array>): AsyncGenerator<SentEvent[], undefined> {
  const reader = source.getReader()
  const decoder = new TextDecoder()
  let pieces: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const text = decoder.decode(value, { stream: true })
      const endsWithin = text.includes(FRAME_END) || (text.startsWith('\n') && pieces.at(-1)?.endsWith('\n'))
      pieces.push(text)
      // A frame may have megabytes: its pieces are joined once, when it has ended.
      if (!endsWithin) continue
      const frames = pieces.join('').split(FRAME_END)
      const rest = frames.pop() ?? ''
      pieces = rest === '' ? [] : [rest]
      yield frames.flatMap((frame) => eventOf(frame) ?? [])
    }
  } finally {
    // Otherwise the object keeps a reader that has left.
    await reader.cancel().catch(() => {})
  }
}

const FRAME_END = '\n\n'

/** The form that `emitter/event-writer` gives a frame. */
const FRAME = /^event: (.*)\nid: (\d+)\ndata: /

function eventOf(frame: string): SentEvent | null {
  const head = FRAME.exec(frame)
  if (!head) return null
  const [whole, type = '', id] = head
  return { sequence: Number(id), type, data: frame.slice(whole.length) }
}
