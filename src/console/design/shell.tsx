import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useRouter } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { call } from '../data/client.ts'
import { type Me, SignedIn } from '../data/me.ts'
import { isShortcut } from '../data/shortcut.ts'
import { Balance } from './balance.tsx'
import { Button } from './button.tsx'
import { Choices } from './choices.tsx'
import { Hidden } from './hidden.tsx'
import { Mark } from './mark.tsx'
import { groupsOf, type PageLink } from './pages.ts'
import { OpenPalette, Palette } from './palette.tsx'
import styles from './shell.module.css'
import { TEXT } from './text.ts'

/** The pages that a phone shows at the bottom. */
const TABS = 4
/** Milliseconds after the first page from which the others are loaded. */
const PRELOAD_MS = 1_000

/** The frame of every page of a signed-in user. */
export function Shell({ me, children }: { me: Me; children: ReactNode }) {
  const groups = groupsOf(me)
  const pages = groups.flat()
  const help = useRef<HTMLDialogElement>(null)
  const [isFinding, setFinding] = useState(false)
  usePreloadedPages(pages, me.organization.slug)
  useShortcuts(pages, me.organization.slug, {
    help: () => help.current?.open || help.current?.showModal(),
    find: () => setFinding(true),
  })
  return (
    <SignedIn value={me}>
      <OpenPalette value={() => setFinding(true)}>
        <div className={styles.shell}>
          <a className={styles.skip} href="#main">
            {TEXT.skip}
          </a>
          <Rail me={me} groups={groups} />
          <div className={styles.sheet}>{children}</div>
          <nav className={styles.tabs} aria-label={TEXT.sections}>
            {pages.slice(0, TABS).map((page) => (
              <PageEntry key={page.to} page={page} slug={me.organization.slug} />
            ))}
            <button type="button" popoverTarget="menu">
              {TEXT.more}
            </button>
          </nav>
          <Menu me={me} pages={pages} />
          {isFinding && <Palette me={me} pages={pages} onClose={() => setFinding(false)} />}
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
      </OpenPalette>
    </SignedIn>
  )
}

function PageEntry({ page, slug, count = 0 }: { page: PageLink; slug: string; count?: number }) {
  return (
    <Link
      to={page.to}
      params={{ slug }}
      activeOptions={{ exact: page.key === 'h' }}
      activeProps={{ 'aria-current': 'page' }}
    >
      {page.text}
      {count > 0 && (
        <span className={styles.count}>
          {count}
          <Hidden> {TEXT.needAttention}</Hidden>
        </span>
      )}
    </Link>
  )
}

function Rail({ me, groups }: { me: Me; groups: PageLink[][] }) {
  const attention = useQuery({
    queryKey: ['attention', me.organization.id],
    queryFn: () => call('attention.list', { path: { organizationId: me.organization.id } }),
    refetchInterval: 60_000,
  })
  return (
    <nav className={styles.rail} aria-label={TEXT.main}>
      <button
        type="button"
        className={styles.brand}
        popoverTarget="menu"
        aria-label={TEXT.menu(me.organization.name)}
      >
        <Mark />
        <span>{me.organization.name}</span>
        <i className={styles.chevron} />
      </button>
      {groups.map((group) => (
        <ul key={group[0]?.to}>
          {group.map((page) => (
            <li key={page.to}>
              <PageEntry
                page={page}
                slug={me.organization.slug}
                count={page.key === 'h' ? (attention.data?.data.length ?? 0) : 0}
              />
            </li>
          ))}
        </ul>
      ))}
      <div className={styles.foot}>
        <Balance me={me} />
        <p className={styles.me}>
          <span>{me.user.name}</span>
          <span>{me.role}</span>
        </p>
      </div>
    </nav>
  )
}

/** What the name of the organization opens: other pages on a phone, and what a person chooses. */
function Menu({ me, pages }: { me: Me; pages: PageLink[] }) {
  const menu = useRef<HTMLDivElement>(null)
  return (
    <div className={styles.menu} id="menu" popover="auto" ref={menu} role="dialog" aria-label={TEXT.settings}>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/noStaticElementInteractions: closes after a link was followed, by keys too */}
      <div className={styles.others} onClick={() => menu.current?.hidePopover()}>
        {pages.slice(TABS).map((page) => (
          <PageEntry key={page.to} page={page} slug={me.organization.slug} />
        ))}
      </div>
      <Choices me={me} />
    </div>
  )
}

/** Loads the other pages while nothing else is to do, so that they open when the gateway is away, too. They are small. */
function usePreloadedPages(pages: readonly PageLink[], slug: string): void {
  const router = useRouter()
  const links = useRef(pages)
  useEffect(() => {
    const timer = setTimeout(() => {
      for (const { to } of links.current) router.preloadRoute({ to, params: { slug } })
      router.preloadRoute({ to: '/$slug/calls/$callId', params: { slug, callId: 'call' } })
    }, PRELOAD_MS)
    return () => clearTimeout(timer)
  }, [router, slug])
}

/** `g` and a letter goes to a page, `?` lists the keys, Ctrl K finds; only the last while somebody types. */
function useShortcuts(
  pages: readonly PageLink[],
  slug: string,
  acts: { help: () => void; find: () => void },
): void {
  const navigate = useNavigate()
  const latest = useRef(acts)
  latest.current = acts
  useEffect(() => {
    let isGoing = false
    const listen = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
        event.preventDefault()
        latest.current.find()
        return
      }
      if (!isShortcut(event)) return
      const page = isGoing ? pages.find(({ key }) => key === event.key) : undefined
      isGoing = event.key === 'g'
      if (page !== undefined) navigate({ to: page.to, params: { slug } })
      else if (event.key === '?') latest.current.help()
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [pages, slug, navigate])
}
