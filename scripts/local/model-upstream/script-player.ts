import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { Exchange } from './exchange.ts'
import type { Step } from './script-steps.ts'
import type { SignalBoard } from './signal-board.ts'

const jsonType = { 'content-type': 'application/json' }
const eventStream = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }

/**
 * Plays the steps of a script as the answer of one request, and ends the answer after the last one. Frames and chunks
 * are written exactly as given, each as a packet of its own. Returns early when the client leaves.
 */
export async function playSteps(
  steps: Iterable<Step>,
  exchange: Exchange,
  signals: SignalBoard,
): Promise<void> {
  const frames = new FrameCounter()
  for (const step of steps) {
    if (exchange.departure.aborted) return
    const ended = await playStep(step, exchange, signals, frames)
    if (ended) return
  }
  exchange.start(200, eventStream)
  exchange.end()
}

/** Plays one step. @returns whether it was the last */
async function playStep(
  step: Step,
  exchange: Exchange,
  signals: SignalBoard,
  frames: FrameCounter,
): Promise<boolean> {
  if ('waitMilliseconds' in step) return wait(step.waitMilliseconds, exchange)
  if ('waitForSignal' in step) return signals.wait(step.waitForSignal, exchange.departure).then(() => false)
  if ('silent' in step) return untilDeparture(exchange)
  if ('destroy' in step) return finish(() => exchange.destroy())
  if ('end' in step) {
    exchange.start(200, eventStream)
    return finish(() => exchange.end())
  }
  if ('json' in step) {
    const body = JSON.stringify(step.json)
    return finish(() => exchange.sendWhole(step.status ?? 200, jsonType, body))
  }
  if (writes(step)) {
    exchange.start(200, eventStream)
    await writeStep(step, exchange, frames)
    return false
  }
  if (step.body !== undefined) {
    const { status = 200, headers = {}, body } = step
    return finish(() => exchange.sendWhole(status, headers, body))
  }
  exchange.start(step.status ?? 200, step.headers ?? eventStream)
  return false
}

type WritingStep = Extract<
  Step,
  { sse: unknown } | { chunk: unknown } | { chunkBase64: unknown } | { bytes: unknown }
>

const writes = (step: Step): step is WritingStep =>
  'sse' in step || 'chunk' in step || 'chunkBase64' in step || 'bytes' in step

async function writeStep(step: WritingStep, exchange: Exchange, frames: FrameCounter): Promise<void> {
  if ('bytes' in step) return exchange.write(step.bytes, step.events)
  if ('sse' in step) {
    for (const frame of step.sse) await exchange.writeApart(frame, 1)
    return
  }
  const bytes = 'chunk' in step ? Buffer.from(step.chunk) : Buffer.from(step.chunkBase64, 'base64')
  await exchange.writeApart(bytes, frames.count(bytes.toString('latin1')))
}

function finish(action: () => void): true {
  action()
  return true
}

async function wait(milliseconds: number, exchange: Exchange): Promise<false> {
  await setTimeout(milliseconds, undefined, { signal: exchange.departure }).catch(() => undefined)
  return false
}

async function untilDeparture(exchange: Exchange): Promise<true> {
  if (!exchange.departure.aborted) await once(exchange.departure, 'abort')
  return true
}

/** Counts frames that end in a stream of arbitrarily split chunks: a frame ends at its blank line. */
class FrameCounter {
  #rest = ''

  count(chunk: string): number {
    const parts = (this.#rest + chunk).split(/\r\n\r\n|\n\n|\r\r/)
    this.#rest = (parts.at(-1) ?? '').slice(-3)
    return parts.length - 1
  }
}
