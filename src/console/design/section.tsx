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

/** Facts of something: names and values, one under the other. Facts without a value are left out. */
export function Facts({ facts }: { facts: ReadonlyArray<readonly [name: string, value: ReactNode]> }) {
  return (
    <dl className={styles.facts}>
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

/** The figures that a page begins with. */
export function Lede({ figures }: { figures: ReadonlyArray<readonly [name: string, value: ReactNode]> }) {
  return (
    <dl className={styles.lede}>
      {figures
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
