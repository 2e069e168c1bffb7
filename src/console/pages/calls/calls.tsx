import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { call } from '../../data/client.ts'
import { timeText, zoneName } from '../../data/format.ts'
import { type Me, may, useMe } from '../../data/me.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { useZone } from '../../data/zone.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Table } from '../../design/table.tsx'
import { CallRow, type Names, OpenCallRow } from './call-rows.tsx'
import styles from './calls.module.css'
import { type Filter, parseFilter } from './filter.ts'
import { CallHistogram } from './histogram.tsx'
import { useLiveCalls } from './live-calls.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/$slug/calls')

/** What happened: counts of a day, open calls, and every call, by the filter of the address. */
export function CallsPage() {
  const me = useMe()
  return me.data ? <Calls me={me.data} /> : <Waiting />
}

function Calls({ me }: { me: Me }) {
  const { q = '' } = route.useSearch()
  const [isLive, setLive] = useState(true)
  const { filter, unknown } = parseFilter(q)
  useShortcut('t', () => setLive((before) => !before))
  const isOwn = me.permissions['calls.read'] === 'own'
  return (
    <>
      <h1 className={styles.title}>{isOwn ? TEXT.own : TEXT.title}</h1>
      <div className={styles.bars}>
        <FilterField key={q} text={q} />
        <button type="button" className={styles.live} aria-pressed={isLive} onClick={() => setLive(!isLive)}>
          <span aria-hidden="true">{isLive ? '● ' : '○ '}</span>
          {TEXT.live}
        </button>
      </div>
      {unknown && <Notice title={TEXT.unknownWord(unknown)} look="warn" />}
      <DayCounts me={me} filter={filter} />
      <CallTable me={me} filter={filter} isLive={isLive} />
    </>
  )
}

/** Enter applies the filter, which the address holds. */
function FilterField({ text }: { text: string }) {
  const navigate = useNavigate()
  const { slug } = route.useParams()
  const apply = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const q = String(new FormData(event.currentTarget).get('q') ?? '').trim()
    navigate({ to: '/$slug/calls', params: { slug }, search: q === '' ? {} : { q } })
  }
  return (
    <search className={styles.search}>
      <form className={styles.search} onSubmit={apply}>
        <input
          className={styles.filter}
          name="q"
          type="search"
          defaultValue={text}
          aria-label={TEXT.filter}
          placeholder={TEXT.filterHint}
        />
      </form>
    </search>
  )
}

function DayCounts({ me, filter }: { me: Me; filter: Filter }) {
  const [zone] = useZone()
  const organizationId = me.organization.id
  const histogram = useQuery({
    queryKey: ['calls-histogram', organizationId, filter],
    queryFn: () => call('calls.histogram', { path: { organizationId }, query: { ...filter, buckets: 96 } }),
    placeholderData: keepPreviousData,
    // A chart of many calls costs Postgres a quarter of a second; live rows tell of newer ones.
    refetchInterval: 30_000,
  })
  if (histogram.error) return <Failure error={histogram.error} retry={() => histogram.refetch()} />
  if (!histogram.data) return <Waiting />
  const { from, complete_from: since } = histogram.data
  return (
    <section aria-label={TEXT.day}>
      <CallHistogram histogram={histogram.data} />
      {since !== from && <p className={styles.dim}>{TEXT.cut(timeText(since, zone))}</p>}
    </section>
  )
}

function CallTable({ me, filter, isLive }: { me: Me; filter: Filter; isLive: boolean }) {
  const [zone] = useZone()
  const organizationId = me.organization.id
  const names = useNames(me)
  const { group_id: _, ...ofRows } = filter
  const live = useLiveCalls(organizationId, ofRows, isLive && filter.group_id === undefined)
  const calls = useInfiniteQuery({
    queryKey: ['calls', organizationId, filter],
    queryFn: ({ pageParam }) =>
      call('calls.list', {
        path: { organizationId },
        query: { ...filter, limit: 100, ...(pageParam !== null && { cursor: pageParam }) },
      }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
    refetchOnWindowFocus: false,
  })
  if (calls.error) return <Failure error={calls.error} retry={() => calls.refetch()} />
  if (!calls.data) return <Waiting />
  const listed = calls.data.pages.flatMap(({ data }) => data)
  const known = new Set(listed.map(({ id }) => id))
  const rows = [...live.closed.filter(({ id }) => !known.has(id)), ...listed]
  const { heads } = TEXT
  const time = `${heads.time}, ${zoneName(zone)}`
  const more = rows.length === 0 ? TEXT.searchOn : TEXT.more
  return (
    <>
      {live.skipped && <Notice title={TEXT.skipped} look="warn" />}
      {rows.length + live.open.length === 0 ? (
        <Notice title={TEXT.empty}>
          <p>{TEXT.emptyHint}</p>
        </Notice>
      ) : (
        <Table
          caption={TEXT.caption}
          heads={[time, ...Object.values(heads).slice(1)]}
          figures={[heads.tokens, heads.first, heads.total, heads.credits]}
        >
          {live.open.map((open) => (
            <OpenCallRow key={open.id} call={open} names={names} />
          ))}
          {rows.map((row) => (
            <CallRow key={row.id} call={row} slug={me.organization.slug} names={names} />
          ))}
        </Table>
      )}
      {calls.hasNextPage && <Button onClick={() => calls.fetchNextPage()}>{more}</Button>}
    </>
  )
}

/** Names of users and keys that the user may read; ids stand for the others. */
function useNames(me: Me): Names {
  const organizationId = me.organization.id
  const path = { organizationId }
  const users = useQuery({
    queryKey: ['names-of-users', organizationId],
    queryFn: () => call('users.list', { path, query: { limit: 200 } }),
    enabled: may(me, 'users.read'),
  })
  const keys = useQuery({
    queryKey: ['names-of-keys', organizationId],
    queryFn: () => call('keys.list', { path, query: { limit: 200 } }),
    enabled: may(me, 'keys.read'),
  })
  return new Map([
    ...(users.data?.data ?? []).map(({ id, name }) => [id, name] as const),
    ...(keys.data?.data ?? []).map(({ id, label }) => [id, label] as const),
  ])
}
