import { setTimeout as pause } from 'node:timers/promises'
import { listenOnLoopback, readBody, sendJson } from '../../../scripts/node/loopback-server.ts'
import { deliver } from '../../../scripts/node/qstash/delivery.ts'
import { createMessage, type QueuedMessage } from '../../../scripts/node/qstash/queued-message.ts'
import { signDelivery } from '../../../scripts/node/qstash/signature.ts'
import type { Random } from '../../faults/support/random.ts'
import { inParallel } from '../../faults/support/response-trials.ts'

/** How a forged delivery differs from the one that QStash would make. */
const FORGERIES = ['no signature', 'other key', 'other URL', 'other body', 'expired'] as const
type Forgery = (typeof FORGERIES)[number]

/** A message that was published, with the last signature that it was delivered under. */
interface Recorded extends QueuedMessage {
  signature: string | null
  /** Time and status of each delivery. */
  deliveries: string[]
}

export interface QueueTape {
  readonly url: string
  /** Every message, in the order of publication. */
  readonly messages: readonly Recorded[]
  /** How often a message was delivered so many times, a delivery answered with a status, and a forgery was refused. */
  readonly counts: Record<string, number>
  /** Statuses of forged deliveries other than 401. */
  readonly acceptedForgeries: string[]
  /** Key that signs deliveries; none is made before it is known. */
  signingKey: string
  /** Whether publishing is refused, as while QStash is away. */
  away: boolean
  /** The last messages of a run with their deliveries, as text. */
  deliveriesOf(runId: string): string[]
  /** From now on, delivers each message once and at once. */
  calm(): void
  /** Delivers the message of every revision again, under its old signature or a new one. */
  replay(): Promise<void>
  close(): Promise<void>
}

/** QStash repeats a delivery that is not answered with 2xx three times; what then still fails is lost. */
const REPETITIONS = 3
const OTHER_KEY = 'sig_of_another_account'
const HOUR_MS = 3_600_000
/** A delay of QStash is shortened to it, so that a campaign need not wait. */
const LONGEST_DELAY_MS = 800
const REPLAYED_TOGETHER = 20
const MOST_SHOWN = 40

/**
 * Replaces QStash: records what is published over the wire, and delivers each message zero to three times, late and out
 * of order, among forged ones. Only the sweep and the watchdogs recover lost messages.
 */
export async function startQueueTape(random: Random): Promise<QueueTape> {
  const tape = new Tape(random)
  const http = await listenOnLoopback(0, async (request, response) => {
    const destination = /^\/v2\/publish\/(.+)$/s.exec(request.url ?? '')?.[1]
    const body = await readBody(request, 1024 * 1024)
    if (tape.away) return sendJson(response, 503, { error: 'away' })
    if (request.method !== 'POST' || destination === undefined) return sendJson(response, 404, {})
    const headers = Object.entries(request.headers).filter(([name]) => /^(upstash-|content-type$)/.test(name))
    const named = Object.fromEntries(headers.map(([name, value]) => [name, String(value)]))
    const published = tape.publish(
      createMessage({ url: destination, headers: named, body, callerIp: '127.0.0.1' }, Date.now()),
      named['upstash-deduplication-id'],
    )
    sendJson(response, 201, published)
  })
  tape.url = http.url
  tape.closeServer = http.close
  return tape
}

class Tape implements QueueTape {
  url = ''
  closeServer: () => Promise<void> = async () => {}
  signingKey = ''
  away = false
  readonly messages: Recorded[] = []
  readonly counts: Record<string, number> = {}
  readonly acceptedForgeries: string[] = []
  readonly #random: Random
  readonly #known = new Map<string, string>()
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<unknown>>()
  #calm = false

  constructor(random: Random) {
    this.#random = random
  }

  publish(message: QueuedMessage, deduplicationId: string | undefined) {
    const known = deduplicationId === undefined ? undefined : this.#known.get(deduplicationId)
    if (known !== undefined) return { messageId: known, deduplicated: true }
    if (deduplicationId !== undefined) this.#known.set(deduplicationId, message.messageId)
    const recorded: Recorded = { ...message, signature: null, deliveries: [] }
    this.messages.push(recorded)
    this.#plan(recorded)
    return { messageId: message.messageId }
  }

