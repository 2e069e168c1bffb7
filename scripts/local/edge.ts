import { startHostForwarder } from '../node/host-forwarder.ts'

export interface Edge {
  /** `http://127.0.0.1:<port>`, in place of the gateway's own URL. */
  url: string
  close(): Promise<void>
}

/**
 * Runs before a gateway like the platform's edge: see `startHostForwarder`.
 *
 * @param gatewayUrl of a workerd on loopback
 * @param listenPort at 127.0.0.1; 0 for any free one
 * @throws the error of `listen`, such as `EADDRINUSE`
 */
export const startEdge = (gatewayUrl: string, listenPort = 0): Promise<Edge> =>
  startHostForwarder({ port: listenPort, targetPort: Number(new URL(gatewayUrl).port), host: null })
