import { median, quantile } from '../statistics.ts'
import { type Calls, CHAT_ENDING, CREATED, FIRST_CHAT_DELTA, FIRST_DELTA, RESPONSE_ENDING } from './calls.ts'
import { callStream, type StreamRequest } from './stream-call.ts'

/** Milliseconds from the request; p99 null of fewer than a hundred calls. */
export interface Times {
  p50: number
  p99: number | null
  calls: number
}

/** How soon an answer begins, on each path in turn with one call at a time. */
export interface FirstEventFigures {
  /** The first text of a chat completion of the same upstream. */
  chat: Times
  stored: { created: Times; delta: Times }
  /** With `store: false`, which writes no row before the upstream is called. */
  unstored: { created: Times; delta: Times }
  /** Of the first text over the chat path's, within a round; the median over rounds. */
  added: { stored: Added; unstored: Added }
}

export interface Added {
  p50: number
  p99: number | null
}

const SCRIPT = 'bench-chat-stream'
const LEAST_FOR_P99 = 100
const WARM_UP_CALLS = 30

interface Round {
  chat: number[]
  stored: number[][]
  unstored: number[][]
}

/** @param milliseconds about how long each of the rounds takes */
export async function measureFirstEvents(
  calls: Calls,
  rounds: number,
  milliseconds: number,
): Promise<FirstEventFigures> {
  const kinds: Array<[keyof Round, StreamRequest]> = [
    ['chat', calls.chat(SCRIPT)],
    ['stored', calls.response(SCRIPT)],
    ['unstored', calls.response(SCRIPT, { store: false })],
  ]
  for (let call = 0; call < WARM_UP_CALLS; call += 1) {
    for (const [kind, request] of kinds) await timesOf(kind, request)
  }
  const measured: Round[] = []
  for (let round = 0; round < rounds; round += 1) {
    const samples: Round = { chat: [], stored: [], unstored: [] }
    const end = performance.now() + milliseconds
    do {
      // In turn, so that what else the machine does meets all of them alike.
      for (const [kind, request] of kinds) {
        const [first = 0, second = 0] = await timesOf(kind, request)
        if (kind === 'chat') samples.chat.push(first)
        else samples[kind].push([first, second])
      }
    } while (performance.now() < end)
    measured.push(samples)
  }
  return figuresOf(measured)
}

async function timesOf(kind: keyof Round, request: StreamRequest): Promise<number[]> {
  const isChat = kind === 'chat'
  const marks = isChat ? [FIRST_CHAT_DELTA] : [CREATED, FIRST_DELTA]
  return (await callStream(request, isChat ? CHAT_ENDING : RESPONSE_ENDING, marks)).marks
}

function figuresOf(rounds: Round[]): FirstEventFigures {
  const column = (kind: 'stored' | 'unstored', index: number): number[][] =>
    rounds.map((round) => round[kind].map((times) => times[index] ?? Number.NaN))
  const chat = rounds.map((round) => round.chat)
  const figures = (kind: 'stored' | 'unstored') => ({
    created: timesOver(column(kind, 0)),
    delta: timesOver(column(kind, 1)),
  })
  return {
    chat: timesOver(chat),
    stored: figures('stored'),
    unstored: figures('unstored'),
    added: {
      stored: addedOver(column('stored', 1), chat),
      unstored: addedOver(column('unstored', 1), chat),
    },
  }
}

/** Medians over the rounds. */
function timesOver(rounds: number[][]): Times {
  const calls = rounds.reduce((sum, round) => sum + round.length, 0)
  const p99 = median(rounds.map((round) => quantile(round, 0.99)))
  return { p50: median(rounds.map(median)), p99: calls < LEAST_FOR_P99 ? null : p99, calls }
}

function addedOver(ours: number[][], theirs: number[][]): Added {
  const overRounds = (share: number): number =>
    median(ours.map((round, index) => quantile(round, share) - quantile(theirs[index] ?? [], share)))
  const { p99 } = timesOver(ours)
  return { p50: overRounds(0.5), p99: p99 === null ? null : overRounds(0.99) }
}
