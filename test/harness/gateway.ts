import { neon, neonConfig } from '@neondatabase/serverless'
import { inject } from 'vitest'
import type { GatewayAddress } from './start-gateway.ts'

/** The shared gateway of this project (`globalSetup: test/harness/global-setup.ts`). */
export function gateway(): GatewayAddress {
  return inject('gateway')
}

/** A request that the scripted upstream received; `GET /control/requests` has more members. */
export interface SeenRequest {
  sequence: number
  method: string
  path: string
  headers: Record<string, string>
  body: string
  [member: string]: unknown
}

/** Speaks to the control interface of a gateway's scripted model upstream. */
export function upstreamControl(address: Pick<GatewayAddress, 'standIns'>) {
  const call = async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const response = await fetch(`${address.standIns.modelUpstream}/control/${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = (await response.json()) as Record<string, unknown>
    if (!response.ok) throw new Error(`upstream control ${method} ${path}: ${JSON.stringify(answer)}`)
    return answer
  }
  return {
    /** Registers a script under a name; a call selects it by that name. */
    putScript: (name: string, script: unknown) => call('PUT', `scripts/${name}`, script),
    removeScript: (name: string) => call('DELETE', `scripts/${name}`),
    /** Lets every script that waits for the signal go on. */
    release: (signal: string) => call('POST', `signals/${signal}`),
    /** How many scripts wait for each signal. */
    waiting: async () => (await call('GET', 'signals')).waiting as Record<string, number>,
    /** Requests after a sequence number with a text in the first 64 KB of their body, oldest first. */
    requests: async (after = 0, containing = '') =>
      (await call('GET', `requests?after=${after}&containing=${encodeURIComponent(containing)}`))
        .requests as SeenRequest[],
    /** Sequence number of the newest request, to read only what comes after. */
    lastRequest: async () => Number((await call('GET', 'requests?after=999999999')).last),
    stats: () => call('GET', 'stats'),
  }
}

/** Runs SQL in a gateway's database, past the gateway. @returns the rows as objects */
export async function query(
  address: Pick<GatewayAddress, 'variables' | 'standIns'>,
  text: string,
  parameters: unknown[] = [],
): Promise<Array<Record<string, unknown>>> {
  const url = address.variables.DATABASE_URL ?? ''
  // The connection string names the stand-in's own port, so one rule serves every gateway of a test file.
  neonConfig.fetchEndpoint = (host, port) => `http://${host}:${port}/sql`
  return neon(url).query(text, parameters)
}
