import { vi } from 'vitest'
import { type SeenRequest, upstreamControl } from './gateway.ts'
import type { GatewayAddress } from './start-gateway.ts'
import { uniqueName } from './tenant.ts'

/** A request that the scripted upstream recorded, with the progress of its answer. */
export interface UpstreamRequest extends SeenRequest {
  bodySha256: string
  bodyBytes: number
  script: string | null
  status: number
  bytesWritten: number
  eventsWritten: number
  clientClosedAt: number | null
  finished: boolean
}

/** A step of a registered script. */
export type ScriptStep =
  | { status?: number; headers?: Record<string, string | string[]>; body?: string }
  | { sse: string[] }
  | { json: unknown; status?: number }
  | { chunk: string }
  | { chunkBase64: string }
  | { waitMilliseconds: number }
  | { waitForSignal: string }
  | { destroy: true }
  | { end: true }

/** Registers a script for the upstream. @returns the text that makes a message select it. */
export async function registerScript(
  address: Pick<GatewayAddress, 'standIns'>,
  steps: ScriptStep[],
): Promise<string> {
  const name = uniqueName('http')
  await upstreamControl(address).putScript(name, { steps })
  return `script:${name}`
}

/** The answer to one request of a script: its steps, or those of a streamed and of a whole answer. */
export type ScriptAnswer = { steps: ScriptStep[] } | { streamed: ScriptStep[]; whole: ScriptStep[] }

/** Registers a script whose answers are given in turn, of which the last repeats. */
export async function registerAnswers(
  address: Pick<GatewayAddress, 'standIns'>,
  responses: ScriptAnswer[],
): Promise<string> {
  const name = uniqueName('http')
  await upstreamControl(address).putScript(name, { responses })
  return `script:${name}`
}

/** Text that finds a request again among those of other tests. */
export const marker = () => uniqueName('marker')

/** The upstream's latest requests that have this text in the first 64 KB of their body, oldest first. */
export async function seenRequests(
  address: Pick<GatewayAddress, 'standIns'>,
  text: string,
): Promise<UpstreamRequest[]> {
  return (await upstreamControl(address).requests(0, text)) as UpstreamRequest[]
}

/** The one request with this text in its body, as soon as it has arrived and `ready` holds. */
export function seenRequest(
  address: Pick<GatewayAddress, 'standIns'>,
  text: string,
  ready: (request: UpstreamRequest) => boolean = () => true,
): Promise<UpstreamRequest> {
  return vi.waitFor(
    async () => {
      const found = await seenRequests(address, text)
      const [only] = found
      if (only === undefined || found.length !== 1) throw new Error(`${found.length} requests with ${text}`)
      if (!ready(only)) throw new Error(`not yet: ${JSON.stringify({ ...only, body: undefined })}`)
      return only
    },
    { timeout: 5_000, interval: 20 },
  )
}

/** The request with this text once nothing more of its answer is written for a while. */
export function standsStill(
  address: Pick<GatewayAddress, 'standIns'>,
  text: string,
): Promise<UpstreamRequest> {
  let last = -1
  let since = Date.now()
  return vi.waitFor(
    async () => {
      const seen = await seenRequest(address, text)
      if (seen.bytesWritten !== last) since = Date.now()
      last = seen.bytesWritten
      if (Date.now() - since < 400) throw new Error(`still writing: ${last}`)
      return seen
    },
    { timeout: 15_000, interval: 50 },
  )
}
