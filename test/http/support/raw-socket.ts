import { connect } from 'node:net'

/**
 * Sends one request over a plain socket and reads a chunked answer.
 * @returns its head and the chunks of the transfer encoding, which is how the other side has written it.
 */
export async function readChunks(
  url: string,
  headers: Record<string, string>,
  body: string,
): Promise<{ head: string; chunks: string[] }> {
  const { hostname, port, pathname } = new URL(url)
  const lines = [
    `POST ${pathname} HTTP/1.1`,
    `Host: ${hostname}:${port}`,
    'Connection: close',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ]
  const received = await new Promise<Buffer>((resolve, reject) => {
    const parts: Buffer[] = []
    const socket = connect(Number(port), hostname, () => socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`))
    socket.on('data', (part) => parts.push(part))
    socket.on('error', reject)
    socket.on('close', () => resolve(Buffer.concat(parts)))
  })
  const headEnd = received.indexOf('\r\n\r\n')
  return {
    head: received.toString('latin1', 0, headEnd),
    chunks: decodeChunks(received.subarray(headEnd + 4)),
  }
}

function decodeChunks(bytes: Buffer): string[] {
  const chunks: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    const length = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    if (!(length > 0)) break
    chunks.push(bytes.toString('utf8', lineEnd + 2, lineEnd + 2 + length))
    at = lineEnd + 2 + length + 2
  }
  return chunks
}