  deliveriesOf(runId: string): string[] {
    const messages = this.messages.map((message) => ({
      ...message,
      text: Buffer.from(message.body, 'base64').toString(),
    }))
    const own = messages.filter(({ text }) => text.includes(runId)).slice(-MOST_SHOWN)
    return own.map(
      ({ text, createdAt, deliveries }) => `${new Date(createdAt).toISOString()} ${text}: ${deliveries}`,
    )
  }

  calm(): void {
    this.#calm = true
  }

  async replay(): Promise<void> {
    const messages = [...new Map(this.messages.map((message) => [message.body, message])).values()]
    await inParallel(messages.length, REPLAYED_TOGETHER, async (index) => {
      const message = messages[index]
      if (!message) return
      const old = this.#random.chance(0.5) ? message.signature : null
      const status = await this.#send(message, old ?? this.#sign(message))
      this.#count(old ? 'old signature' : 'new signature', status)
    })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#running)
    await this.closeServer()
  }

  #plan(message: Recorded): void {
    const random = this.#random
    const copies = this.#calm ? 1 : random.pick([0, 1, 1, 1, 1, 2, 2, 2, 3])
    this.#count('messages delivered', copies)
    const due = Math.min(message.notBefore - message.createdAt, LONGEST_DELAY_MS)
    for (let copy = 0; copy < copies; copy++) this.#run(this.#deliver(message, due + this.#lateness()))
    if (!this.#calm && random.chance(0.1)) {
      this.#run(this.#forge(message, random.pick(FORGERIES), random.integer(0, 300)))
    }
  }

  /** Milliseconds: mostly little, so that messages arrive out of order; sometimes much, after others have done their work. */
  #lateness(): number {
    if (this.#calm) return 0
    return this.#random.chance(0.2) ? this.#random.integer(500, 5_000) : this.#random.integer(0, 120)
  }

  async #deliver(message: Recorded, delay: number): Promise<void> {
    await pause(delay, undefined, { signal: this.#closing.signal })
    for (let repetition = 0; repetition <= REPETITIONS; repetition++) {
      const signature = this.#sign(message)
      message.signature = signature
      // Another copy may be under way: its lease is taken over all the same.
      const status = await this.#send({ ...message, retried: repetition }, signature)
      this.#count('delivered', status)
      message.deliveries.push(`${new Date().toISOString()} ${status}`)
      if (status >= 200 && status < 300) return
      await pause(this.#random.integer(50, 1_000), undefined, { signal: this.#closing.signal })
    }
  }

  async #forge(message: QueuedMessage, forgery: Forgery, delay: number): Promise<void> {
    await pause(delay, undefined, { signal: this.#closing.signal })
    const status = await this.#send(message, this.#forged(message, forgery))
    // Without an answer, the gateway was just killed.
    if (status === 401 || status === 0) this.#count(`forged: ${forgery}`, status)
    else this.acceptedForgeries.push(`${forgery}: ${status}`)
  }

  #forged(message: QueuedMessage, forgery: Forgery): string {
    const body = Buffer.from(message.body, 'base64')
    if (forgery === 'no signature') return ''
    if (forgery === 'other key') return signDelivery(OTHER_KEY, message.url, body)
    if (forgery === 'other URL') return signDelivery(this.signingKey, `${message.url}/other`, body)
    if (forgery === 'other body') {
      return signDelivery(this.signingKey, message.url, Buffer.concat([body, Buffer.from(' ')]))
    }
    return signDelivery(this.signingKey, message.url, body, Date.now() - HOUR_MS)
  }

  #sign({ url, body }: QueuedMessage): string {
    return signDelivery(this.signingKey, url, Buffer.from(body, 'base64'))
  }

  async #send(message: QueuedMessage, signature: string): Promise<number> {
    return (await deliver(message, signature, this.#closing.signal)).status
  }

  #run(work: Promise<void>): void {
    const caught = work.catch((error: Error) => {
      if (error.name !== 'AbortError') throw error
    })
    this.#running.add(caught)
    caught.finally(() => this.#running.delete(caught))
  }

  #count(what: string, kind: number): void {
    const name = `${what} ${kind}`
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }
}
