import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Database } from '../../schema/database.ts'
import { databaseAt } from '../unit/calls/fixtures.ts'

/** A front of Postgres over HTTP that loses requests, or waits before them. */
export interface PostgresFront {
  database: Database
  /** Called with the text of each request before Postgres has it; the request is lost when it throws. */
  before: (text: string) => void | Promise<void>
  /** Lets so many requests through. The next one is lost: before Postgres has it, or its answer. */
  cutAfter(requests: number, loses: 'request' | 'answer'): void
  mend(): void
  /** Whether a request was lost since the last call of `cutAfter`. */
  hasCut: boolean
  close(): Promise<void>
}

export async function startFront(target: string): Promise<PostgresFront> {
  let left = Number.POSITIVE_INFINITY
  let loses: 'request' | 'answer' = 'request'
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = Buffer.concat(parts)
    const isCut = left <= 0
    left -= 1
    if (isCut) front.hasCut = true
    // A process that was killed sends nothing any more.
    if (isCut && (loses === 'request' || left < -1)) return response.destroy()
    try {
      await front.before(body.toString())
    } catch {
      return response.destroy()
    }
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(
        ([name]) => !/^(host|connection|content-length|transfer-encoding)$/.test(name),
      ),
    ) as Record<string, string>
    const answer = await fetch(target + request.url, { method: 'POST', headers, body })
    const answered = Buffer.from(await answer.arrayBuffer())
    if (isCut) return response.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answered)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const front: PostgresFront = {
    database: databaseAt(url),
    before: () => {},
    cutAfter: (requests, lost) => {
      left = requests
      loses = lost
      front.hasCut = false
    },
    mend: () => {
      left = Number.POSITIVE_INFINITY
      front.before = () => {}
    },
    hasCut: false,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
  return front
}
