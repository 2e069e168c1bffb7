import { get } from 'node:http'

/** A server on this machine. */
export type LocalAddress = { port: number; host?: string } | { socketPath: string }

/**
 * Reads a small answer of a server on this machine, also at a Unix socket, which `fetch` does not reach.
 * @param signal ends the request
 * @throws the error of the connection, or the reason of the signal
 */
export function getText(
  address: LocalAddress,
  path: string,
  signal?: AbortSignal,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = get({ ...address, path, agent: false, ...(signal && { signal }) }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString() }),
      )
    })
    request.on('error', (error) => reject(signal?.aborted ? signal.reason : error))
  })
}
