// The process of the front door, started by managed-child.
import { readRanges } from './client-address.ts'
import { type Closed, startEdge } from './edge.ts'
import { linkToParent } from './parent-link.ts'

export interface EdgeSettings {
  host: string
  port: number
  gatewayPort: number
  /** As TRUSTED_PROXIES. */
  trustedProxies: string
}

linkToParent(async (settings: EdgeSettings) => {
  const edge = await startEdge({ ...settings, trustedProxies: readRanges(settings.trustedProxies) })
  return {
    ready: { port: edge.port },
    answer: async ({ closed, drainMs }) => {
      if (closed !== undefined) edge.setClosed(closed as Closed)
      return typeof drainMs === 'number' ? edge.drain(drainMs) : null
    },
  }
})
