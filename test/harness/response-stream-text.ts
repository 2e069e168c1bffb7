import type { StreamEvent } from './conformance-rules.ts'

/**
 * Reads the text of a response stream, strictly: each frame is `id:`, `event:` and one `data:` line, in any order and
 * once each, `event:` is the payload's `type`, and nothing follows the last blank line. Comments are skipped.
 * @throws if a frame is anything else.
 */
export function readResponseStream(text: string): StreamEvent[] {
  if (text !== '' && !text.endsWith('\n\n')) throw new Error('the last frame is not whole')
  const frames = text.split('\n\n').slice(0, -1)
  return frames.filter((frame) => !isComment(frame)).map(readFrame)
}

const isComment = (frame: string) => frame.split('\n').every((line) => line.startsWith(':'))

function readFrame(frame: string): StreamEvent {
  const fields = new Map<string, string>()
  for (const line of frame.split('\n')) {
    const colon = line.indexOf(': ')
    const name = line.slice(0, colon)
    if (!['id', 'event', 'data'].includes(name)) throw new Error(`not a line of a frame: ${line}`)
    if (fields.has(name)) throw new Error(`two ${name} lines in one frame`)
    fields.set(name, line.slice(colon + 2))
  }
  const [id, event, data] = ['id', 'event', 'data'].map((name) => fields.get(name))
  if (id === undefined || event === undefined || data === undefined) {
    throw new Error(`a frame needs id, event and data: ${frame}`)
  }
  const payload: StreamEvent['data'] = JSON.parse(data)
  if (payload.type !== event) throw new Error(`event ${event} carries a ${payload.type}`)
  return { id, event, data: payload }
}
