import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import type { AnswerOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { numberText, timeText, zoneName } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { type Names, useNames } from '../../data/names.ts'
import type { Call } from '../../data/outcomes.ts'
import { useSettled } from '../../data/settled.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { useZone } from '../../data/zone.ts'
import { Button } from '../../design/button.tsx'
import { Hidden } from '../../design/hidden.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { type Head, Table } from '../../design/table.tsx'
import { CallRow, OpenCallRow } from './call-rows.tsx'
import styles from './calls.module.css'
import type { Filter } from './filter.ts'
import { useHeldBack, useSeenCount } from './fresh-rows.ts'
import { useLiveCalls } from './live-calls.ts'
import { type CallSearch, periodOf, periodQuery } from './period.ts'
import { TEXT } from './text.ts'

const PAGE_ROWS = 200
/** Pages that are kept: a list that goes on for long forgets its beginning. */
const MOST_PAGES = 50

type TableProps = { me: Me; search: CallSearch; filter: Filter; isLive: boolean }

/** Every call of the period, newest first: those that are open, those that end while the page is seen, then the list. */
export function CallTable({ me, search, filter, isLive }: TableProps) {
  const names = useNames(me)
  const live = useLiveCalls(me.organization.id, filter, isLive)
  const calls = useCallList(me, search, filter)
  const { shown, hidden, showAll } = useHeldBack(live.closed)
  const listed = calls.data?.pages.flatMap(({ data }) => data) ?? []
  const justEnded = useJustEnded(me, filter, isLive, calls.dataUpdatedAt)
  const known = new Set(listed.map(({ id }) => id))
  const fresh = distinct([...shown, ...justEnded]).filter(({ id }) => !known.has(id))
  const rows = [...fresh, ...listed]
  const isEmpty = rows.length + live.open.length === 0
  const failure = calls.error && <Failure error={calls.error} retry={() => calls.refetch()} />
  return (
    <>
      <Hidden isStatus>
        <Announcement count={live.closed.length} />
      </Hidden>
      {failure}
      {live.skipped && <Notice title={TEXT.skipped} look="warn" />}
      {hidden > 0 && (
        <div className={styles.fresh}>
          <Button look="main" onClick={showAll}>
            {TEXT.fresh(numberText(hidden))}
          </Button>
        </div>
      )}
      {!calls.data && !failure && <Waiting />}
      {calls.data && isEmpty && !calls.hasNextPage && <NoCalls me={me} filter={filter} />}
      {!isEmpty && (
        <Rows
          {...{ me, search, names, rows }}
          freshCount={fresh.length}
          open={live.open}
          onEnd={() => calls.hasNextPage && !calls.isFetchingNextPage && calls.fetchNextPage()}
        />
      )}
      {calls.hasNextPage && (
        <Button onClick={() => calls.fetchNextPage()} disabled={calls.isFetchingNextPage}>
          {rows.length === 0 ? TEXT.searchOn : TEXT.more}
        </Button>
      )}
      <Foot />
    </>
  )
}

const distinct = (calls: readonly Call[]): Call[] => [
  ...new Map(calls.map((each) => [each.id, each])).values(),
]

/** How long before the list was read a call may have ended whose row was not there yet. */
const ON_ITS_WAY_MS = 60_000

/** Calls that ended since the list was read, or shortly before: live calls begin after them. @param readAt milliseconds since the epoch. */
function useJustEnded(me: Me, filter: Filter, isLive: boolean, readAt: number): readonly Call[] {
  const organizationId = me.organization.id
  const [opened] = useState(Date.now)
  const since = new Date((readAt || opened) - ON_ITS_WAY_MS).toISOString()
  const ended = useQuery({
    queryKey: ['calls-just-ended', organizationId, filter, since, opened],
    queryFn: () =>
      call('calls.list', { path: { organizationId }, query: { ...filter, from: since, limit: PAGE_ROWS } }),
    enabled: isLive && readAt > 0,
    refetchInterval: ({ state }) => (state.dataUpdateCount < 10 ? 2_000 : false),
  })
  return ended.data?.data ?? []
}

type Bounds = ReturnType<typeof periodQuery>
type CallPage = AnswerOf<'calls.list'> & { bounds: Bounds }

/** The calls that match, a page at a time. Going back to the list finds it as it was. */
function useCallList(me: Me, search: CallSearch, filter: Filter) {
  const organizationId = me.organization.id
  const { period, from, to } = search
  return useInfiniteQuery({
    queryKey: ['calls', organizationId, filter, period, from, to],
    queryFn: async ({ pageParam }): Promise<CallPage> => {
      const bounds = pageParam?.bounds ?? periodQuery(periodOf(search, Date.now()))
      const cursor = pageParam && { cursor: pageParam.cursor }
      const query = { ...filter, ...bounds, limit: PAGE_ROWS, ...cursor }
      return { ...(await call('calls.list', { path: { organizationId }, query })), bounds }
    },
    initialPageParam: null as { cursor: string; bounds: Bounds } | null,
    getNextPageParam: ({ next_cursor: cursor, bounds }) => (cursor === null ? null : { cursor, bounds }),
    maxPages: MOST_PAGES,
    staleTime: Number.POSITIVE_INFINITY,
  })
}

/** Counts are announced, not rows, and not each of them. */
function Announcement({ count }: { count: number }) {
  const settled = useSettled(count, 5_000)
  return settled > 0 && TEXT.announced(numberText(settled))
}

const HEADS: ReadonlyArray<Omit<Head, 'text'> & { name: keyof typeof TEXT.heads }> = [
  { name: 'time', width: 112 },
  { name: 'status', width: 156 },
  { name: 'surface', width: 76 },
  { name: 'model', width: 164 },
  { name: 'who' },
  { name: 'found', width: 92 },
  { name: 'tokens', width: 104, isFigure: true },
  { name: 'first', width: 84, isFigure: true },
  { name: 'total', width: 76, isFigure: true },
  { name: 'strip', width: 100 },
  { name: 'credits', width: 84, isFigure: true },
]

type RowsProps = {
  me: Me
  search: CallSearch
  names: Names
  rows: readonly Call[]
  open: ReturnType<typeof useLiveCalls>['open']
  freshCount: number
  onEnd: () => void
}

function Rows({ me, search, names, rows, open, freshCount, onEnd }: RowsProps) {
  const [zone] = useZone()
  const place = useRef<HTMLDivElement>(null)
  const { items, before, after } = useVirtualRows(rows.length, place, onEnd)
  const [chosen, choose] = useChosenRow(rows, me.organization.slug, search)
  const seen = useSeenCount(freshCount)
  const heads = HEADS.map(({ name, ...head }) => ({
    ...head,
    text: name === 'time' ? `${TEXT.heads.time}, ${zoneName(zone)}` : TEXT.heads[name],
  }))
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: a click chooses what j and k choose
    <div
      ref={place}
      onClick={({ target }) => {
        const row = target instanceof Element ? target.closest('tr[data-index]') : null
        if (row) choose(Number(row.getAttribute('data-index')))
      }}
    >
      <Table caption={TEXT.caption} heads={heads} stack="lead" rowCount={rows.length + 1}>
        {open.map((each) => (
          <OpenCallRow key={each.id} call={each} slug={me.organization.slug} names={names} />
        ))}
        <Padding height={before} />
        {items.map(({ index }) => {
          const row = rows[index]
          return (
            row && (
              <CallRow
                key={row.id}
                {...{ call: row, slug: me.organization.slug, search, names, index }}
                isChosen={index === chosen}
                isFresh={index < freshCount - seen}
              />
            )
          )
        })}
        <Padding height={after} />
      </Table>
    </div>
  )
}

