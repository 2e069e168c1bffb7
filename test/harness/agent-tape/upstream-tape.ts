import { upstreamControl } from '../gateway.ts'
import type { GatewayAddress } from '../start-gateway.ts'
import type { UpstreamRequest } from '../upstream.ts'
import type { JudgeScripts } from './judges.ts'

/** The requests that the upstream served, by their script. It remembers the last thousand only, so that it is read again and again. */
export class UpstreamTape {
  readonly #address: Pick<GatewayAddress, 'standIns'>
  readonly #requests = new Map<number, UpstreamRequest>()
  #after = 0

  constructor(address: Pick<GatewayAddress, 'standIns'>) {
    this.#address = address
  }

  /** Reads what is new, and what was not finished. */
  async read(): Promise<void> {
    const seen = (await upstreamControl(this.#address).requests(this.#after)) as UpstreamRequest[]
    for (const request of seen) this.#requests.set(request.sequence, request)
    const open = seen.find(({ finished, clientClosedAt }) => !finished && clientClosedAt === null)
    this.#after = open ? open.sequence - 1 : (seen.at(-1)?.sequence ?? this.#after)
  }

  /** All requests by the name of their script, oldest first. */
  byScript(): Map<string, UpstreamRequest[]> {
    const requests = [...this.#requests.values()].toSorted((a, b) => a.sequence - b.sequence)
    return Map.groupBy(requests, ({ script }) => script ?? '')
  }

  /** The requests of judges by the mark of the step that they are about. */
  judgements(judges: JudgeScripts): Map<string, UpstreamRequest[]> {
    const scripts = this.byScript()
    const requests = Object.values(judges).flatMap((script) => scripts.get(script) ?? [])
    return Map.groupBy(requests, ({ body }) => /script:(step-[\da-f]+)/.exec(body)?.[1] ?? '')
  }
}
