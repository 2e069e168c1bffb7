import type { CallIdentity } from '../../calls/governed-call.ts'
import type { Principal } from '../../identity/principal.ts'
import type { RateLimit } from '../../ledger/contract.ts'
import type { ApiError } from '../../lib/api-error.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import type { ResponseObject, ResponseSettings } from '../../wire/responses.ts'
import type { StoredNumbers } from './events.ts'
import type { ItemPage, ItemPageRequest } from './stored-items.ts'

/** The owner of a response, a conversation or an item: the only user who can read it. */
export interface Owner {
  organizationId: string
  userId: string
}

/** An item of a context. Its JSON is stored and sent to models without being parsed. */
export interface ContextItem {
  id: string
  type: string
  role: string | null
  /** Call id of calls and of their outputs. */
  callId: string | null
  /** The item as JSON, its id included. */
  bytes: Uint8Array
}

/** The body of a request on its way to an object: small ones are bytes, which cost a fraction of a stream. */
export type RequestContent = Uint8Array | ReadableStream<Uint8Array>

/** The message of the Worker to the object of a new response, beside the body of the request. */
export interface StartRequest {
  responseId: string
  principal: Principal
  /** Identity of the HTTP request, under which the first model call is recorded. */
  identity: CallIdentity
  /** Headers of the caller that may be sent to a provider. */
  headers: Array<[name: string, value: string]>
  /** The form that the request selects; null for that of the caller's key. */
  compatibility: Compatibility | null
  /** `StoredRequest.creditLimit`. */
  creditLimit?: number | undefined
  /**
   * Whether a turn that a restart of the object interrupts is asked again, in place of a failed response: for responses that
   * nobody follows as their first reader.
   */
  repeatsTurns?: boolean | undefined
  /** Most bytes of a body that is a stream; absent for one of bytes. */
  bodyBytes?: number | undefined
  /** Whether the result of a response that is neither streamed nor in the background has its end. */
  awaitsEnd?: boolean | undefined
  /** The WebSocket connection that the request came on: its body is a message then. */
  connection?: ConnectionStart | undefined
}

/** Facts about the WebSocket connection on which a response is created. */
export interface ConnectionStart {
  /** The response of this connection that may be continued although it is not stored; null for none. */
  continues: string | null
  /** Time until which a response that is not stored can be continued, in milliseconds since the epoch. */
  until: number
}

/** An ApiError as data: errors lose their class when they leave an object. */
export type ErrorData = Pick<
  ApiError,
  'kind' | 'message' | 'status' | 'code' | 'retryAfterSeconds' | 'shouldRetry' | 'limit' | 'param'
>

/** A provider's refusal of the first turn. The status is the provider's. */
export interface ProviderRefusal {
  status: number
  message: string
  code: string
  retryAfterSeconds: number | null
}

/** The ledger's data about a request. */
export interface LedgerTrace {
  /** The call of the request, or the record of its refusal. */
  recorded: boolean
  /** The caller's limits after the call; absent where it was not counted. */
  rateLimit?: RateLimit | undefined
  /** Room in an object that several responses share; absent for the object of one. */
  room?: ObjectRoom | undefined
}

/**
 * Room in an object that several responses share. `little`: the next response should go elsewhere; `none`: nothing of the
 * request was read, and it may be sent elsewhere.
 */
export type ObjectRoom = 'enough' | 'little' | 'none'

/** Facts about a request, also about a refused one. */
export interface StartTrace extends LedgerTrace {
  /** The response that it continues; absent for a body that could not be read. */
  previousResponseId?: string | null | undefined
}

/** Why a request has no result. */
export type NotStarted =
  | (StartTrace & { error: ErrorData })
  | (StartTrace & { error: null; refusal: ProviderRefusal })

export type StartResult =
  | NotStarted
  /** The request is for a run of an agent, and began nothing. */
  | (StartTrace & { error: null; agent: AgentRequest })
  /** `headers` of the answer. `events`: as `follow` from the first event on, if the request is for a stream. */
  | (StartTrace & {
      error: null
      compatibility: Compatibility
      headers: Record<string, string>
      events: ReadableStream<Uint8Array> | null
      background: boolean
      /** Whether the response is not stored, and its object holds its context for the next response of its connection. */
      held: boolean
      /** The final response, if the request awaits it; null for one that was deleted meanwhile. */
      response?: ResponseObject | null
    })