/** What stands for rows that are not in the page. */
const Padding = ({ height }: { height: number }) =>
  height > 0 && (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row takes no focus
    <tr className={styles.pad} aria-hidden="true">
      <td colSpan={HEADS.length} style={{ height }} />
    </tr>
  )

const isPhone = () => matchMedia('(max-width: 640px)').matches

/** The rows that are near what is seen; asks for more at their end. */
function useVirtualRows(count: number, place: { current: HTMLElement | null }, onEnd: () => void) {
  const [offset, setOffset] = useState(0)
  useLayoutEffect(() => setOffset(place.current?.offsetTop ?? 0), [place])
  const rows = useWindowVirtualizer({
    count,
    estimateSize: () => (isPhone() ? 55 : 29),
    overscan: 20,
    scrollMargin: offset,
  })
  const items = rows.getVirtualItems()
  const [first, last] = [items[0], items.at(-1)]
  const isAtEnd = last !== undefined && last.index >= count - 1
  const latest = useRef(onEnd)
  latest.current = onEnd
  useEffect(() => {
    if (isAtEnd && count > 0 && scrollY > 0) latest.current()
  }, [isAtEnd, count])
  return {
    items,
    before: first === undefined ? 0 : first.start - offset,
    after: last === undefined ? 0 : Math.max(0, rows.getTotalSize() - (last.end - offset)),
  }
}

/** `j` and `k` choose a row, Enter opens it, `y` copies its id. @returns its index; -1 for none. */
function useChosenRow(rows: readonly Call[], slug: string, search: CallSearch) {
  const [id, setId] = useState<string | null>(null)
  const navigate = useNavigate()
  const chosen = rows.findIndex((row) => row.id === id)
  const choose = (index: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))]
    if (row === undefined) return
    setId(row.id)
    document.querySelector(`tr[data-index="${rows.indexOf(row)}"]`)?.scrollIntoView({ block: 'nearest' })
  }
  useShortcut('j', () => choose(chosen + 1))
  useShortcut('k', () => choose(chosen - 1))
  useShortcut('y', () => id !== null && navigator.clipboard.writeText(id), id !== null)
  useShortcut(
    'Enter',
    () => {
      if (id !== null) navigate({ to: '/$slug/calls/$callId', params: { slug, callId: id }, search })
    },
    id !== null,
  )
  return [chosen, choose] as const
}

/** What to do where no call matches: the newest that does in any period, or how to make one. */
function NoCalls({ me, filter }: { me: Me; filter: Filter }) {
  const [zone] = useZone()
  const organizationId = me.organization.id
  const { slug } = me.organization
  const newest = useQuery({
    queryKey: ['newest-call', organizationId, filter],
    queryFn: () => call('calls.list', { path: { organizationId }, query: { ...filter, limit: 1 } }),
  })
  const [found] = newest.data?.data ?? []
  return (
    <Notice title={TEXT.empty}>
      {found ? (
        <p>
          {TEXT.nearest}{' '}
          <Link to="/$slug/calls/$callId" params={{ slug, callId: found.id }}>
            {timeText(found.at, zone)} {zoneName(zone)}
          </Link>
          .
        </p>
      ) : (
        <p>
          {TEXT.emptyHint}{' '}
          <Link to="/$slug/settings/api" params={{ slug }} search={{ make: true }}>
            {TEXT.newKey}
          </Link>
        </p>
      )}
    </Notice>
  )
}

const Foot = () => (
  <p className={styles.foot}>
    {TEXT.keys.map(([key, text]) => (
      <span key={key}>
        <kbd>{key}</kbd> {text}
      </span>
    ))}
  </p>
)
