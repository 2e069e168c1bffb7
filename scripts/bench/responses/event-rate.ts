import { setTimeout } from 'node:timers/promises'
import { cpuMicroseconds, untilIdle } from '../process-usage.ts'
import { median } from '../statistics.ts'
import { type Calls, CHAT_ENDING, RESPONSE_ENDING } from './calls.ts'
import { callStream, type StreamRequest } from './stream-call.ts'

/** Events of the upstream that reach the client in a second. */
export interface EventRateFigures {
  /** Events of each call that is alone, and how many a second there are. */
  one: { events: number; chat: number; responses: number }
  /** As many calls at once, all together. */
  many: { calls: number; events: number; chat: number; responses: number }
  /** CPU of an event in microseconds: the slope between a short and a long stream. */
  cpu: { chat: number; responses: number }
}

const LONG_EVENTS = 10_000
const MANY_CALLS = 200
/** Of each of the many. */
const MANY_EVENTS = 200
/** Streams at once while CPU is counted: enough that the processor is what limits. */
const CPU_CALLS = 4
const CPU_SHORT_EVENTS = 100
const CPU_LONG_EVENTS = 2_500
/** Longer than the ledger puts its writing off. */
const DEFERRED_MS = 1_050

type Path = 'chat' | 'responses'

/** @param pid of the gateway's process */
export async function measureEventRates(
  calls: Calls,
  pid: number,
  rounds: number,
): Promise<EventRateFigures> {
  const call = (path: Path, events: number): Promise<number> => streamOf(calls, path, events)
  await Promise.all([call('chat', 1_000), call('responses', 1_000)])
  const one = { chat: [] as number[], responses: [] as number[] }
  const many = { chat: [] as number[], responses: [] as number[] }
  const cpu = { chat: [] as number[], responses: [] as number[] }
  for (let round = 0; round < rounds; round += 1) {
    for (const path of ['chat', 'responses'] as const) {
      one[path].push(LONG_EVENTS / (await secondsOf(() => call(path, LONG_EVENTS))))
      const together = () => Promise.all(Array.from({ length: MANY_CALLS }, () => call(path, MANY_EVENTS)))
      many[path].push((MANY_CALLS * MANY_EVENTS) / (await secondsOf(together)))
      cpu[path].push(await cpuPerEvent(pid, (events) => call(path, events)))
    }
  }
  return {
    one: { events: LONG_EVENTS, chat: median(one.chat), responses: median(one.responses) },
    many: {
      calls: MANY_CALLS,
      events: MANY_EVENTS,
      chat: median(many.chat),
      responses: median(many.responses),
    },
    cpu: { chat: median(cpu.chat), responses: median(cpu.responses) },
  }
}

/** @returns events that the client got. */
async function streamOf(calls: Calls, path: Path, events: number): Promise<number> {
  const script = `long-stream tokens=${events}`
  const request: StreamRequest = path === 'chat' ? calls.chat(script) : calls.response(script)
  return (await callStream(request, path === 'chat' ? CHAT_ENDING : RESPONSE_ENDING)).events
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await work()
  return (performance.now() - begin) / 1_000
}

async function cpuPerEvent(pid: number, call: (events: number) => Promise<number>): Promise<number> {
  const used = async (events: number): Promise<number> => {
    const before = cpuMicroseconds(pid)
    await Promise.all(Array.from({ length: CPU_CALLS }, () => call(events)))
    await setTimeout(DEFERRED_MS)
    await untilIdle(pid, 400, 10_000)
    return cpuMicroseconds(pid) - before
  }
  const short = await used(CPU_SHORT_EVENTS)
  return ((await used(CPU_LONG_EVENTS)) - short) / (CPU_CALLS * (CPU_LONG_EVENTS - CPU_SHORT_EVENTS))
}
