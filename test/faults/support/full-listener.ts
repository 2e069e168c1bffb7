import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'

/** Listens with room for one, then never turns to its sockets again. */
const LISTENER = `
const { createServer } = require('node:net')
const { parentPort } = require('node:worker_threads')
const server = createServer()
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port)
  parentPort.once('message', () => {
    parentPort.postMessage('stopped')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })
})`

const CONNECTED_WITHIN_MS = 200

/**
 * A host that never completes a connection, like one behind a firewall that drops packets: its queue of connections is
 * full and never accepted from, so the kernel ignores further ones.
 */
export async function startFullListener(): Promise<{ port: number; close(): Promise<void> }> {
  const worker = new Worker(LISTENER, { eval: true })
  const [port] = (await once(worker, 'message')) as [number]
  worker.postMessage('stop')
  await once(worker, 'message')
  const sockets: Socket[] = []
  // How many fit is the kernel's affair: filled until one does not get in.
  for (let full = false; !full; ) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    sockets.push(socket)
    full = await Promise.race([
      once(socket, 'connect').then(() => false),
      new Promise<true>((resolve) => setTimeout(resolve, CONNECTED_WITHIN_MS, true)),
    ])
  }
  return {
    port,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await worker.terminate()
    },
  }
}
