import { mebibytes, ms, section, table, times, us, verdict } from '../markdown.ts'
import type { EventRateFigures } from './event-rate.ts'
import type { FirstEventFigures, Times } from './first-event.ts'
import type { TailFigures } from './open-tails.ts'
import type { ReplayFigures } from './replay.ts'
import type { RowFigures } from './rows-written.ts'
import type { ResponsesFigures } from './section.ts'

const FIRST_DELTA_AIM_MS = 3
const REPLAY_AIM = 100_000

/** The section of responses as Markdown: what was measured, and whether what was aimed at is met. */
export function renderResponses({ firstEvents, rates, replay, rows, tails }: ResponsesFigures): string {
  return [
    renderFirstEvents(firstEvents),
    renderRates(rates),
    renderReplay(replay),
    renderRows(rows),
    renderTails(tails),
  ].join('\n\n')
}

function renderFirstEvents({ chat, stored, unstored, added }: FirstEventFigures): string {
  const row = (name: string, figures: Times, over?: { p50: number; p99: number | null }): string[] => [
    name,
    ms(figures.p50),
    ms(figures.p99),
    over === undefined ? '' : ms(over.p50),
    over === undefined ? '' : ms(over.p99),
    String(figures.calls),
  ]
  const aim = (over: { p50: number; p99: number | null }): string =>
    `${verdict(over.p50 <= FIRST_DELTA_AIM_MS)} at the median (${ms(over.p50)})` +
    (over.p99 === null ? '' : `, ${verdict(over.p99 <= FIRST_DELTA_AIM_MS)} at p99 (${ms(over.p99)})`)
  return section(
    'Responses: how soon they begin',
    table(
      ['', 'p50', 'p99', 'p50 over chat', 'p99 over chat', 'calls'],
      [
        row('chat, first text', chat),
        row('response.created', stored.created),
        row('first response.output_text.delta', stored.delta, added.stored),
        row('response.created, store: false', unstored.created),
        row('first response.output_text.delta, store: false', unstored.delta, added.unstored),
      ],
    ),
    'One call at a time, the three kinds in turn, on an upstream that answers at once. What is stored is a row in ' +
      'Postgres before the upstream is called: one round trip, which here goes to an embedded Postgres on this machine.',
    [
      `Aim, first text within ${FIRST_DELTA_AIM_MS} ms of the chat path:`,
      '',
      `- stored: ${aim(added.stored)}`,
      `- store: false: ${aim(added.unstored)}`,
    ].join('\n'),
  )
}

function renderRates({ one, many, cpu }: EventRateFigures): string {
  const row = (name: string, rate: { chat: number; responses: number }): string[] => [
    name,
    whole(rate.chat),
    whole(rate.responses),
    (rate.responses / rate.chat).toFixed(2),
  ]
  return section(
    'Responses: events per second',
    table(
      ['', 'chat', 'responses', 'responses over chat'],
      [
        row(`one call of ${whole(one.events)} events`, one),
        row(`${many.calls} calls at once of ${many.events} events each, in total`, many),
        ['CPU of an event', us(cpu.chat), us(cpu.responses), times(cpu.responses / cpu.chat)],
      ],
    ),
    'Events of the upstream, which tells them as fast as they are taken; beginnings and ends of calls are part of the ' +
      'time, and not of the CPU. In one process all objects share a processor with the Worker.',
  )
}

function renderReplay(replay: ReplayFigures): string {
  const { events, bytes, eventsPerSecond, megabytesPerSecond, firstByte, cpuPerEvent, replays } = replay
  return section(
    'Responses: replay',
    table(
      ['events', 'MB', 'events/s', 'MB/s', 'first byte', 'CPU per event', 'replays'],
      [
        [
          whole(events),
          (bytes / 1_000_000).toFixed(2),
          whole(eventsPerSecond),
          megabytesPerSecond.toFixed(1),
          ms(firstByte),
          us(cpuPerEvent),
          String(replays),
        ],
      ],
    ),
    'Over HTTP to one reader, from the first byte to the last; medians.',
    `Aim, ${whole(REPLAY_AIM)} events a second: ${verdict(eventsPerSecond >= REPLAY_AIM)} (${whole(eventsPerSecond)})`,
  )
}

function renderRows(rows: RowFigures[]): string {
  return section(
    'Responses: rows written',
    table(
      [
        'upstream’s events/s',
        'came',
        'events',
        'seconds',
        'rows',
        'rows/s',
        'events per row',
        'allowed',
        'aim',
      ],
      rows.map((one) => [
        whole(one.wanted),
        whole(one.eventsPerSecond),
        whole(one.events),
        one.seconds.toFixed(1),
        whole(one.rows),
        one.rowsPerSecond.toFixed(1),
        one.eventsPerRow.toFixed(1),
        whole(one.allowed),
        verdict(one.rows <= one.allowed),
      ]),
    ),
    'Rows of events in the SQLite of the object, each of which is written once. Allowed: 10 rows a second or one for 16 ' +
      'events, whichever is more, and one for each beginning and end of something.',
  )
}

function renderTails(tails: TailFigures): string {
  return section(
    `Responses: memory with ${tails.tails} open tails`,
    table(
      ['resident memory', ''],
      [
        ['a fresh process after one response', mebibytes(tails.before)],
        [`with ${tails.responses} running responses and their callers`, mebibytes(tails.running)],
        [`with ${tails.tails} tails on them`, mebibytes(tails.open)],
        ['for each tail', `${Math.round(tails.perTail / 1024)} KiB`],
      ],
    ),
    `Held for ${(tails.milliseconds / 1_000).toFixed(1)} s. ${tails.slow} of the tails read nothing of a log of ` +
      `${mebibytes(tails.logBytes)}; the others are at the live edge and got ${tails.eventsPerTail.toFixed(0)} events ` +
      'each until then. Whatever the runtime buffers for a connection is part of it.',
  )
}

const whole = (number: number): string => Math.round(number).toLocaleString('en-US')
