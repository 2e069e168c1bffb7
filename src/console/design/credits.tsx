import { creditText } from '../data/format.ts'
import styles from './credits.module.css'

/** An amount with six decimals, whose trailing zeros are dim. @param micro micro-credits. */
export function Credits({ micro }: { micro: number }) {
  const text = creditText(micro)
  const figure = text.replace(/\.?0+$/, '')
  return (
    <>
      {figure}
      <span className={styles.zeros}>{text.slice(figure.length)}</span>
    </>
  )
}
