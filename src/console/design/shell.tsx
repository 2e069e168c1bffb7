import { Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'
import { type Me, may } from '../data/me.ts'
import { isShortcut } from '../data/shortcut.ts'
import { Button } from './button.tsx'
import { Choices } from './choices.tsx'
import { Mark } from './mark.tsx'
import styles from './shell.module.css'
import { TEXT } from './text.ts'

/** Pages of the rail, each with the permission that it needs and the key that follows `g`. */
const PAGES = [
  { to: '/$slug/calls', text: TEXT.pages.calls, permission: 'calls.read', key: 'c' },
  { to: '/$slug/models', text: TEXT.pages.models, permission: 'models.read', key: 'm' },
  { to: '/$slug/settings/api', text: TEXT.pages.api, permission: 'keys.read', key: 'a' },
] as const

/** The frame of every page of a signed-in user. */
export function Shell({ me, children }: { me: Me; children: ReactNode }) {
  const params = { slug: me.organization.slug }
  const pages = PAGES.filter(({ permission }) => may(me, permission))
  const help = useRef<HTMLDialogElement>(null)
  useShortcuts(pages, params.slug, help)
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#main">
        {TEXT.skip}
      </a>
      <nav className={styles.rail} aria-label={TEXT.main}>
        <div className={styles.brand}>
          <Mark />
          <span>{me.organization.name}</span>
        </div>
        <ul>
          {pages.map(({ to, text }) => (
            <li key={to}>
              <Link to={to} params={params} activeProps={{ 'aria-current': 'page' }}>
                {text}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <header className={styles.bar}>
        <span className={styles.who}>
          {me.user.name} · {me.role}
        </span>
        <Choices me={me} />
      </header>
      <main className={styles.page} id="main" tabIndex={-1}>
        {children}
      </main>
      <dialog className={styles.keys} ref={help} aria-labelledby="keys-title">
        <h2 id="keys-title">{TEXT.keys}</h2>
        <dl>
          {TEXT.keysHelp.map(([key, text]) => (
            <div key={key}>
              <dt>{key}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
        <Button onClick={() => help.current?.close()}>{TEXT.close}</Button>
      </dialog>
    </div>
  )
}

/** `g` and a letter goes to a page, `?` lists the keys; not while somebody types. */
function useShortcuts(
  pages: ReadonlyArray<(typeof PAGES)[number]>,
  slug: string,
  help: { current: HTMLDialogElement | null },
): void {
  const navigate = useNavigate()
  useEffect(() => {
    let isGoing = false
    const listen = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return
      const page = isGoing ? pages.find(({ key }) => key === event.key) : undefined
      isGoing = event.key === 'g'
      if (page !== undefined) navigate({ to: page.to, params: { slug } })
      else if (event.key === '?' && !help.current?.open) help.current?.showModal()
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [pages, slug, help, navigate])
}
