import type { Comparison, ScenarioFigures } from './figures.ts'
import { ms, section, times, verdict } from './markdown.ts'
import type { AimKind } from './scenarios.ts'

interface Aim {
  what: string
  limit: string
  figure: (over: Comparison) => number
  holds: (figure: number) => boolean
  show: (figure: number) => string
}

const atMost = (limit: number) => (figure: number) => figure <= limit
const atLeast = (limit: number) => (figure: number) => figure >= limit
const share = (figure: number): string => figure.toFixed(2)

const WHOLE: readonly Aim[] = [
  {
    what: 'CPU',
    limit: 'at most 2.0 times the bare proxy’s',
    figure: (over) => over.cpuRatio,
    holds: atMost(2),
    show: times,
  },
  {
    what: 'throughput',
    limit: 'at least 0.5 of the bare proxy’s',
    figure: (over) => over.throughputRatio,
    holds: atLeast(0.5),
    show: share,
  },
  {
    what: 'time',
    limit: 'at most 0.8 ms added at the median with one connection',
    figure: (over) => over.addedP50,
    holds: atMost(0.8),
    show: ms,
  },
]

const STREAM: readonly Aim[] = [
  {
    what: 'CPU',
    limit: 'at most 2.5 times the bare proxy’s',
    figure: (over) => over.cpuRatio,
    holds: atMost(2.5),
    show: times,
  },
  {
    what: 'events a second',
    limit: 'at least 0.4 of the bare proxy’s',
    figure: (over) => over.throughputRatio,
    holds: atLeast(0.4),
    show: share,
  },
  {
    what: 'first event',
    limit: 'at most 1 ms after the bare proxy’s',
    figure: (over) => over.addedBusyFirstByte ?? Number.NaN,
    holds: atMost(1),
    show: ms,
  },
]

const AIMS: Record<Exclude<AimKind, null>, readonly Aim[]> = { whole: WHOLE, stream: STREAM }

const unmet = ({ aims, overBare }: ScenarioFigures): Aim[] =>
  aims === null ? [] : AIMS[aims].filter(({ figure, holds }) => !holds(figure(overBare)))

/** What is to be said of a scenario's aims, beside its figures; nothing where it has none. */
export function aimsOf(figures: ScenarioFigures): string {
  if (figures.aims === null) return ''
  const missed = unmet(figures).map(({ what, figure, show }) => `${what} ${show(figure(figures.overBare))}`)
  return missed.length === 0 ? verdict(true) : `${verdict(false)}: ${missed.join(', ')}`
}

/** Each aim, and how many scenarios meet it. */
export function renderAims(scenarios: ScenarioFigures[]): string {
  const lines = (['whole', 'stream'] as const).flatMap((kind) => {
    const concerned = scenarios.filter(({ aims }) => aims === kind)
    if (concerned.length === 0) return []
    const name = kind === 'whole' ? 'whole answers' : 'streams'
    return AIMS[kind].map(({ what, limit, figure, holds }) => {
      const met = concerned.filter(({ overBare }) => holds(figure(overBare))).length
      return `- ${name}, ${what}: ${limit}; met by ${met} of ${concerned.length}`
    })
  })
  return lines.length === 0 ? '' : section('Aims', lines.join('\n'))
}
