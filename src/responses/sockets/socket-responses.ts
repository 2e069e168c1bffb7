import type { CallIdentity } from '../../calls/governed-call.ts'
import type { Principal } from '../../identity/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import { pause } from '../../lib/pause.ts'
import { apiErrorOf } from '../model/error-data.ts'
import type { Owner, ResponseMethods, StartRequest, StartResult } from '../model/types.ts'
import { openResponsesEvent } from '../open-responses/rendered-events.ts'
import { ANY_REGION } from '../pool/regions.ts'
import { startResponse } from '../pool/start-response.ts'
import { errorEvent, refusalEvent } from './error-event.ts'
import { followedEvents, type SentEvent } from './followed-events.ts'
import { messageBody } from './message-body.ts'
import {
  CLOSE_CODES,
  changeSocketConnection,
  type FollowedResponse,
  isOpen,
  socketConnection,
} from './socket-connection.ts'
import type { SocketDeps } from './socket-deps.ts'
import { UnreadBytes } from './unread-bytes.ts'

/** Time for which a response that was being admitted when this object restarted is searched. */
const BEGINNING_LIMIT_MS = 2_000
const BEGINNING_INTERVAL_MS = 250

const LAST_EVENTS = new Set(['response.completed', 'response.failed', 'response.incomplete'])

/** An error of a turn, and whether the ledger has a record of it. */
interface CreationError {
  error: ApiError
  recorded: boolean
}

/** The sender of a message, and the ids under which it is recorded. */
export interface MessageCaller {
  principal: Principal
  identity: CallIdentity
}

/**
 * Creates the responses of the connections of an object, and sends their events. The responses are generated in objects
 * of their own, whose logs are the buffer: events are read from there as they are sent.
 */
export class SocketResponses {
  readonly #deps: SocketDeps
  readonly #unread = new UnreadBytes()

  constructor(deps: SocketDeps) {
    this.#deps = deps
  }

  /** Marks the connection as busy. Its response has no id yet. */
  begin(socket: WebSocket): void {
    changeSocketConnection(socket, { running: { ...UNKNOWN, responseId: '' } })
  }

  /** Creates the response of a message and sends its events. @returns the error if there is no response. */
  async run(
    socket: WebSocket,
    { principal, identity }: MessageCaller,
    text: string,
  ): Promise<CreationError | null> {
    const { last, headers, compatibility, openedAt } = socketConnection(socket)
    const until = openedAt + this.#deps.configuration.SOCKET_TIME_LIMIT_MS
    const connection = { continues: last, until }
    const request = { principal, identity, headers, compatibility, connection }
    const result = await this.#start(socket, request, text)
    const { responseId } = result
    const continues = last !== null && result.previousResponseId === last
    const { held, compatibility: form } = 'held' in result ? result : UNKNOWN
    const running = { ...UNKNOWN, responseId, continues, held, compatibility: form }
    const { events, error } = outcomeOf(result)
    // The client has left: the context for the connection was not released with it.
    if (!isOpen(socket)) this.#release(socket, held ? responseId : null)
    else changeSocketConnection(socket, { running })
    if (events) {
      this.#unread.clear(socket)
      await this.#follow(socket, running, events)
      return null
    }
    this.end(socket, false)
    if (error) return { error, recorded: result.recorded }
    if ('refusal' in result) this.send(socket, refusalEvent(result.refusal, identity.requestId))
    return null
  }

