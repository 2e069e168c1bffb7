import type { CallIdentity } from '../governance/governed-call.ts'
import type { Principal } from '../governance/principal.ts'
import type { ResponseObject } from '../wire/responses.ts'
import type { ItemPage, ItemPageRequest } from './items/items.store.ts'

/** Whose a response, a conversation or an item is. Nobody else ever sees it. */
export interface Owner {
  organizationId: string
  userId: string
}

/** An item of a conversation as it is stored and sent to a model: JSON that nobody has to parse on the way. */
export interface ContextItem {
  id: string
  type: string
  role: string | null
  /** Of calls and of their outputs. */
  callId: string | null
  /** The item as JSON, its id included. */
  bytes: Uint8Array
}

/** What the Worker hands to the object of a new response, together with the body of the request. */
export interface StartRequest {
  responseId: string
  principal: Principal
  /** Of the HTTP request: its first model call is recorded under it. */
  identity: CallIdentity
  /** Of the caller, those that a provider may be sent. */
  headers: Array<[name: string, value: string]>
  /** A function call ends a response `completed`, as Open Responses has it, not `incomplete`. */
  functionCallsComplete: boolean
}

/** An ApiError as data: errors lose their class on the way out of an object. */
export interface ErrorData {
  kind: string
  message: string
  status: number
  code?: string
  retryAfterSeconds?: number
  shouldRetry?: boolean
}

/** `recorded`: the ledger has the call of the request, or the record of its refusal. */
export type StartResult =
  | { error: ErrorData; recorded: boolean }
  /** `events`: what `follow` gives from the first event on, where a stream was asked for. */
  | { error: null; recorded: boolean; events: ReadableStream<Uint8Array> | null; background: boolean }

/** What the Durable Object of a response answers to. Every method is refused, as if there were nothing, for others than its owner. */
export interface ResponseStreamObject {
  /** Admits and begins a response; resolves before anything is generated. */
  start(request: StartRequest, body: ReadableStream<Uint8Array>): Promise<StartResult>
  /**
   * Events after a number as SSE frames, then live ones, until the response ends; null when there is no such response
   * here, `busy` when it has as many readers as it may have. Not `tail`, which is a handler of the platform
   * (https://developers.cloudflare.com/workers/runtime-apis/handlers/tail/).
   */
  follow(owner: Owner, after: number): Promise<ReadableStream<Uint8Array> | 'busy' | null>
  /** The response as it stands now; null when there is none here. */
  snapshot(owner: Owner): Promise<ResponseObject | null>
  /** The same, when it has ended. */
  ended(owner: Owner): Promise<ResponseObject | null>
  /** Ends a running response as `incomplete`; of an ended one nothing changes. */
  cancel(owner: Owner): Promise<ResponseObject | null>
  /** Forgets the response, ending it first. @returns whether there was one. */
  remove(owner: Owner): Promise<boolean>
  /**
   * Items that the request gave, without what lies elsewhere; null when there is no such response here, `unknown_item`
   * when the page is to follow one that is not among them. Large items shorten a page.
   */
  inputItems(owner: Owner, page: ItemPageRequest): Promise<ItemPage | 'unknown_item' | null>
  /** Its model, and the version of the policies that its events are made under. */
  state(owner: Owner): Promise<{ model: string; policyVersion: string; running: boolean } | null>
  /** Writes an ended response to Postgres now if that is still pending. */
  settle(owner: Owner): Promise<'running' | 'settled' | 'pending' | 'absent'>
}
