import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { AnswerOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import type { Me } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Field } from '../../design/field.tsx'
import { Failure } from '../../design/notice.tsx'
import styles from './keys.module.css'
import { TEXT } from './text.ts'

/** A key with its secret, which only the answer to its creation holds. */
export type MadeKey = AnswerOf<'keys.create'>

const SCOPES = ['models', 'agents', 'mcp'] as const
type Scope = (typeof SCOPES)[number]

/** The form of a new key; it keeps what was typed when the gateway refuses. */
export function NewKey({
  me,
  onMade,
  onCancel,
}: {
  me: Me
  onMade: (key: MadeKey) => void
  onCancel: () => void
}) {
  const [label, setLabel] = useState('')
  const [scopes, setScopes] = useState<readonly Scope[]>(SCOPES)
  const queries = useQueryClient()
  const create = useMutation({
    mutationFn: () =>
      call('keys.create', {
        path: { organizationId: me.organization.id },
        body: { label: label.trim(), scopes: [...scopes] },
      }),
    onSuccess: (key) => {
      queries.invalidateQueries({ queryKey: ['keys'] })
      onMade(key)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  const toggle = (scope: Scope) =>
    setScopes((held) =>
      SCOPES.filter((each) => (each === scope ? !held.includes(each) : held.includes(each))),
    )
  return (
    <form className={styles.form} onSubmit={submit} aria-label={TEXT.newKey}>
      <Field
        label={TEXT.label}
        value={label}
        onChange={({ target }) => setLabel(target.value)}
        placeholder={TEXT.labelHint}
        required
        maxLength={200}
        autoFocus
      />
      <fieldset className={styles.scopes}>
        <legend>{TEXT.scopes}</legend>
        {SCOPES.map((scope) => (
          <label key={scope}>
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
            {scope}
          </label>
        ))}
      </fieldset>
      {create.error && <Failure error={create.error} retry={() => create.mutate()} />}
      <div className={styles.row}>
        <Button look="main" type="submit" disabled={create.isPending || scopes.length === 0}>
          {TEXT.create}
        </Button>
        <Button look="plain" onClick={onCancel}>
          {TEXT.cancel}
        </Button>
      </div>
    </form>
  )
}
