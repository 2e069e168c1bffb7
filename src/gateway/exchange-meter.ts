import { addUsage, type Usage } from '../governance/credits.ts'
import type { Meter } from './protocols/protocol.ts'

/** What a call has used over all its exchanges with upstreams: each of them is charged. */
export class ExchangeMeter implements Meter {
  #before: Usage | null = null
  #textBefore = 0
  /** Every exchange that is over told its usage to the end. */
  #reported = true
  #current: Meter | null = null

  /** Goes on with the next exchange. */
  follow(meter: Meter): void {
    this.#settleCurrent()
    this.#current = meter
  }

  /** Adds an exchange whose answer came whole. */
  add(usage: Usage | null, textBytes: number): void {
    this.follow({ usage: () => usage && { usage, final: true }, textBytes })
  }

  #settleCurrent(): void {
    if (!this.#current) return
    const reported = this.#current.usage()
    this.#reported &&= reported?.final === true
    this.#before = reported ? addUsage(this.#before, reported.usage) : this.#before
    this.#textBefore += this.#current.textBytes
    this.#current = null
  }

  usage(): { usage: Usage; final: boolean } | null {
    const current = this.#current?.usage() ?? null
    if (!current) return this.#before && { usage: this.#before, final: false }
    return { usage: addUsage(this.#before, current.usage), final: current.final && this.#reported }
  }

  get textBytes(): number {
    return this.#textBefore + (this.#current?.textBytes ?? 0)
  }
}
