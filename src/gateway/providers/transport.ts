import type { FrameReader } from '../../lib/sse.ts'
import type { Operation } from '../operations.ts'
import type { CredentialForm, CredentialParts } from './credential.ts'
import type { RequestBody } from './request-body.ts'

/** What an upstream is asked; `input_tokens` is the token counter of the responses protocol. */
export type UpstreamOperation = Operation | 'input_tokens'

export type HeaderRecord = Readonly<Record<string, string>>

/** What is asked for, as far as address and headers depend on it. */
export interface RequestTarget {
  operation: UpstreamOperation
  /** The model as the provider names it; some providers have it in the path. */
  upstreamModel: string
  stream: boolean
  /** The caller's headers, of which the transport takes what it knows; null when none mean anything to it. */
  callerHeaders: Headers | null
}

export interface PreparedRequest {
  /** Below the provider's base URL. */
  url: string
  headers: HeaderRecord
  body: RequestBody
}

/** A request as it will be sent, for a transport that signs it or exchanges its credential for a token. */
export interface RequestToAuthorize {
  method: 'POST'
  url: string
  headers: HeaderRecord
  /** SHA-256 of the body in lowercase hex; computed once, and only if asked for. */
  bodyHash(): Promise<string>
  /** Milliseconds since the epoch. */
  now: number
  /** The guarded fetch under the rules and the signal of the call, for a token exchange. */
  send(address: string, init: RequestInit): Promise<Response>
}

/** How one provider is called. It keeps nothing that belongs to a request: all requests of an isolate share it. */
export interface Transport {
  /** Whether the provider has a path for the operation. */
  speaks(operation: UpstreamOperation): boolean
  /** Address, headers and body. @throws for an operation that it does not speak. */
  prepare(target: RequestTarget, body: RequestBody): PreparedRequest
  /** Returns the headers that authorize the request; null when `prepare` already wrote a fixed one. */
  authorize: ((request: RequestToAuthorize) => Promise<HeaderRecord>) | null
  /** Content type of its streams. Bytes may pass to callers unread only where this is `text/event-stream`. */
  streamType: string
  /** A reader of one stream. */
  frames(response: Response): FrameReader
}

/** A kind of provider: what credential it needs, and how providers of it are called. */
export interface ProviderKindDefinition {
  credential: CredentialForm
  /** Made once for each provider entry: what is the same for all its calls is computed here. */
  connect(baseUrl: string, credential: CredentialParts): Transport
}
