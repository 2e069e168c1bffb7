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

type Figure = Aim['figure']

const atMost = (limit: number, figure: Figure, show: Aim['show']) => ({
  figure,
  holds: (measured: number) => measured <= limit,
  show,
})
const atLeast = (limit: number, figure: Figure) => ({
  figure,
  holds: (measured: number) => measured >= limit,
  show: (measured: number) => measured.toFixed(2),
})

const cpu: Figure = (over) => over.cpuRatio
const throughput: Figure = (over) => over.throughputRatio
const firstEvent: Figure = (over) => over.addedBusyFirstByte

const WHOLE: readonly Aim[] = [
  { what: 'CPU', limit: 'at most 2.0 times the bare proxy’s', ...atMost(2, cpu, times) },
  { what: 'throughput', limit: 'at least 0.5 of the bare proxy’s', ...atLeast(0.5, throughput) },
  {
    what: 'time',
    limit: 'at most 0.8 ms added at the median with one connection',
    ...atMost(0.8, (over) => over.addedP50, ms),
  },
]

const STREAM: readonly Aim[] = [
  { what: 'CPU', limit: 'at most 2.5 times the bare proxy’s', ...atMost(2.5, cpu, times) },
  { what: 'events a second', limit: 'at least 0.4 of the bare proxy’s', ...atLeast(0.4, throughput) },
  { what: 'first event', limit: 'at most 1 ms after the bare proxy’s', ...atMost(1, firstEvent, ms) },
]

const AIMS: Record<Exclude<AimKind, null>, readonly Aim[]> = { whole: WHOLE, stream: STREAM }

const unmet = ({ aims, overBare }: ScenarioFigures): Aim[] =>
  aims === null ? [] : AIMS[aims].filter(({ figure, holds }) => !holds(figure(overBare)))

/** Whether a scenario meets its aims, beside its figures; empty where it has none. */
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
