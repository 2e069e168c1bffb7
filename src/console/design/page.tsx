import { Link } from '@tanstack/react-router'
import { type ReactNode, useContext, useEffect, useState } from 'react'
import { clockText, zoneName } from '../data/format.ts'
import { useSignedIn } from '../data/me.ts'
import { useZone } from '../data/zone.ts'
import { Mark } from './mark.tsx'
import styles from './page.module.css'
import { OpenPalette } from './palette.tsx'
import { TEXT } from './text.ts'
import { applyTheme, isDark } from './theme.ts'

type PageProps = {
  title: string
  /** What stands before the title, such as a link to the list that it is of. */
  trail?: ReactNode
  /** Whether the title is an id. */
  isId?: boolean
  children: ReactNode
}

/** A page: its title in the bar at the top, and its content. */
export function Page({ title, trail, isId = false, children }: PageProps) {
  const { organization } = useSignedIn()
  const openPalette = useContext(OpenPalette)
  useEffect(() => {
    document.title = `${title} · ${organization.name} · Headgate`
  }, [title, organization.name])
  return (
    <>
      <header className={styles.bar}>
        <Link
          className={styles.brand}
          to="/$slug"
          params={{ slug: organization.slug }}
          aria-label={TEXT.home}
        >
          <Mark />
        </Link>
        <div className={styles.crumb}>
          {trail && (
            <span className={styles.trail}>
              {trail} <span aria-hidden="true">/</span>
            </span>
          )}
          <h1 className={isId ? styles.id : undefined}>{title}</h1>
        </div>
        <div className={styles.right}>
          <button type="button" className={styles.find} onClick={openPalette}>
            <svg viewBox="0 0 14 14" fill="none" stroke="currentColor" strokeWidth="1.4" aria-hidden="true">
              <circle cx="6" cy="6" r="4.2" />
              <path d="m9.2 9.2 3.3 3.3" />
            </svg>
            <span>{TEXT.find}</span>
            <kbd>Ctrl K</kbd>
          </button>
          <Clock />
          <ThemeButton />
        </div>
      </header>
      <main className={styles.page} id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  )
}

/** What a page begins with: figures or a sentence, and what can be done. */
export const Head = ({ children, acts }: { children?: ReactNode; acts?: ReactNode }) => (
  <div className={styles.head}>
    {children}
    {acts && <div className={styles.acts}>{acts}</div>}
  </div>
)

/** The time of the zone that is shown, so that nobody has to guess what a time means. */
function Clock() {
  const [zone] = useZone()
  const [now, setNow] = useState(() => new Date())
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(new Date()), 1_000)
    return () => clearInterval(timer)
  }, [])
  return (
    <span className={styles.clock}>
      {clockText(now, zone)} {zone === 'utc' ? 'UTC' : zoneName(zone)}
    </span>
  )
}

function ThemeButton() {
  return (
    <button
      type="button"
      className={styles.theme}
      aria-label={TEXT.otherTheme}
      onClick={() => applyTheme(isDark() ? 'light' : 'dark')}
    >
      <svg viewBox="0 0 14 14" aria-hidden="true">
        <circle cx="7" cy="7" r="5.3" fill="none" stroke="currentColor" strokeWidth="1.4" />
        <path d="M7 1.7a5.3 5.3 0 0 1 0 10.6z" fill="currentColor" />
      </svg>
    </button>
  )
}
