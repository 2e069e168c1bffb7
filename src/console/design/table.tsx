import type { ReactNode } from 'react'
import styles from './table.module.css'

type TableProps = {
  caption: string
  heads: readonly string[]
  /** Heads of columns of figures, which stand at the right. */
  figures?: readonly string[]
  children: ReactNode
}

/** A table that scrolls sideways by itself on a narrow screen. */
export function Table({ caption, heads, figures = [], children }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keys
    <section className={styles.scroll} tabIndex={0} aria-label={caption}>
      <table className={styles.table}>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col" data-figure={figures.includes(head) ? '' : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  )
}
