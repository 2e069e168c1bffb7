import type { FrameReader } from '../../lib/sse.ts'
import type { BodyMembers } from '../protocols/body-members.ts'
import type { Operation } from '../protocols/operations.ts'
import type { CredentialForm, CredentialParts } from './credential.ts'
import type { RequestBody } from './upstream-body.ts'

/** Forms of token counters, each with a request and an answer of its own (`token-count/counters.ts`). */
export type CounterForm =
  | 'responses'
  | 'bedrock'
  | 'vertex'
  | 'generate_content'
  | 'vertex_generate_content'
  | 'converse'

/** Operations of upstreams; `input_tokens` is a token counter in a form of its own. */
export type UpstreamOperation = Operation | 'input_tokens'

export type HeaderRecord = Readonly<Record<string, string>>

/** The part of a request on which its address and headers depend. */
export interface RequestTarget {
  operation: UpstreamOperation
  /** The model as the provider names it; some providers have it in the path. */
  upstreamModel: string
  stream: boolean
  /** The caller's headers, of which the transport forwards those that its provider supports; null when none apply. */
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
  /** SHA-256 of the body in lowercase hex; computed once, and only when called. */
  bodyHash(): Promise<string>
  /** Milliseconds since the epoch. */
  now: number
  /** The guarded fetch under the rules and the signal of the call, for a token exchange. */
  send(address: string, init: RequestInit): Promise<Response>
}

/** The connection to one provider. All requests of an isolate share it, so it holds no state of a request. */
export interface Transport {
  /** Whether the provider has a path for the operation, and serves the model on it. */
  speaks(operation: UpstreamOperation, upstreamModel: string): boolean
  /** How the body of a request differs from that of its protocol; absent where it never does. */
  bodyMembers?(target: RequestTarget): BodyMembers | null
  /** Capabilities of a model in the catalogue that this provider does not have; absent for none. */
  withheld?(upstreamModel: string): readonly string[]
  /** Whether its streams of chat completions send the same piece of reasoning several times over. */
  repeatsReasoning?: true
  /** Whether it refuses ids of calls in generateContent, as Vertex does. */
  omitsCallIds?: true
  /** The form of its token counter for a model (operation `input_tokens`); absent or null where it has none. */
  counter?(upstreamModel: string): CounterForm | null
  /** Address, headers and body. @throws for an operation without a path. */
  prepare(target: RequestTarget, body: RequestBody): PreparedRequest
  /** Returns the headers that authorize the request; null when `prepare` already sets a fixed one. */
  authorize: ((request: RequestToAuthorize) => Promise<HeaderRecord>) | null
  /**
   * Called when the provider answered 401: whether `authorize` will give other headers, so that the request is sent once
   * more. Absent where it never does. @param refused the headers that were sent. @param now milliseconds since the epoch.
   */
  renew?(refused: HeaderRecord, now: number): boolean
  /** Content type of its streams. Only `text/event-stream` may be passed to callers unread. */
  streamType: string
  /** A reader of one stream. */
  frames(response: Response): FrameReader
}

/** Settings of a provider's entry that its transport obeys. */
export interface ConnectOptions {
  /** Members of requests that the provider takes by the operator's setting. */
  allowedMembers: readonly string[]
}

/** A kind of provider: its form of credentials and its transport. */
export interface ProviderKindDefinition {
  credential: CredentialForm
  /**
   * Top-level members of requests, in lower case, by which upstreams of this kind select another model, provider, account or
   * address.
   */
  routingMembers: ReadonlySet<string>
  /**
   * Checks parts that are given for an entry; absent where any text will do.
   * @param baseUrl of the entry, where it has one already.
   * @throws ApiError `unprocessable`, whose message quotes no value.
   */
  check?(credential: CredentialParts, baseUrl?: string): void
  /** The base URL of a provider that is given none; absent where one has to be given. */
  defaultBaseUrl?(credential: CredentialParts): string
  /** Names of the hosts that may be sent the credential, besides those of EGRESS_ALLOW; absent for any. */
  hosts?: RegExp
  /** Called once for each provider: computes what is the same for all its calls. */
  connect(baseUrl: string, credential: CredentialParts, options: ConnectOptions): Transport
}