  /** Starts a response in an object with room for it. The connection has its id first: a restart of this object finds it. */
  #start(socket: WebSocket, request: Omit<StartRequest, 'responseId'>, text: string) {
    const { owner, region = ANY_REGION } = socketConnection(socket)
    // A character takes up to three bytes.
    const placed = { owner, region, body: messageBody(text), declaredBytes: text.length * 3 }
    return startResponse(this.#deps, placed, placed.declaredBytes, (responseId, object, bodyBytes) => {
      changeSocketConnection(socket, { running: { ...UNKNOWN, responseId } })
      return object.start({ ...request, responseId, bodyBytes }, placed.body)
    })
  }

  /** Continues to send the events of a response after a restart of this object. Never throws. */
  async resume(socket: WebSocket): Promise<void> {
    const { running, owner } = socketConnection(socket)
    if (!running) return
    const events = await this.#begunEvents(owner, running).catch(() => null)
    if (events) await this.#follow(socket, running, events)
    else this.#fail(socket, 'The response was interrupted before it began. Create it again.')
  }

  /** The events of a response that may still be in admission; null when there is none. */
  async #begunEvents(owner: Owner, running: FollowedResponse): Promise<ReadableStream<Uint8Array> | null> {
    if (running.responseId === '') return null
    const object = this.#objectOf(owner, running.responseId)
    const until = this.#deps.clock() + BEGINNING_LIMIT_MS
    for (;;) {
      const events = await object.follow(owner, running.after)
      if (events === 'busy') return null
      if (events !== null || this.#deps.clock() >= until) return events
      await pause(BEGINNING_INTERVAL_MS, NEVER)
    }
  }

  /**
   * Ends the turn of a connection. A failure evicts what the turn continued; otherwise the connection may continue the
   * response, if no store has it.
   */
  end(socket: WebSocket, succeeded: boolean): void {
    const { running, last } = socketConnection(socket)
    if (!running) return
    const kept = running.continues ? null : last
    const next = succeeded ? (running.held ? running.responseId : null) : kept
    if (isOpen(socket)) changeSocketConnection(socket, { running: null, last: next })
    this.#release(socket, last !== next ? last : null)
    this.#release(socket, !succeeded && running.held ? running.responseId : null)
  }

  /** Sends a message. @returns false if the connection is closed, or was closed since its client does not read. */
  send(socket: WebSocket, text: string): boolean {
    if (!isOpen(socket)) return false
    if (!this.#unread.add(socket, text)) {
      this.forget(socket)
      socket.close(CLOSE_CODES.tryAgainLater, 'The client does not read. Resume the response over HTTP.')
      return false
    }
    socket.send(text)
    return true
  }

  /** Releases what is held for a connection that has ended. */
  forget(socket: WebSocket): void {
    const { running, last } = socketConnection(socket)
    this.#release(socket, last)
    this.#release(socket, running?.responseId ?? null)
  }

  async #follow(
    socket: WebSocket,
    running: FollowedResponse,
    frames: ReadableStream<Uint8Array>,
  ): Promise<void> {
    const { owner } = socketConnection(socket)
    const object = this.#objectOf(owner, running.responseId)
    try {
      for await (const events of followedEvents(frames, running.after, (after) =>
        reopened(object, owner, after),
      )) {
        if (!isOpen(socket)) return
        if (this.#sendBatch(socket, running, events)) return
        const after = events.at(-1)?.sequence
        if (after !== undefined) changeSocketConnection(socket, { running: { ...running, after } })
      }
      throw new Error('the events ended before the last one')
    } catch {
      this.#fail(socket, 'The events of the response cannot be read. They can be resumed over HTTP.')
    }
  }

  /** @returns whether nothing follows on this connection. */
  #sendBatch(socket: WebSocket, { compatibility }: FollowedResponse, events: readonly SentEvent[]): boolean {
    for (const event of events) {
      const { type, data } = compatibility === 'open_responses' ? inOpenResponses(event) : event
      const isLast = LAST_EVENTS.has(type)
      // First, because the next message can arrive as soon as the event is sent.
      if (isLast) this.end(socket, type !== 'response.failed')
      if (!this.send(socket, type === 'error' ? withStatus(data) : data) || isLast) return true
    }
    return false
  }

  #fail(socket: WebSocket, message: string): void {
    this.end(socket, false)
    this.send(socket, errorEvent(new ApiError('internal', message), null))
  }

  /** A response that is not released is deleted when its connection would have reached its age limit. */
  #release(socket: WebSocket, responseId: string | null): void {
    if (!responseId) return
    const { owner } = socketConnection(socket)
    this.#deps.waitUntil(
      this.#objectOf(owner, responseId)
        .release(owner)
        .catch(() => {}),
    )
  }

  #objectOf({ organizationId }: Owner, responseId: string): ResponseMethods {
    return this.#deps.responseObject(organizationId, responseId)
  }
}

/** Values of a turn before its response has begun. */
const UNKNOWN = { after: 0, continues: false, held: false, compatibility: 'headgate' } as const

function inOpenResponses({ type, data }: SentEvent): Pick<SentEvent, 'type' | 'data'> {
  const event = openResponsesEvent({ type, payload: data })
  return { type: event.type, data: event.payload }
}

const NEVER = new AbortController().signal

function outcomeOf(result: StartResult): {
  events: ReadableStream<Uint8Array> | null
  error: ApiError | null
} {
  if (result.error) return { events: null, error: apiErrorOf(result.error) }
  return { events: 'events' in result ? result.events : null, error: null }
}

async function reopened(
  object: ResponseMethods,
  owner: Owner,
  after: number,
): Promise<ReadableStream<Uint8Array> | null> {
  const frames = await object.follow(owner, after)
  return frames === 'busy' ? null : frames
}

/** Every error of a WebSocket has a status; the event of a failed response has none over HTTP. */
const withStatus = (data: string): string => data.replace('{"type":"error",', '{"type":"error","status":500,')
