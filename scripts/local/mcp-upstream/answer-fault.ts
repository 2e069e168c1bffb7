import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { createGzip } from 'node:zlib'
import type { ServerFault } from './scripted-server.ts'

const EVENTS = {
  comment: ': still here\n\n',
  notification:
    'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"on"}}\n\n',
}

/**
 * Answers with a fault.
 * @param id of the request, in place of `$ID` in a body. @returns false where the server then answers as it should.
 */
export async function answerFault(
  fault: ServerFault,
  id: unknown,
  response: ServerResponse,
): Promise<boolean> {
  switch (fault.kind) {
    case 'answer':
      response.writeHead(fault.status, fault.headers)
      response.write(fault.body.replace('$ID', () => JSON.stringify(id ?? null)))
      if (fault.ending === 'end') response.end()
      if (fault.ending === 'destroy') await pause(50).then(() => response.destroy())
      return true
    case 'hang':
      return true
    case 'destroy':
      if (fault.late) {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 })
        response.write('{"jsonrpc":"2.0","id":')
        await pause(50)
      }
      response.destroy()
      return true
    case 'endless':
      await sendEndless(response, EVENTS[fault.event])
      return true
    case 'gzip':
      await sendSpaces(response, fault)
      return true
    case 'slow':
      await pause(fault.milliseconds)
      return false
  }
}

/** Until the client leaves. */
async function sendEndless(response: ServerResponse, event: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  while (!response.destroyed) {
    response.write(event)
    await pause(20)
  }
}

async function sendSpaces(
  response: ServerResponse,
  { megabytes, type }: Extract<ServerFault, { kind: 'gzip' }>,
): Promise<void> {
  response.writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' })
  const gzip = createGzip()
  gzip.on('error', () => {})
  gzip.pipe(response)
  const block = Buffer.alloc(1024 * 1024, 0x20)
  for (let sent = 0; sent < megabytes && !response.destroyed; sent++) {
    if (!gzip.write(block)) await Promise.race([drained(gzip), closed(response)])
  }
  gzip.end()
}

const drained = (stream: NodeJS.EventEmitter) => new Promise((done) => stream.once('drain', done))
const closed = (response: ServerResponse) => new Promise((done) => response.once('close', done))