/** A request for a run of an agent. */
export interface AgentRequest {
  /** All members but `input`. */
  settings: ResponseSettings
  /** The text of `input`; empty without one. */
  text: string
}

/** `compaction`: the result of a compaction as JSON. */
export type CompactionResult =
  | NotStarted
  | (LedgerTrace & { error: null; compaction: ReadableStream<Uint8Array> })

export interface ResponseStateReport {
  model: string
  compatibility: Compatibility
  policyVersion: string
  running: boolean
  /** Null while it is running. */
  numbers: StoredNumbers | null
  /** Micro-credits that its ended calls cost. */
  cost: number
}

/** The data that a response holds for the next one of its connection. */
export interface ConnectionContext {
  /** The input of the model and the output, as `context/context-stream` encodes them. */
  items: ReadableStream<Uint8Array>
  /** The workspace of its files; null for a response in a conversation, which has them. */
  workspaceId: string | null
}

/** The methods of one response in its Durable Object. For other owners, each of them behaves as if there were no response. */
export interface ResponseMethods {
  /**
   * Reserves room for a response whose body cannot be sent twice. The reservation lapses after a minute.
   * @param bytes of the body, at most. @returns whether there is room.
   */
  reserve(owner: Owner, bytes: number): Promise<boolean>
  /**
   * Admits and begins a response. Resolves when its first turn has failed or begins to answer, at the latest after
   * RESPONSE_COMMIT_MS if it is streamed; with `awaitsEnd`, when it has ended. A response in the background begins at once.
   */
  start(request: StartRequest, body: RequestContent): Promise<StartResult>
  /** Compacts a conversation. The object stores nothing of it. */
  compact(request: StartRequest, body: RequestContent): Promise<CompactionResult>
  /**
   * The stored events after a number as SSE frames, then live ones, until the response ends. Null without a response in
   * this object; `busy` when it has its maximum of readers. Not called `tail`, which is a handler of the platform
   * (https://developers.cloudflare.com/workers/runtime-apis/handlers/tail/).
   */
  follow(owner: Owner, after: number): Promise<ReadableStream<Uint8Array> | 'busy' | null>
  /** The current state of the response; null without a response in this object. */
  snapshot(owner: Owner): Promise<ResponseObject | null>
  /** The final response, as soon as it has ended; null as in `snapshot`. */
  ended(owner: Owner): Promise<ResponseObject | null>
  /** Ends a running response as `incomplete`. An ended one does not change. */
  cancel(owner: Owner): Promise<ResponseObject | null>
  /** Ends the response and deletes it from the object. @returns whether there was one. */
  remove(owner: Owner): Promise<boolean>
  /**
   * A page of the input, without the content that the content store has. Null without a response in this object;
   * `unknown_item` when `after` is not in the input. Large items shorten a page.
   */
  inputItems(owner: Owner, page: ItemPageRequest): Promise<ItemPage | 'unknown_item' | null>
  /** Its model and form, the version of the policies that are applied to its events, and their numbers once it has ended. */
  state(owner: Owner): Promise<ResponseStateReport | null>
  /** The context of the next response of the same connection. Null unless it has ended without a failure, and is held. */
  context(owner: Owner): Promise<ConnectionContext | null>
  /**
   * Passes its files to the next response of the same connection, which deletes them from then on.
   * @returns false for a response that is not held any more: its files are being deleted.
   */
  passFiles(owner: Owner): Promise<boolean>
  /** Holds the response for its connection no longer than for resuming, and deletes its files unless it has passed them on. */
  release(owner: Owner): Promise<void>
  /** Writes an ended response to Postgres if that is pending. */
  settle(owner: Owner): Promise<'running' | 'settled' | 'pending' | 'absent'>
}

/** The members of an item or of a part. */
export type Members = Record<string, unknown>
