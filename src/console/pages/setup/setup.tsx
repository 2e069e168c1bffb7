import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { addressToken, dropAddressToken } from '../../data/address-token.ts'
import { call } from '../../data/client.ts'
import { setUpWithCompany } from '../../data/company-account.ts'
import { createPasskey } from '../../data/passkeys.ts'
import { Button } from '../../design/button.tsx'
import { Field } from '../../design/field.tsx'
import { Mark } from '../../design/mark.tsx'
import { Failure, Notice, RefusalNotice, Waiting } from '../../design/notice.tsx'
import styles from '../sign-in/entry.module.css'
import { PasskeyFailure, useEnter } from '../sign-in/sign-in.tsx'
import { TEXT } from './text.ts'
import { isUnusableLink } from './unusable-link.ts'

/** What a setup link opens: for whom it is, then the first passkey. */
export function SetupPage() {
  // The token stays in memory until it is used.
  const [token] = useState(() => addressToken('token'))
  const shown = useQuery({
    queryKey: ['setup', token],
    queryFn: () => call('setup.show', { body: { token: token ?? '' } }),
    enabled: token !== null,
  })
  return (
    <main className={styles.entry}>
      <Mark />
      <h1>{TEXT.title}</h1>
      {token === null && (
        <Notice title={TEXT.noLink} look="warn">
          <p>{TEXT.renew}</p>
        </Notice>
      )}
      {isUnusableLink(shown.error) && (
        <Notice title={TEXT.unusable} look="warn">
          <p>{TEXT.renew}</p>
        </Notice>
      )}
      {shown.error && !isUnusableLink(shown.error) && (
        <Failure error={shown.error} retry={() => shown.refetch()} />
      )}
      {shown.isLoading && <Waiting />}
      {token !== null && shown.data && (
        <>
          <dl className={styles.facts}>
            <dt>{TEXT.name}</dt>
            <dd>{shown.data.user.name}</dd>
            <dt>{TEXT.organization}</dt>
            <dd>{shown.data.organization.name}</dd>
            <dt>{TEXT.role}</dt>
            <dd>{shown.data.role}</dd>
          </dl>
          <PasskeyForm token={token} />
          {shown.data.identity_provider && (
            <CompanyButton token={token} issuer={shown.data.identity_provider.issuer} />
          )}
        </>
      )}
    </main>
  )
}

function PasskeyForm({ token }: { token: string }) {
  const [name, setName] = useState<string>(TEXT.defaultDevice)
  const enter = useEnter()
  const create = useMutation({
    mutationFn: () => createPasskey(token, name.trim()),
    onSuccess: () => {
      dropAddressToken()
      enter(false)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Field
        label={TEXT.device}
        value={name}
        onChange={({ target }) => setName(target.value)}
        required
        maxLength={100}
      />
      {create.error && <PasskeyFailure error={create.error} />}
      <Button look="main" type="submit" disabled={create.isPending}>
        {TEXT.create}
      </Button>
    </form>
  )
}

/** The account of the company in place of a passkey. */
function CompanyButton({ token, issuer }: { token: string; issuer: string }) {
  const begin = useMutation({ mutationFn: () => setUpWithCompany(token) })
  return (
    <>
      {begin.error && <RefusalNotice error={begin.error} />}
      <Button onClick={() => begin.mutate()} disabled={begin.isPending}>
        {TEXT.company(new URL(issuer).host)}
      </Button>
    </>
  )
}
