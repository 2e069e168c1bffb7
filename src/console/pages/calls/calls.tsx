import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useRef, useState } from 'react'
import { call } from '../../data/client.ts'
import { timeText, zoneName } from '../../data/format.ts'
import { type Me, useSignedIn } from '../../data/me.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { useZone } from '../../data/zone.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Page } from '../../design/page.tsx'
import { CallTable } from './call-table.tsx'
import styles from './calls.module.css'
import { ExportCalls } from './export-calls.tsx'
import { FILTER_WORDS, type Filter, parseFilter, toggleWord } from './filter.ts'
import { CallHistogram, OutcomeCounts } from './histogram.tsx'
import { type CallSearch, halfOf, PERIODS, periodName, periodOf, periodQuery } from './period.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/$slug/calls')

/** What happened: counts of a period, open calls, and every call, by the filter and the period of the address. */
export function CallsPage() {
  const me = useSignedIn()
  const search = route.useSearch()
  const { q = '' } = search
  const { filter, unknown } = parseFilter(q)
  const goTo = useGoTo(me.organization.slug)
  const zoom = (half: 'earlier' | 'later') => {
    const now = Date.now()
    goTo({ q, ...halfOf(periodOf(search, now), half, now) })
  }
  useShortcut('ArrowLeft', () => zoom('earlier'), true, true)
  useShortcut('ArrowRight', () => zoom('later'), true, true)
  const isOwn = me.permissions['calls.read'] === 'own'
  const [isLive, setLive] = useState(true)
  useShortcut('t', () => setLive(!isLive))
  // A period that has ended has no live calls.
  const canLive = search.to === undefined
  const acts = (
    <>
      {canLive && (
        <Button className={styles.live} aria-pressed={isLive} onClick={() => setLive(!isLive)}>
          <span aria-hidden="true">{isLive ? '●' : '○'}</span> {TEXT.live}
        </Button>
      )}
      <ExportCalls organizationId={me.organization.id} filter={filter} search={search} />
    </>
  )
  return (
    <Page title={isOwn ? TEXT.own : TEXT.title}>
      <div className={styles.bars}>
        <FilterField key={q} text={q} onApply={(text) => goTo({ ...search, q: text })} />
        <PeriodChoice search={search} onChoose={goTo} />
      </div>
      {unknown && (
        <Notice title={TEXT.unknownWord(unknown)} look="warn">
          <p>{TEXT.words(FILTER_WORDS.join(', '))}</p>
        </Notice>
      )}
      <Counts {...{ me, search, filter, goTo, acts }} />
      <CallTable key={JSON.stringify(search)} {...{ me, search, filter }} isLive={isLive && canLive} />
    </Page>
  )
}

/** Keeps what is shown in the address. */
function useGoTo(slug: string): (search: CallSearch) => void {
  const navigate = useNavigate()
  return ({ q, ...period }) =>
    navigate({ to: '/$slug/calls', params: { slug }, search: { ...(q && { q }), ...period } })
}

/** Enter applies the filter. */
function FilterField({ text, onApply }: { text: string; onApply: (text: string) => void }) {
  const field = useRef<HTMLInputElement>(null)
  useShortcut('/', () => field.current?.focus())
  const apply = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    onApply(String(new FormData(event.currentTarget).get('q') ?? '').trim())
    field.current?.blur()
  }
  return (
    <search className={styles.search}>
      <form className={styles.search} onSubmit={apply}>
        <input
          ref={field}
          className={styles.filter}
          name="q"
          type="search"
          defaultValue={text}
          aria-label={TEXT.filter}
          placeholder={TEXT.filterHint}
          spellCheck={false}
          autoComplete="off"
        />
        <kbd>/</kbd>
      </form>
    </search>
  )
}

function PeriodChoice({ search, onChoose }: { search: CallSearch; onChoose: (search: CallSearch) => void }) {
  const [zone] = useZone()
  const { q, from = '', to } = search
  const name = periodName(search)
  const choose = (value: string) => {
    const period = Object.keys(PERIODS).find((each) => each === value)
    if (period !== undefined) onChoose({ ...(q && { q }), period: period as keyof typeof PERIODS })
  }
  return (
    <select aria-label={TEXT.period} value={name ?? 'chosen'} onChange={({ target }) => choose(target.value)}>
      {name === null && (
        <option value="chosen">
          {TEXT.chosenPeriod(timeText(from, zone), to === undefined ? TEXT.now : timeText(to, zone))}{' '}
          {zoneName(zone)}
        </option>
      )}
      {Object.entries(TEXT.periods).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  )
}

type CountsProps = {
  me: Me
  search: CallSearch
  filter: Filter
  goTo: (search: CallSearch) => void
  /** What can be done with the calls that are counted. */
  acts: ReactNode
}

/** The counts of the period, of which the chosen outcome is a filter, and the chart. */
function Counts({ me, search, filter, goTo, acts }: CountsProps) {
  const [zone] = useZone()
  const [opened] = useState(Date.now)
  const organizationId = me.organization.id
  const { outcome, ...others } = filter
  const isEnding = periodOf(search, opened).to === null
  const histogram = useQuery({
    queryKey: ['calls-histogram', organizationId, others, search.period, search.from, search.to],
    queryFn: () =>
      call('calls.histogram', {
        path: { organizationId },
        query: { ...others, ...periodQuery(periodOf(search, Date.now())), buckets: 96 },
      }),
    placeholderData: keepPreviousData,
    // A chart of many calls costs Postgres a quarter of a second; live rows tell of newer ones.
    refetchInterval: isEnding ? 30_000 : false,
  })
  const { data, error, dataUpdatedAt } = histogram
  const failure = error && (
    <Failure error={error} retry={() => histogram.refetch()} shownSince={dataUpdatedAt} />
  )
  return (
    <section aria-label={TEXT.charted}>
      {failure}
      <div className={styles.line}>
        {data && (
          <OutcomeCounts
            histogram={data}
            chosen={outcome}
            onChoose={(chosen) => goTo({ ...search, q: toggleWord(search.q ?? '', 'outcome', chosen) })}
          />
        )}
        <div className={styles.acts}>{acts}</div>
      </div>
      {!data && !failure && <Waiting />}
      {data && (
        <CallHistogram
          histogram={data}
          onZoom={(from, to) => goTo({ ...(search.q && { q: search.q }), from, to })}
        />
      )}
      {data && data.complete_from !== data.from && (
        <p className={styles.dim}>{TEXT.cut(timeText(data.complete_from, zone))}</p>
      )}
    </section>
  )
}
