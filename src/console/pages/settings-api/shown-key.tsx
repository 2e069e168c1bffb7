import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../../data/client.ts'
import type { Me } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Copyable } from '../../design/copyable.tsx'
import { Notice } from '../../design/notice.tsx'
import { Segments } from '../../design/segments.tsx'
import { State } from '../../design/state.tsx'
import styles from './keys.module.css'
import type { MadeKey } from './new-key.tsx'
import { SNIPPETS } from './snippets.ts'
import { TEXT } from './text.ts'

/** Milliseconds between looks at whether the key was used. */
const LOOK_MS = 3_000

/** A new key, once, with how a client takes it, until its first call has arrived. */
export function ShownKey({ me, made, onDone }: { me: Me; made: MadeKey; onDone: () => void }) {
  const organizationId = me.organization.id
  const [client, setClient] = useState('curl')
  const models = useQuery({
    queryKey: ['first-model', organizationId, me.user.id],
    queryFn: () =>
      call('organization-models.list', {
        path: { organizationId },
        query: { user_id: me.user.id, limit: 1 },
      }),
  })
  const used = useQuery({
    queryKey: ['first-call', made.id],
    queryFn: () => call('keys.show', { path: { organizationId, keyId: made.id } }),
    refetchInterval: ({ state }) => (state.data?.last_used_at ? false : LOOK_MS),
  })
  const model = models.data?.data[0]?.id ?? 'MODEL'
  const snippet = SNIPPETS.find((each) => each.client === client)?.text(me.base_url, made.key, model) ?? ''
  return (
    <Notice title={TEXT.shownOnce} look="warn" acts={<Button onClick={onDone}>{TEXT.done}</Button>}>
      <Copyable text={made.key} label={TEXT.copyKey} />
      <div className={styles.client}>
        <Segments
          label={TEXT.client}
          values={SNIPPETS.map((each) => [each.client, each.client] as const)}
          chosen={client}
          onChoose={setClient}
        />
      </div>
      <Copyable text={snippet} label={client} />
      <p>
        {used.data?.last_used_at ? (
          <>
            {TEXT.arrived}{' '}
            <Link to="/$slug/calls" params={{ slug: me.organization.slug }} search={{ q: `key:${made.id}` }}>
              {TEXT.showCalls}
            </Link>
          </>
        ) : (
          <State look="live">{TEXT.waiting}</State>
        )}
      </p>
    </Notice>
  )
}
