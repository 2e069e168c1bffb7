import { type LoopbackServer, listenOnLoopback, readBody } from '../../../scripts/node/loopback-server.ts'

const LARGEST_BODY = 16 * 1024 * 1024

/** SQL over HTTP by way of this process, so that a test can take the database away from a deployment alone. */
export class DatabaseRelay {
  /** How many requests to come are cut. */
  refusals = 0
  /** How many were cut. */
  refused = 0
  #server: LoopbackServer | undefined
  readonly #target: string

  /** @param postgres address of the Postgres stand-in */
  constructor(postgres: string) {
    this.#target = `${postgres}/sql`
  }

  /** @returns the address for DATABASE_FETCH_ENDPOINT */
  async start(): Promise<string> {
    this.#server = await listenOnLoopback(0, async (incoming, response) => {
      const body = await readBody(incoming, LARGEST_BODY)
      if (this.refusals > 0) {
        this.refusals -= 1
        this.refused += 1
        response.destroy()
        return
      }
      const names = Object.keys(incoming.headers).filter((name) => name.startsWith('neon-'))
      const headers = names.map((name): [string, string] => [name, String(incoming.headers[name])])
      const answer = await fetch(this.#target, { method: 'POST', headers, body })
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text())
    })
    return `${this.#server.url}/sql`
  }

  async stop(): Promise<void> {
    await this.#server?.close()
  }
}
