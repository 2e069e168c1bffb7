import { type JsonRecord, toList, toRecord, toText } from './json-value.ts'
import type { Reply } from './reply.ts'
import { anthropicError } from './vendor-errors.ts'

const maximumThreads = 2000
const betaName = 'message-threads-'

interface HeldThread {
  system: unknown
  tools: unknown
  messages: unknown[]
  continued: boolean
}

const heldThreads = new Map<string, HeldThread>()

/**
 * The body with the conversation it continues put back in, or the vendor's error. Message threads are a beta of
 * Anthropic messages that keeps the conversation at the server; the tool runner of its SDK uses them unasked since
 * 1.x. A turn is continued by the id of the previous answer and then sends only what is new, without system and tools.
 */
export function openThread(body: JsonRecord, betas: string): { body: JsonRecord } | { refusal: Reply } {
  if (body.thread === undefined || body.thread === null) return { body }
  if (!betas.includes(betaName)) {
    return { refusal: anthropicError(400, 'invalid_request_error', 'thread: Extra inputs are not permitted') }
  }
  const { type, previous_message_id: previous } = toRecord(body.thread)
  if (type !== 'continue') return { body }
  const held = heldThreads.get(toText(previous))
  if (held === undefined) return { refusal: threadError(404, 'not_found_error', 'thread_not_found') }
  if (held.continued)
    return { refusal: threadError(400, 'invalid_request_error', 'thread_already_continued') }
  held.continued = true
  const messages = [...held.messages, ...toList(body.messages)]
  return { body: { ...body, system: held.system, tools: held.tools, messages } }
}

/** Stores an answered conversation under its answer's id, if the request selected a thread. */
export function holdThread(body: JsonRecord, id: string, content: unknown): void {
  if (body.thread === undefined || body.thread === null) return
  if (heldThreads.size >= maximumThreads) {
    const [oldest] = heldThreads.keys()
    if (oldest !== undefined) heldThreads.delete(oldest)
  }
  const messages = [...toList(body.messages), { role: 'assistant', content }]
  heldThreads.set(id, { system: body.system, tools: body.tools, messages, continued: false })
}

function threadError(status: number, type: string, code: string): Reply {
  return anthropicError(status, type, `The thread cannot be continued: ${code}`, { error_code: code })
}
