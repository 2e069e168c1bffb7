import { BoundedMap } from '../../lib/bounded-map.ts'
import { type Provider, transportOf } from '../providers/provider.ts'
import { CredentialWatch } from './credential-spellings.ts'
import { NativePassage } from './native-passage.ts'
import type { HttpStreamCaller } from './stream-caller.ts'
import type { StreamPipeline } from './stream-pipeline.ts'
import type { RelayTimes } from './stream-times.ts'

/** Which streams leave before they are read, and what is done when one of them should not have. */

const MOST_PROVIDERS = 10_000
/** Ids of providers whose streams are read first in this isolate: one of them had to be changed, and was not. */
const readFirst = new BoundedMap<string, true>(MOST_PROVIDERS)

/** Whether a stream of a provider may leave unread, as far as its form shows. */
export function mayLeaveUnread(provider: Provider, response: Response): boolean {
  if (transportOf(provider).streamType !== 'text/event-stream') return false
  return !readFirst.get(provider.id) && !response.headers.get('content-encoding')
}

/** A stream that may leave unread. */
export class UnreadStream {
  readonly passage: NativePassage
  readonly #credential: CredentialWatch
  readonly #provider: Provider
  readonly #pipeline: StreamPipeline<Uint8Array>

  constructor(
    provider: Provider,
    stream: {
      pipeline: StreamPipeline<Uint8Array>
      caller: HttpStreamCaller
      taken: ReadableStream<Uint8Array>
      times: RelayTimes
      clock: () => number
      upstreamAbort: AbortController
    },
  ) {
    const { taken, ...options } = stream
    this.#provider = provider
    this.#pipeline = stream.pipeline
    this.#credential = new CredentialWatch(provider.credential)
    this.passage = new NativePassage({ ...options, credential: this.#credential }, taken)
  }

  /** After the stream's end: draws the consequences for its provider. @returns flags of the call. */
  flags(): string[] {
    if (this.#pipeline.missedEdit || this.#credential.found) readFirst.set(this.#provider.id, true)
    return this.#credential.found ? ['credential_echoed'] : []
  }
}
