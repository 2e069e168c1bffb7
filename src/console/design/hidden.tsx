import type { ReactNode } from 'react'
import styles from './hidden.module.css'

/** A text for those who listen, which is not seen. @param isStatus whether it is read out as it changes. */
export const Hidden = ({ isStatus = false, children }: { isStatus?: boolean; children: ReactNode }) => (
  <span className={styles.hidden} role={isStatus ? 'status' : undefined}>
    {children}
  </span>
)
