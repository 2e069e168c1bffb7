import type { ReactNode } from 'react'
import styles from './table.module.css'

export interface Head {
  text: string
  /** Whether the column is of figures, which stand at the right. */
  isFigure?: boolean
  /** Pixels; the rest is shared by columns without one. */
  width?: number
}

type TableProps = {
  caption: string
  heads: readonly Head[]
  /** A phone shows each row as two lines, by the places of its cells (`data-place`); with `lead`, the first of both have one width. */
  stack?: 'plain' | 'lead'
  /** Whether it stands in a narrow column. */
  isNarrow?: boolean
  /** Rows of the whole list, where only some are in the page. */
  rowCount?: number
  children: ReactNode
}

/**
 * A table that scrolls sideways by itself on a narrow screen. On a phone a stacked one has the cells that name a place: `a1`, `a2`, `a3` in
 * the first line, `b1`, `b2`, `b3` in the second, `c` below.
 */
export function Table({ caption, heads, stack, isNarrow = false, rowCount, children }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex lint/a11y/useSemanticElements: what scrolls is reached by keys, and is no part of a form
    <div className={styles.scroll} role="group" tabIndex={0} aria-label={caption} data-scrolls="">
      <table
        className={stack ? styles.stack : styles.table}
        data-lead={stack === 'lead' ? '' : undefined}
        data-narrow={isNarrow ? '' : undefined}
        aria-rowcount={rowCount}
      >
        <caption>{caption}</caption>
        <colgroup>
          {heads.map(({ text, width }) => (
            <col key={text} style={width === undefined ? undefined : { width }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {heads.map(({ text, isFigure }) => (
              <th key={text} scope="col" data-figure={isFigure ? '' : undefined}>
                {text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
