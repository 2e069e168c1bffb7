import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { AnswerOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { idText, timeText, zoneName } from '../../data/format.ts'
import { type Me, may, reachesOthers, useSignedIn } from '../../data/me.ts'
import { nameOf, useNames, useUsers } from '../../data/names.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { useSpendByKey } from '../../data/spend.ts'
import { useZone } from '../../data/zone.ts'
import { Button } from '../../design/button.tsx'
import { Credits } from '../../design/credits.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Head, Page } from '../../design/page.tsx'
import { Table } from '../../design/table.tsx'
import { KeyActions } from './key-actions.tsx'
import styles from './keys.module.css'
import { type MadeKey, NewKey } from './new-key.tsx'
import { ShownKey } from './shown-key.tsx'
import { TEXT } from './text.ts'

const route = getRouteApi('/$slug/settings/api')

/** The keys of the user, or of the organization where the role reaches that far. */
export function SettingsApiPage() {
  const me = useSignedIn()
  const { make } = route.useSearch()
  const canCreate = may(me, 'keys.create')
  const [isMaking, setMaking] = useState(make === true && canCreate)
  const [made, setMade] = useState<MadeKey | null>(null)
  useShortcut('n', () => setMaking(true), canCreate)
  const show = (key: MadeKey) => {
    setMade(key)
    setMaking(false)
  }
  return (
    <Page title={TEXT.caption}>
      <Head
        acts={
          canCreate &&
          !isMaking && (
            <Button look="main" onClick={() => setMaking(true)}>
              {TEXT.newKey}
            </Button>
          )
        }
      >
        {reachesOthers(me, 'keys.read') ? <UserChoice me={me} /> : <p>{TEXT.about}</p>}
      </Head>
      {isMaking && <NewKey me={me} onMade={show} onCancel={() => setMaking(false)} />}
      {made && <ShownKey key={made.id} me={me} made={made} onDone={() => setMade(null)} />}
      <KeyList me={me} onMade={show} />
    </Page>
  )
}

/** Whose keys are shown. */
function UserChoice({ me }: { me: Me }) {
  const { user = '' } = route.useSearch()
  const navigate = useNavigate()
  const users = useUsers(me)
  const choose = (id: string) =>
    navigate({
      to: '/$slug/settings/api',
      params: { slug: me.organization.slug },
      search: id === '' ? {} : { user: id },
    })
  return (
    <label className={styles.row}>
      {TEXT.of}
      <select value={user} onChange={({ target }) => choose(target.value)}>
        <option value="">{TEXT.everybody}</option>
        {(users.data?.data ?? []).map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function KeyList({ me, onMade }: { me: Me; onMade: (key: MadeKey) => void }) {
  const { user } = route.useSearch()
  const organizationId = me.organization.id
  const keys = useInfiniteQuery({
    queryKey: ['keys', organizationId, user],
    queryFn: ({ pageParam }) =>
      call('keys.list', {
        path: { organizationId },
        query: {
          limit: 100,
          ...(user && { user_id: user }),
          ...(pageParam !== null && { cursor: pageParam }),
        },
      }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
  })
  const failure = keys.error && (
    <Failure error={keys.error} retry={() => keys.refetch()} shownSince={keys.dataUpdatedAt} />
  )
  if (!keys.data) return failure ?? <Waiting />
  const rows = keys.data.pages.flatMap(({ data }) => data)
  return (
    <>
      {failure}
      {rows.length === 0 ? <Notice title={TEXT.empty} /> : <KeyTable me={me} rows={rows} onMade={onMade} />}
      {keys.hasNextPage && <Button onClick={() => keys.fetchNextPage()}>{TEXT.more}</Button>}
    </>
  )
}

type Key = AnswerOf<'keys.list'>['data'][number]

function KeyTable({ me, rows, onMade }: { me: Me; rows: readonly Key[]; onMade: (key: MadeKey) => void }) {
  const [zone] = useZone()
  const { heads } = TEXT
  const areOfOthers = reachesOthers(me, 'keys.read')
  const zoned = (head: string) => `${head}, ${zoneName(zone)}`
  const spend = useSpendByKey(me)
  return (
    <Table
      caption={TEXT.caption}
      stack="plain"
      heads={[
        { text: heads.label },
        { text: heads.key, width: 150 },
        ...(areOfOthers ? [{ text: heads.user, width: 130 }] : []),
        { text: heads.scopes, width: 150 },
        { text: zoned(heads.expires), width: 128 },
        { text: zoned(heads.used), width: 128 },
        { text: heads.spent, isFigure: true, width: 100 },
        { text: heads.acts, width: 240 },
      ]}
    >
      {rows.map((key) => (
        <KeyRow key={key.id} {...{ me, entry: key, areOfOthers, onMade }} spent={spend.get(key.id) ?? 0} />
      ))}
    </Table>
  )
}

type RowProps = {
  me: Me
  entry: Key
  areOfOthers: boolean
  spent: number
  onMade: (key: MadeKey) => void
}

function KeyRow({ me, entry, areOfOthers, spent, onMade }: RowProps) {
  const [zone] = useZone()
  const names = useNames(me)
  const { key: chosen } = route.useSearch()
  const time = (value: string | null) => (value === null ? TEXT.never : timeText(value, zone))
  return (
    <tr aria-selected={entry.id === chosen}>
      <td data-place="a2">
        <Link to="/$slug/calls" params={{ slug: me.organization.slug }} search={{ q: `key:${entry.id}` }}>
          {entry.label}
        </Link>
      </td>
      <td title={entry.id}>
        <code>{idText(entry.id)}</code>
      </td>
      {areOfOthers && <td>{nameOf(names, entry.user_id)}</td>}
      <td data-place="b2">{entry.scopes.join(', ')}</td>
      <td>{time(entry.expires_at)}</td>
      <td>{time(entry.last_used_at)}</td>
      <td data-figure="" data-place="a3">
        <Credits micro={spent} />
      </td>
      <td data-wrap="" data-place="c">
        {entry.revoked_at === null ? (
          <KeyActions
            me={me}
            entry={entry}
            lastUse={entry.last_used_at && time(entry.last_used_at)}
            onMade={onMade}
          />
        ) : (
          <span className={styles.dim}>{TEXT.revoked}</span>
        )}
      </td>
    </tr>
  )
}
