import { abortAllDurableObjects } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { FLUSH_BYTES, FLUSH_EVENTS, FLUSH_MILLISECONDS } from '../../src/responses/log/event-log.ts'
import { MAXIMUM_ROW_BYTES } from '../../src/responses/log/packed-frames.ts'
import type { EmittedEvent } from '../../src/responses/model/events.ts'
import { Random } from '../faults/support/random.ts'
import { event, frameOf, framesOf, newEventLog, readAll, TailReader } from './event-log-harness.ts'
import type { SharedLogsObject } from './shared-logs-object.ts'

const STEPS = 60

interface Tail {
  after: number
  reader: TailReader
}

const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

/** A log that is written, read and killed at random, with what must be in it. */
class Trial {
  readonly log: ReturnType<typeof newEventLog>
  readonly random: Random
  readonly tails: Tail[] = []
  /** Everything appended; after a crash, what was stored of it. */
  appended: EmittedEvent[] = []
  /** Most rows that the policy allows to have been written. */
  allowedRows = 0
  #lives = 1

  readonly isShared: boolean

  constructor(seed: number, isShared: boolean) {
    this.isShared = isShared
    this.log = newEventLog(isShared ? env.SHARED_LOGS : env.EVENT_LOG)
    this.random = new Random(seed)
  }

  async step(): Promise<void> {
    const die = this.random.integer(0, 99)
    if (die < 55) await this.append()
    else if (die < 70) await wait(this.random.pick([0, 1, 20, 110]))
    else if (die < 88) await this.openTail()
    else if (die < 91) await this.leave()
    else if (die < 93) await this.removeOther()
    else await this.restart()
  }

  /** One synchronous run of events, now and then several on the way at once. */
  async append(): Promise<void> {
    const runs = this.random.chance(0.2) ? 4 : 1
    const calls = []
    for (let run = 0; run < runs; run += 1) calls.push(this.log().append(this.#newEvents()))
    await Promise.all(calls)
  }

  async openTail(): Promise<void> {
    const after = this.random.integer(0, this.appended.length + 3)
    const pace = this.random.pick([0, 0, 5, 60])
    const stream = await this.log().tailOf(after)
    let slowReads = pace === 0 ? 0 : 15
    const pause = async () => {
      if (slowReads-- > 0) await wait(pace)
    }
    // Some nobody ever reads from.
    if (this.random.chance(0.1)) return
    this.tails.push({ after, reader: new TailReader(stream, pause) })
  }

  async leave(): Promise<void> {
    if (this.tails.length > 0) await this.random.pick(this.tails).reader.leave()
  }

  /** Deletes what is beside the log: nothing of it is left, and all of the log. */
  async removeOther(): Promise<void> {
    if (!this.isShared) return
    const log = this.log() as unknown as DurableObjectStub<SharedLogsObject>
    expect(await log.removeOther()).toBe(false)
  }

  /** Kills the object, maybe in the middle of an append. What it had not stored is lost, and nobody has seen it. */
  async restart(): Promise<void> {
    const caught = this.random.chance(0.5)
      ? this.log()
          .append(this.#newEvents())
          .catch(() => {})
      : undefined
    await abortAllDurableObjects()
    await caught
    const { lastSequence } = await this.log().state()
    expect(lastSequence).toBeLessThanOrEqual(this.appended.length)
    this.appended.length = lastSequence
    this.#lives += 1
  }

  async end(): Promise<void> {
    const last = event(this.appended.length + 1, { boundary: true, word: `end of life ${this.#lives}` })
    await this.log().end([last])
    this.appended.push(last)
    this.allowedRows += 1
  }

  /** What a reader has got is what a replay gives from the same place on, as far as it came. */
  async check(): Promise<void> {
    const all = framesOf(this.appended)
    expect(await readAll(await this.log().tailOf(0))).toBe(all)
    await this.#checkTails()
    await this.#checkPositions()
    await this.#checkRows()
  }

  #newEvents(): EmittedEvent[] {
    const count = this.random.integer(1, this.random.pick([1, 3, 40]))
    const events = Array.from({ length: count }, () => {
      const made = event(this.appended.length + 1, {
        boundary: this.random.chance(0.1),
        word: `life ${this.#lives} ${this.#text()}`,
      })
      this.appended.push(made)
      return made
    })
    const size = events.reduce((sum, made) => sum + frameOf(made).length * 3, 0)
    if (events.some(({ boundary }) => boundary)) this.allowedRows += 1
    this.allowedRows += count / FLUSH_EVENTS + size / FLUSH_BYTES + 2 * Math.floor(size / MAXIMUM_ROW_BYTES)
    return events
  }

  #text(): string {
    const characters = this.random.pick(['a', 'é', '€', '😀', '\u2028', '"\\\n'])
    const die = this.random.fraction()
    if (die < 0.95) return characters.repeat(this.random.integer(0, 60))
    if (die < 0.99) return characters.repeat(this.random.integer(0, 15_000))
    return characters.repeat(this.random.integer(300_000, 700_000))
  }

  async #checkTails(): Promise<void> {
    for (const { after, reader } of this.tails) {
      await reader.done
      const due = framesOf(this.appended.slice(Math.min(after, this.appended.length - 1)))
      // Not toBe on megabytes: what a failure would print is no help.
      expect(due.startsWith(reader.text), `after ${after}: not what a replay says`).toBe(true)
    }
  }

  async #checkPositions(): Promise<void> {
    const last = this.appended.length
    const positions = [0, 1, last - 1, last, last + 1]
    for (let more = 0; more < 10; more += 1) positions.push(this.random.integer(0, last))
    for (const after of positions) {
      const text = await readAll(await this.log().tailOf(after))
      const due = framesOf(this.appended.slice(Math.min(after, last - 1)))
      expect(text === due, `a replay after ${after}`).toBe(true)
    }
  }

  async #checkRows(): Promise<void> {
    const rows = await this.log().rows()
    expect(rows.every(({ size }) => size <= MAXIMUM_ROW_BYTES)).toBe(true)
    expect(rows.length).toBeLessThanOrEqual(this.allowedRows)
    expect(rows.filter(({ closes }) => closes === 1)).toHaveLength(1)
    const total = rows.reduce((sum, { size }) => sum + size, 0)
    expect(total).toBe(new TextEncoder().encode(framesOf(this.appended)).length)
    for (const [index, { first, last, part }] of rows.entries()) {
      const before = rows[index - 1]?.last ?? 0
      expect(first).toBe(part === 0 ? before + 1 : before)
      expect(last).toBeGreaterThanOrEqual(first)
    }
  }
}

describe('random events, readers and crashes', () => {
  const seeds = Array.from({ length: Number(env.EVENT_LOG_SEEDS) }, (_, seed) => seed + 1)
  const logs = seeds.flatMap((seed) => [
    { seed, isShared: false, where: 'alone' },
    { seed, isShared: true, where: 'beside others' },
  ])
  const name = 'never contradict each other ($where, seed $seed)'
  it.each(logs)(name, { timeout: 120_000 }, async ({ seed, isShared }) => {
    const trial = new Trial(seed, isShared)
    const begun = Date.now()
    for (let step = 0; step < STEPS; step += 1) await trial.step()
    await trial.end()
    trial.allowedRows += 2 + (Date.now() - begun) / FLUSH_MILLISECONDS
    await trial.check()
    await abortAllDurableObjects()
    expect(await readAll(await trial.log().tailOf(0))).toBe(framesOf(trial.appended))
  })
})
