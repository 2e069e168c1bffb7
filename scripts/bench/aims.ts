import type { ScenarioFigures } from './figures.ts'
import { ms, section, times, verdict } from './markdown.ts'
import type { AimKind } from './scenarios.ts'

/** An aim of a scenario, which it does not exceed. */
interface Aim {
  what: string
  limit: string
  most: number
  figure: number
  show: (figure: number) => string
}

/** CPU over the bare proxy's. */
const CPU: Record<AimKind, number> = {
  whole: 2.5,
  paced: 2.5,
  burst: 2,
  'responses-whole': 10,
  'responses-paced': 3.5,
  'responses-burst': 5,
}
/**
 * Aims for many concurrent streams, in milliseconds later than the bare proxy: at the median and at the 99th
 * percentile.
 */
const FIRST_EVENT_MS = 5
const FIRST_EVENT_P99 = 3

function aimsFor({ aims, events, overBare, portkeyOverBare }: ScenarioFigures): Aim[] {
  if (aims === null) return []
  const { cpuRatio, addedBusyFirstByte, firstByteP99Ratio } = overBare
  const own = CPU[aims]
  const list = [
    {
      what: `${aims}, CPU`,
      limit: `${times(own)} the bare proxy’s`,
      most: own,
      figure: cpuRatio,
      show: times,
    },
  ]
  if (portkeyOverBare) {
    const most = portkeyOverBare.cpuRatio
    list.push({ what: 'CPU beside Portkey', limit: 'Portkey’s', most, figure: cpuRatio, show: times })
  }
  if (events === 0) return list
  const median = `${FIRST_EVENT_MS} ms after the bare proxy’s at the median`
  const tail = `${times(FIRST_EVENT_P99)} the bare proxy’s`
  return [
    ...list,
    { what: 'first event', limit: median, most: FIRST_EVENT_MS, figure: addedBusyFirstByte, show: ms },
    { what: 'first event, p99', limit: tail, most: FIRST_EVENT_P99, figure: firstByteP99Ratio, show: times },
  ]
}

const isMet = ({ figure, most }: Aim): boolean => figure <= most

/** Whether a scenario meets its aims, beside its figures; empty where it has none. */
export function aimsOf(figures: ScenarioFigures): string {
  const all = aimsFor(figures)
  if (all.length === 0) return ''
  const missed = all.filter((aim) => !isMet(aim)).map(({ what, figure, show }) => `${what} ${show(figure)}`)
  return missed.length === 0 ? verdict(true) : `${verdict(false)}: ${missed.join(', ')}`
}

/** Each aim, and how many scenarios meet it. */
export function renderAims(scenarios: ScenarioFigures[]): string {
  const byAim = Map.groupBy(scenarios.flatMap(aimsFor), ({ what, limit }) => `${what}: at most ${limit}`)
  const lines = [...byAim].map(
    ([name, all]) => `- ${name}; met by ${all.filter(isMet).length} of ${all.length}`,
  )
  return lines.length === 0 ? '' : section('Aims', lines.join('\n'))
}
