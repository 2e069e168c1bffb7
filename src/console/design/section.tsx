import type { ReactNode } from 'react'
import styles from './section.module.css'

type SectionProps = { title: string; note?: ReactNode; end?: ReactNode; children: ReactNode }

/** A part of a page: its title over a line, what it is about beside it, and a link at its end. */
export function Section({ title, note, end, children }: SectionProps) {
  return (
    <section className={styles.section} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {note && <span className={styles.note}>{note}</span>}
        {end && <span className={styles.end}>{end}</span>}
      </header>
      {children}
    </section>
  )
}

/** Sections side by side, the second as wide as the first or narrow. */
export const Columns = ({ narrow = false, children }: { narrow?: boolean; children: ReactNode }) => (
  <div className={narrow ? styles.narrow : styles.columns}>{children}</div>
)

type FactsProps = {
  facts: ReadonlyArray<readonly [name: string, value: ReactNode]>
  /** One under the other, as the figures that a page begins with, or in a line. */
  look?: 'facts' | 'lede' | 'line'
}

/** Names and values. Those without a value are left out. */
export function Facts({ facts, look = 'facts' }: FactsProps) {
  return (
    <dl className={styles[look]}>
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
