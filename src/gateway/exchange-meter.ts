import { addUsage, type Usage } from '../governance/credits.ts'
import { unreportedUsage } from './metering.ts'
import type { Meter } from './protocols/protocol.ts'

/**
 * What a call has used over all its exchanges with upstreams: each of them is charged. An exchange that ends before its
 * upstream told what it used counts by what was sent and by what came.
 */
export class ExchangeMeter implements Meter {
  #before: Usage | null = null
  #textBefore = 0
  /** Every exchange that is over told its usage to the end. */
  #reported = true
  #current: { meter: Meter; requestBytes: number } | null = null

  /** Goes on with the next exchange. @param requestBytes of what was sent in it. */
  follow(meter: Meter, requestBytes: number): void {
    if (this.#current) {
      const reported = this.#current.meter.usage()
      this.#reported &&= reported?.final === true
      this.#before = addUsage(this.#before, this.#usageOf(this.#current))
      this.#textBefore += this.#current.meter.textBytes
    }
    this.#current = { meter, requestBytes }
  }

  /** Adds an exchange whose answer came whole. */
  add(usage: Usage | null, textBytes: number, requestBytes: number): void {
    this.follow({ usage: () => usage && { usage, final: true }, textBytes }, requestBytes)
  }

  #usageOf({ meter, requestBytes }: { meter: Meter; requestBytes: number }): Usage {
    return meter.usage()?.usage ?? unreportedUsage(requestBytes, meter.textBytes)
  }

  usage(): { usage: Usage; final: boolean } | null {
    if (!this.#current) return null
    const reported = this.#current.meter.usage()
    // Nothing was told at all: the whole call is estimated within its bounds.
    if (!reported && !this.#before) return null
    const usage = addUsage(this.#before, this.#usageOf(this.#current))
    return { usage, final: reported?.final === true && this.#reported }
  }

  get textBytes(): number {
    return this.#textBefore + (this.#current?.meter.textBytes ?? 0)
  }
}
