import { AuthorizationServer, type ServerOptions } from './authorization-server.ts'
import { Browser, locationOf } from './browser.ts'
import { gateway } from './gateway.ts'
import { type Answer, send } from './send.ts'
import { serve } from './serve.ts'
import { type StartedWorker, startWorker } from './start-worker.ts'

/** A Worker that may call authorization servers of the test. */
export interface OAuthWorker {
  worker: StartedWorker
  /** Starts a server. There are as many as were announced. */
  newServer(options?: Partial<ServerOptions>): AuthorizationServer
  stop(): Promise<void>
}

export async function startOAuthWorker(mostServers: number): Promise<OAuthWorker> {
  const hosts: string[] = []
  const ends: Array<() => Promise<void>> = []
  const free: Array<(options: Partial<ServerOptions>) => AuthorizationServer> = []
  for (let made = 0; made < mostServers; made++) {
    const holder: { server?: AuthorizationServer } = {}
    const { standIn, host, close } = await serve((origin) => ({
      origin,
      handle: async (request: Request) =>
        (await holder.server?.handle(request)) ?? new Response(null, { status: 500 }),
    }))
    hosts.push(host)
    ends.push(close)
    free.push((options) => {
      holder.server = new AuthorizationServer({ origin: standIn.origin, ...options })
      return holder.server
    })
  }
  const worker = await startWorker({ EGRESS_ALLOW: [gateway().variables.EGRESS_ALLOW, ...hosts].join(',') })
  return {
    worker,
    newServer(options = {}) {
      const server = free.pop()?.(options)
      if (!server) throw new Error('more servers are needed')
      return server
    },
    async stop() {
      await worker.stop()
      for (const end of ends) await end()
    },
  }
}

/** Follows a link to connect an account through the consent of its server. @returns the last page. */
export async function followConnectLink(url: string): Promise<Answer> {
  const browser = new Browser()
  await browser.get(url)
  const returned = await send(locationOf(await browser.submit(url)))
  return browser.get(locationOf(returned))
}
