import { call } from '../../data/client.ts'
import { PARTS, type Surface } from './surfaces.ts'

/** A call as it goes on. */
export interface PlaygroundCall {
  state: 'running' | 'done' | 'failed' | 'stopped'
  text: string
  thinking: string
  /** Milliseconds after the call began; null before. */
  first: number | null
  total: number
  events: readonly string[]
  inputTokens: number
  outputTokens: number
  requestId: string | null
  /** The body of a refusal, as the surface has it, or what broke. */
  error: string | null
  /** The body of an answer that is no stream. */
  body: string | null
}

const NOTHING: PlaygroundCall = {
  state: 'running',
  text: '',
  thinking: '',
  first: null,
  total: 0,
  events: [],
  inputTokens: 0,
  outputTokens: 0,
  requestId: null,
  error: null,
  body: null,
}

/** Events that are kept to be looked at; all are counted in `events.length` up to here. */
const MOST_EVENTS = 5_000

let held: { key: string; expiresAt: number; organizationId: string } | null = null

/** A key with the rights of the user, for ten minutes at most. It stays in the memory of the page. @throws Refusal */
async function playgroundKey(organizationId: string): Promise<string> {
  const isUsable =
    held !== null && held.organizationId === organizationId && held.expiresAt - Date.now() > 60_000
  if (held === null || !isUsable) {
    const made = await call('playground-keys.create', { path: { organizationId } })
    held = { key: made.key, expiresAt: Date.parse(made.expires_at), organizationId }
  }
  return held.key
}

/**
 * Makes a call as any client does, and tells how it goes on.
 * @param body JSON. @throws Refusal for a key that cannot be made.
 */
export async function runCall(
  { organizationId, surface, body }: { organizationId: string; surface: Surface; body: string },
  signal: AbortSignal,
  tell: (call: PlaygroundCall) => void,
): Promise<void> {
  const key = await playgroundKey(organizationId)
  const began = performance.now()
  const age = () => Math.round(performance.now() - began)
  let now = NOTHING
  const change = (members: Partial<PlaygroundCall>) => {
    now = { ...now, ...members, total: age() }
    tell(now)
  }
  change({})
  try {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await fetch(PARTS[surface].path, {
      method: 'POST',
      headers,
      body,
      signal,
      // The session is of the management API alone.
      credentials: 'omit',
    })
    change({ requestId: answer.headers.get('x-request-id') })
    if (answer.status === 401) held = null
    if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) {
      const text = await answer.text()
      const read = answer.ok ? piecesOf(surface, [text], now) : {}
      change({
        ...read,
        body: text,
        state: answer.ok ? 'done' : 'failed',
        ...(!answer.ok && { error: text }),
      })
      return
    }
    for await (const events of eventsOf(answer)) {
      change({
        ...piecesOf(surface, events, now),
        first: now.first ?? age(),
        events: [...now.events, ...events].slice(0, MOST_EVENTS),
      })
    }
    change({ state: now.error === null ? 'done' : 'failed' })
  } catch (error) {
    if (signal.aborted) change({ state: 'stopped' })
    else change({ state: 'failed', error: error instanceof Error ? error.message : String(error) })
  }
}

/** What JSON texts add to a call; what is no JSON adds nothing. */
function piecesOf(
  surface: Surface,
  texts: readonly string[],
  before: PlaygroundCall,
): Partial<PlaygroundCall> {
  let { text, thinking, inputTokens, outputTokens, error } = before
  for (const each of texts) {
    const piece = PARTS[surface].read(parsed(each))
    text += piece.text ?? ''
    thinking += piece.thinking ?? ''
    inputTokens = piece.inputTokens ?? inputTokens
    outputTokens = piece.outputTokens ?? outputTokens
    error = piece.error ?? error
  }
  return { text, thinking, inputTokens, outputTokens, error }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** The data of the events of a stream (WHATWG HTML, 9.2.6), those that arrive together at once. */
async function* eventsOf(answer: Response): AsyncGenerator<string[]> {
  if (answer.body === null) return
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  // Joined where a line ends: a long event in many pieces is not read again for each of them.
  let pieces: string[] = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    pieces.push(value)
    if (!value.includes('\n')) continue
    const blocks = pieces.join('').split(/\r?\n\r?\n/)
    pieces = [blocks.pop() ?? '']
    const events = blocks.map(dataOf).filter((data) => data !== '')
    if (events.length > 0) yield events
  }
}

const dataOf = (block: string): string =>
  block
    .split(/\r?\n/)
    .flatMap((line) => (line.startsWith('data:') ? [line.slice(5).trimStart()] : []))
    .join('\n')
