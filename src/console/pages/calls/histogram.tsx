import { type PointerEvent, useRef, useState } from 'react'
import type { AnswerOf } from '../../../client/management-client.ts'
import { numberText, timeText, zoneName } from '../../data/format.ts'
import { LOOK_OF, OUTCOMES, type Outcome, WORD_OF } from '../../data/outcomes.ts'
import { useZone } from '../../data/zone.ts'
import { Shape } from '../../design/state.tsx'
import { Table } from '../../design/table.tsx'
import styles from './histogram.module.css'
import { TEXT } from './text.ts'

type Histogram = AnswerOf<'calls.histogram'>
type Part = Histogram['data'][number]

const DAY = 24 * 60 * 60_000
const HEIGHT = 56
const WIDTH = 12
/** Where the axis has a time, as parts of the period. */
const TICKS = [0, 0.25, 0.5, 0.75, 1]

const sumOf = ({ data }: Histogram, outcome: Outcome) => data.reduce((sum, part) => sum + part[outcome], 0)
const allOf = (part: Part) => OUTCOMES.reduce((sum, outcome) => sum + part[outcome], 0)

type CountsProps = { histogram: Histogram; chosen: string | undefined; onChoose: (outcome: Outcome) => void }

/** Counts by outcome, which are the legend of the chart and choose the calls that are shown. */
export function OutcomeCounts({ histogram, chosen, onChoose }: CountsProps) {
  const totals = OUTCOMES.map((outcome) => ({ outcome, count: sumOf(histogram, outcome) }))
  const all = totals.reduce((sum, { count }) => sum + count, 0)
  return (
    <div className={styles.counts}>
      <b>{TEXT.calls(numberText(all))}</b>
      {totals
        .filter(({ outcome, count }) => count > 0 || outcome === 'ok' || outcome === chosen)
        .map(({ outcome, count }) => (
          <button
            key={outcome}
            type="button"
            className={styles[LOOK_OF[outcome]]}
            aria-pressed={outcome === chosen}
            onClick={() => onChoose(outcome)}
          >
            <Shape look={LOOK_OF[outcome] === 'quiet' ? 'square' : LOOK_OF[outcome]} />
            <b>{numberText(count)}</b> {WORD_OF[outcome]}
          </button>
        ))}
    </div>
  )
}

type ChartProps = { histogram: Histogram; onZoom: (from: string, to: string) => void }

/** Calls by time. Dragging over it zooms; keys do, too (`CallsPage`), and a table below it has the same counts. */
export function CallHistogram({ histogram, onZoom }: ChartProps) {
  const [zone] = useZone()
  const { data, bucket_ms: length } = histogram
  const drag = useDrag(data.length, (first, last) => {
    const [from, to] = [data[first]?.at, data[last]?.at]
    if (from && to) onZoom(from, new Date(Date.parse(to) + length).toISOString())
  })
  const most = Math.max(1, ...data.map(allOf))
  const all = data.reduce((sum, part) => sum + allOf(part), 0)
  // Days are of use where there are several.
  const from = Date.parse(histogram.to) - Date.parse(histogram.from) > 2 * DAY ? 5 : 11
  const tickAt = (part: number) => data[Math.floor(part * data.length)]?.at ?? histogram.to
  return (
    <figure className={styles.chart}>
      <svg
        viewBox={`0 0 ${data.length * WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        {...drag.handlers}
      >
        <title>{TEXT.chart(numberText(all), numberText(sumOf(histogram, 'failed')))}</title>
        {drag.range && (
          <rect
            className={styles.range}
            x={drag.range[0] * WIDTH}
            width={(drag.range[1] - drag.range[0] + 1) * WIDTH}
            y={0}
            height={HEIGHT}
          />
        )}
        {data.map((part, index) => (
          <Bar key={part.at} part={part} x={index * WIDTH} scale={HEIGHT / most} />
        ))}
      </svg>
      <figcaption className={styles.axis}>
        {TICKS.map((part) => (
          <span key={part}>{timeText(tickAt(part), zone).slice(part === 0 ? 5 : from)}</span>
        ))}
      </figcaption>
      <details className={styles.table}>
        <summary>{TEXT.asTable}</summary>
        <CountTable histogram={histogram} />
      </details>
    </figure>
  )
}

/** The parts that a pointer is drawn over. */
function useDrag(parts: number, onEnd: (first: number, last: number) => void) {
  const [range, setRange] = useState<[number, number] | null>(null)
  const start = useRef<number | null>(null)
  const partAt = ({ currentTarget, clientX }: PointerEvent<SVGSVGElement>) => {
    const { left, width } = currentTarget.getBoundingClientRect()
    return Math.min(parts - 1, Math.max(0, Math.floor(((clientX - left) / width) * parts)))
  }
  const handlers = {
    onPointerDown: (event: PointerEvent<SVGSVGElement>) => {
      event.currentTarget.setPointerCapture(event.pointerId)
      start.current = partAt(event)
    },
    onPointerMove: (event: PointerEvent<SVGSVGElement>) => {
      if (start.current === null) return
      const at = partAt(event)
      setRange([Math.min(start.current, at), Math.max(start.current, at)])
    },
    onPointerUp: () => {
      start.current = null
      setRange(null)
      // A click is no drag: nothing happens by chance.
      if (range !== null && range[1] > range[0]) onEnd(range[0], range[1])
    },
    onPointerCancel: () => {
      start.current = null
      setRange(null)
    },
  }
  return { range, handlers }
}

/** What succeeded at the bottom, what did not on top of it. */
function Bar({ part, x, scale }: { part: Part; x: number; scale: number }) {
  let top = HEIGHT
  return OUTCOMES.map((outcome) => {
    const height = part[outcome] * scale
    top -= height
    if (height === 0) return null
    return (
      <rect
        key={outcome}
        className={styles[LOOK_OF[outcome]]}
        x={x + 1}
        y={top}
        width={WIDTH - 2}
        height={height}
      />
    )
  })
}

function CountTable({ histogram }: { histogram: Histogram }) {
  const [zone] = useZone()
  return (
    <Table
      caption={TEXT.charted}
      heads={[
        { text: `${TEXT.heads.time}, ${zoneName(zone)}` },
        ...OUTCOMES.map((outcome) => ({ text: WORD_OF[outcome], isFigure: true })),
      ]}
    >
      {histogram.data
        .filter((part) => allOf(part) > 0)
        .map((part) => (
          <tr key={part.at}>
            <td>{TEXT.part(timeText(part.at, zone))}</td>
            {OUTCOMES.map((outcome) => (
              <td key={outcome} data-figure="">
                {numberText(part[outcome])}
              </td>
            ))}
          </tr>
        ))}
    </Table>
  )
}
