import type { ReactNode } from 'react'
import styles from './state.module.css'

/** How something stands: each look has a colour and a shape, and its text says it in a word. */
export type Look = 'failed' | 'warn' | 'held' | 'live' | 'none' | 'quiet'

/** A state: a shape and a word. `quiet` is for what went well, and has no shape. */
export function State({ look, children }: { look: Look; children: ReactNode }) {
  return (
    <span className={styles[look]}>
      {look !== 'quiet' && <i className={styles.shape} data-look={look} />}
      {children}
    </span>
  )
}

/** The shape of a state alone, where its word stands elsewhere. */
export const Shape = ({ look }: { look: Look | 'ok' | 'square' }) => (
  <i className={styles.shape} data-look={look} />
)
