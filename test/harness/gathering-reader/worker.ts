import { DurableObject } from 'cloudflare:workers'
import { GatheringReader } from '../../../src/gateway/relay/gathering-reader.ts'

/** Result of a read. */
export interface SeenRead {
  /** Milliseconds since the epoch. */
  at: number
  base64: string
  gathers: boolean
}

/** Result of reading a stream. */
export interface SeenStream {
  reads: SeenRead[]
  end: 'ended' | 'failed' | 'cancelled'
}

/**
 * Reads an answer of the upstream to its end, and describes the reads. Parameters: `gather`, the gathering time; `pauseAfter` and
 * `pause`, a number of reads after which none is made for so many milliseconds; `cancelAfter`, a number of reads.
 */
async function readAnswer(
  body: ReadableStream<Uint8Array>,
  parameters: URLSearchParams,
): Promise<SeenStream> {
  const number = (name: string) => Number(parameters.get(name) ?? Number.POSITIVE_INFINITY)
  const reader = new GatheringReader(body, number('gather'), Date.now)
  const reads: SeenRead[] = []
  for (;;) {
    try {
      const { done, value } = await reader.read()
      if (done) return { reads, end: 'ended' }
      const base64 = Buffer.from(value).toString('base64')
      reads.push({ at: Date.now(), base64, gathers: reader.gathers })
    } catch {
      return { reads, end: 'failed' }
    }
    if (reads.length === number('cancelAfter')) {
      await reader.cancel()
      return { reads, end: 'cancelled' }
    }
    if (reads.length === number('pauseAfter')) {
      await new Promise((resolve) => setTimeout(resolve, number('pause')))
    }
  }
}

// wrangler.toml names these classes; no object of them is made.
export class Ledger extends DurableObject {}
export class ResponseStream extends DurableObject {}
export class ResponsePool extends DurableObject {}
export class ResponseSockets extends DurableObject {}
export class ConnectionCredentials extends DurableObject {}

const worker = {
  async fetch(request: Request, { UPSTREAM }: { UPSTREAM: string }): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    const { body } = await fetch(UPSTREAM + pathname)
    return Response.json(await readAnswer(body as ReadableStream<Uint8Array>, searchParams))
  },
}

// biome-ignore lint/style/noDefaultExport: the runtime takes a Worker's handlers from its default export
export default worker
