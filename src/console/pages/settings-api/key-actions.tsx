import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { AnswerOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { type Me, may } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Field } from '../../design/field.tsx'
import { Failure } from '../../design/notice.tsx'
import styles from './keys.module.css'
import type { MadeKey } from './new-key.tsx'
import { TEXT } from './text.ts'

type Key = AnswerOf<'keys.show'>
type Action = 'rename' | 'rotate' | 'revoke'
type ActionsProps = { me: Me; entry: Key; lastUse: string | null; onMade: (key: MadeKey) => void }

/** What can be done with a key, confirmed where it stands. */
export function KeyActions({ me, entry, lastUse, onMade }: ActionsProps) {
  const [action, setAction] = useState<Action | null>(null)
  const [label, setLabel] = useState(entry.label)
  const queries = useQueryClient()
  const path = { organizationId: me.organization.id, keyId: entry.id }
  const act = useMutation({
    mutationFn: async (chosen: Action) => {
      if (chosen === 'rename') await call('keys.change', { path, body: { label: label.trim() } })
      else if (chosen === 'revoke') await call('keys.revoke', { path })
      else onMade(await call('keys.rotate', { path, body: {} }))
    },
    onSuccess: () => {
      setAction(null)
      queries.invalidateQueries({ queryKey: ['keys'] })
    },
  })
  if (action === null) return <Choice me={me} entry={entry} onChoose={setAction} />
  return (
    <div>
      {action === 'rename' && (
        <Field
          label={TEXT.label}
          value={label}
          onChange={({ target }) => setLabel(target.value)}
          maxLength={200}
        />
      )}
      {action === 'rotate' && <p>{TEXT.confirmRotate}</p>}
      {action === 'revoke' && <p>{TEXT.confirmRevoke(entry.label, lastUse)}</p>}
      {act.error && <Failure error={act.error} />}
      <div className={styles.row}>
        <Button
          look={action === 'revoke' ? 'danger' : 'main'}
          onClick={() => act.mutate(action)}
          disabled={act.isPending || label.trim() === ''}
        >
          {action === 'rename' ? TEXT.save : TEXT[action]}
        </Button>
        <Button look="plain" onClick={() => setAction(null)}>
          {TEXT.cancel}
        </Button>
      </div>
    </div>
  )
}

function Choice({ me, entry, onChoose }: { me: Me; entry: Key; onChoose: (action: Action) => void }) {
  const isOwn = entry.user_id === me.user.id
  const actions = (['rename', 'rotate', 'revoke'] as const).filter((action) => {
    if (action === 'revoke') return may(me, 'keys.revoke')
    if (action === 'rename') return isOwn && may(me, 'keys.change')
    return isOwn && may(me, 'keys.rotate') && entry.replaced_by === null
  })
  return (
    <span className={styles.row}>
      {actions.map((action) => (
        <Button
          key={action}
          look="plain"
          onClick={() => onChoose(action)}
          aria-label={`${TEXT[action]}: ${entry.label}`}
        >
          {TEXT[action]}
        </Button>
      ))}
      {entry.replaced_by !== null && <span className={styles.dim}>{TEXT.replaced}</span>}
    </span>
  )
}
