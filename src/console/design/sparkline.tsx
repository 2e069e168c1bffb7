import styles from './sparkline.module.css'
import type { Look } from './state.tsx'

const WIDTH = 160
const HEIGHT = 28

/** A line of values over time, the latest at the right; gaps where there are none. Figures beside it say the same. */
export function Sparkline({ values, look = 'quiet' }: { values: ReadonlyArray<number | null>; look?: Look }) {
  const most = Math.max(1, ...values.map((value) => value ?? 0))
  const step = WIDTH / Math.max(1, values.length - 1)
  const points = values.map((value, index) => {
    const y = HEIGHT - 1 - ((value ?? 0) / most) * (HEIGHT - 3)
    return `${(index * step).toFixed(1)} ${y.toFixed(1)}`
  })
  const line = `M${points.join(' L')}`
  return (
    <svg
      className={styles.spark}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path className={styles.area} d={`${line} L${WIDTH} ${HEIGHT} L0 ${HEIGHT}Z`} />
      <path className={styles.line} data-look={look} d={line} />
    </svg>
  )
}
