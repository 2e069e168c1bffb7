import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { concealCredentials } from './authentication.ts'
import type { Exchange } from './exchange.ts'

const maximumRecords = 1000
const maximumBodyText = 64 * 1024

/** A recorded request as `GET /control/requests` shows it; times are in milliseconds since 1970. */
export interface RequestRecord {
  sequence: number
  method: string
  /** Path with query. */
  path: string
  headers: Record<string, string>
  bodySha256: string
  /** The first 64 KB of the body. */
  body: string
  bodyBytes: number
  receivedAt: number
  /** Name of the script that answered, or null for the default answer. */
  script: string | null
  /** Members of the body that the vendor does not document, as paths. */
  unknownMembers: string[]
  status: number
  bytesWritten: number
  eventsWritten: number
  clientClosedAt: number | null
  finished: boolean
}

interface Entry {
  exchange: Exchange
  facts: Omit<RequestRecord, 'status' | 'bytesWritten' | 'eventsWritten' | 'clientClosedAt' | 'finished'>
}

/** Keeps the last 1000 requests with their progress. */
export class RequestLog {
  #entries: Entry[] = []
  #lastSequence = 0

  /** Records a request whose body was read; its progress is looked up when the log is listed. */
  add(
    request: IncomingMessage,
    body: Buffer,
    exchange: Exchange,
    receivedAt: number,
    script: string | null,
    unknownMembers: string[],
  ): void {
    this.#lastSequence += 1
    this.#entries.push({
      exchange,
      facts: {
        sequence: this.#lastSequence,
        method: request.method ?? '',
        path: request.url ?? '',
        headers: concealCredentials(request.headers),
        bodySha256: createHash('sha256').update(body).digest('hex'),
        body: body.toString('utf8', 0, maximumBodyText),
        bodyBytes: body.length,
        receivedAt,
        script,
        unknownMembers,
      },
    })
    if (this.#entries.length > maximumRecords) this.#entries.shift()
  }

  /** The requests after a sequence number whose recorded body contains a text, oldest first. */
  list(after: number, text = ''): RequestRecord[] {
    return this.#entries
      .filter(({ facts }) => facts.sequence > after && facts.body.includes(text))
      .map(({ facts, exchange }) => ({
        ...facts,
        status: exchange.status,
        bytesWritten: exchange.bytesWritten,
        eventsWritten: exchange.eventsWritten,
        clientClosedAt: exchange.clientClosedAt,
        finished: exchange.finished,
      }))
  }

  /** The number of the newest request: pass it as `after` to see only later ones. It survives `clear`. */
  get lastSequence(): number {
    return this.#lastSequence
  }

  clear(): void {
    this.#entries = []
  }
}
