import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../data/client.ts'
import { timeText, zoneName } from '../../data/format.ts'
import { type Me, may, useMe } from '../../data/me.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { useZone } from '../../data/zone.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Table } from '../../design/table.tsx'
import { KeyActions } from './key-actions.tsx'
import styles from './keys.module.css'
import { type MadeKey, NewKey } from './new-key.tsx'
import { ShownKey } from './shown-key.tsx'
import { TEXT } from './text.ts'

/** The keys of the user, or of the organization where the role reaches that far. */
export function SettingsApiPage() {
  const me = useMe()
  return me.data ? <Keys me={me.data} /> : <Waiting />
}

function Keys({ me }: { me: Me }) {
  const [isMaking, setMaking] = useState(false)
  const [made, setMade] = useState<MadeKey | null>(null)
  const canCreate = may(me, 'keys.create')
  useShortcut('n', () => setMaking(true), canCreate)
  const show = (key: MadeKey) => {
    setMade(key)
    setMaking(false)
  }
  return (
    <>
      <div className={styles.head}>
        <h1>{TEXT.caption}</h1>
        {canCreate && !isMaking && (
          <Button look="main" onClick={() => setMaking(true)}>
            {TEXT.newKey}
          </Button>
        )}
      </div>
      {isMaking && <NewKey me={me} onMade={show} onCancel={() => setMaking(false)} />}
      {made && <ShownKey key={made.id} me={me} made={made} onDone={() => setMade(null)} />}
      <KeyList me={me} onMade={show} />
    </>
  )
}

function KeyList({ me, onMade }: { me: Me; onMade: (key: MadeKey) => void }) {
  const [zone] = useZone()
  const organizationId = me.organization.id
  const keys = useInfiniteQuery({
    queryKey: ['keys', organizationId],
    queryFn: ({ pageParam }) =>
      call('keys.list', {
        path: { organizationId },
        query: { limit: 100, ...(pageParam !== null && { cursor: pageParam }) },
      }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
  })
  if (keys.error) return <Failure error={keys.error} retry={() => keys.refetch()} />
  if (!keys.data) return <Waiting />
  const rows = keys.data.pages.flatMap(({ data }) => data)
  if (rows.length === 0) return <Notice title={TEXT.empty} />
  const { heads } = TEXT
  const zoned = (head: string) => `${head}, ${zoneName(zone)}`
  const time = (value: string | null) => (value === null ? TEXT.never : timeText(value, zone))
  return (
    <>
      <Table
        caption={TEXT.caption}
        heads={[heads.label, heads.key, heads.scopes, zoned(heads.expires), zoned(heads.used), heads.acts]}
      >
        {rows.map((key) => (
          <tr key={key.id}>
            <td>{key.label}</td>
            <td>
              <code>{key.id}</code>
            </td>
            <td>{key.scopes.join(', ')}</td>
            <td>{time(key.expires_at)}</td>
            <td>{time(key.last_used_at)}</td>
            <td>
              {key.revoked_at === null ? (
                <KeyActions
                  me={me}
                  entry={key}
                  lastUse={key.last_used_at && time(key.last_used_at)}
                  onMade={onMade}
                />
              ) : (
                <span className={styles.dim}>{TEXT.revoked}</span>
              )}
            </td>
          </tr>
        ))}
      </Table>
      {keys.hasNextPage && <Button onClick={() => keys.fetchNextPage()}>{TEXT.more}</Button>}
    </>
  )
}
