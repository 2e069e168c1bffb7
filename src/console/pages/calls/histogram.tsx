import type { AnswerOf } from '../../../client/management-client.ts'
import { numberText } from '../../data/format.ts'
import styles from './calls.module.css'
import { TEXT } from './text.ts'

type Histogram = AnswerOf<'calls.histogram'>

const OUTCOMES = ['ok', 'cancelled', 'refused', 'blocked', 'failed'] as const
/** Shape before the word, so that colour never says it alone. */
const SIGNS = { ok: '■', cancelled: '■', refused: '▲', blocked: '■', failed: '×' } as const
const LOOKS = {
  ok: undefined,
  cancelled: undefined,
  refused: styles.refused,
  blocked: styles.blocked,
  failed: styles.failed,
}

const HEIGHT = 56
const WIDTH = 12

const sumOf = ({ data }: Histogram, outcome: (typeof OUTCOMES)[number]) =>
  data.reduce((sum, part) => sum + part[outcome], 0)

/** Counts by outcome, which are the legend of the chart below them. */
export function CallHistogram({ histogram }: { histogram: Histogram }) {
  const totals = OUTCOMES.map((outcome) => ({ outcome, count: sumOf(histogram, outcome) }))
  const all = totals.reduce((sum, { count }) => sum + count, 0)
  const most = Math.max(
    1,
    ...histogram.data.map((part) => OUTCOMES.reduce((sum, name) => sum + part[name], 0)),
  )
  return (
    <>
      <p className={styles.counts}>
        <b>{TEXT.calls(numberText(all))}</b>
        {totals
          .filter(({ outcome, count }) => count > 0 || outcome === 'ok')
          .map(({ outcome, count }) => (
            <span key={outcome} className={LOOKS[outcome]}>
              <span aria-hidden="true">{SIGNS[outcome]} </span>
              <b>{numberText(count)}</b> {TEXT.outcomes[outcome]}
            </span>
          ))}
      </p>
      <figure className={styles.chart}>
        <svg viewBox={`0 0 ${histogram.data.length * WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img">
          <title>{TEXT.chart(numberText(all), numberText(sumOf(histogram, 'failed')))}</title>
          {histogram.data.map((part, index) => (
            <Bar key={part.at} part={part} x={index * WIDTH} scale={HEIGHT / most} />
          ))}
        </svg>
      </figure>
    </>
  )
}

/** What succeeded at the bottom, what did not on top of it. */
function Bar({ part, x, scale }: { part: Histogram['data'][number]; x: number; scale: number }) {
  let top = HEIGHT
  return OUTCOMES.map((outcome) => {
    const height = part[outcome] * scale
    top -= height
    if (height === 0) return null
    return (
      <rect
        key={outcome}
        className={LOOKS[outcome] ?? styles.bar}
        x={x + 1}
        y={top}
        width={WIDTH - 2}
        height={height}
      />
    )
  })
}
