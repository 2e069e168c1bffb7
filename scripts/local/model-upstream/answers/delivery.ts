import { jsonReply, streamHeaders } from '../reply.ts'
import type { ScriptRequest } from '../script-request.ts'
import type { Step } from '../script-steps.ts'
import { createStreamFrames } from '../stream-frames.ts'

/** One answer in both forms. */
export interface RichAnswer {
  /** The frames of the stream; the last one is its end. */
  frames: string[]
  /** JSON text of the whole answer. */
  body: string
}

/**
 * Sends an answer as it was asked for, whole or streamed. Words after the token in the message change how a stream
 * travels: `lines=crlf` or `lines=cr`, `writes=one` (all frames at once) or `writes=bytes` (each byte apart),
 * `cut=N`, `close=N` or `error=N` (after N frames reset, end, or fail in-band), `end=none` (no `[DONE]` or
 * `message_stop`).
 */
export function* deliver(request: ScriptRequest, answer: RichAnswer): Iterable<Step> {
  if (!request.stream) {
    yield { status: 200, headers: jsonReply(request.dialect, 200, '').headers, body: answer.body }
    return
  }
  yield { status: 200, headers: streamHeaders(request.dialect) }
  const { frames, ending } = cutFrames(request, answer.frames)
  const ends = { crlf: '\r\n', cr: '\r' }[request.word('lines') ?? '']
  const written = ends === undefined ? frames : frames.map((frame) => frame.replaceAll('\n', ends))
  const writes = request.word('writes')
  if (writes === 'one') yield { chunk: written.join('') }
  else if (writes === 'bytes') yield { stream: written.join(''), cuts: 'bytes' }
  else yield { sse: written }
  if (ending !== undefined) yield ending
}

function cutFrames(request: ScriptRequest, all: string[]): { frames: string[]; ending?: Step } {
  const place = ['cut', 'close', 'error'].find((word) => request.word(word) !== undefined)
  if (place === undefined) return { frames: request.word('end') === 'none' ? all.slice(0, -1) : all }
  const frames = all.slice(0, request.count(place, 0))
  if (place === 'error') return { frames: [...frames, createStreamFrames(request).error] }
  return { frames, ending: place === 'cut' ? { destroy: true } : { end: true } }
}
