import { ms, section, table, times } from '../markdown.ts'
import type { DispatchFigures, TurnFigures } from './dispatch.ts'

/** The section of agents as Markdown. */
export function renderDispatch({ direct, runs, turnsOfRun, sequences, atOnce }: DispatchFigures): string {
  const row = (name: string, of: (figures: TurnFigures) => number, show: (value: number) => string) => [
    name,
    show(of(direct)),
    show(of(runs)),
    times(of(runs) / of(direct)),
    show(of(runs) - of(direct)),
  ]
  const plain = (value: number) => value.toFixed(1)
  return section(
    'Agents: a turn as a step of a run',
    table(
      ['a turn', 'as `POST /v1/responses`', 'as a step', 'ratio', 'difference'],
      [
        row('time, one at a time', ({ alone }) => alone, ms),
        row(`turns a second, ${atOnce} sequences at once`, ({ turnsPerSecond }) => turnsPerSecond, plain),
        row('CPU of the gateway', ({ gatewayCpu }) => gatewayCpu, ms),
        row('CPU of Postgres, an emulation', ({ postgresCpu }) => postgresCpu, ms),
      ],
    ),
    `Sequences of ${turnsOfRun} turns in one conversation, ${sequences} of each kind for the times, in turn. The model answers at ` +
      'once. The time of a run is from its creation to its end, as its row has them.',
  )
}
