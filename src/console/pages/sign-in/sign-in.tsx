import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { addressToken, dropAddressToken } from '../../data/address-token.ts'
import { call } from '../../data/client.ts'
import { lastOrganization, signInWithCompany } from '../../data/company-account.ts'
import { rememberLocalSession } from '../../data/local-session.ts'
import { signInWithPasskey } from '../../data/passkeys.ts'
import { codeOf } from '../../data/refusals.ts'
import { Button } from '../../design/button.tsx'
import { Field } from '../../design/field.tsx'
import { Mark } from '../../design/mark.tsx'
import { Notice, RefusalNotice } from '../../design/notice.tsx'
import styles from './entry.module.css'
import { TEXT } from './text.ts'

/** The way in: the start token of a local system by itself, else a passkey. */
export function SignInPage() {
  const enter = useEnter()
  const passkey = useMutation({ mutationFn: signInWithPasskey, onSuccess: () => enter(false) })
  const start = useMutation({
    mutationFn: (token: string) => call('sign-in.local', { body: { token } }),
    onSuccess: () => enter(true),
    onSettled: dropAddressToken,
  })
  const { failed } = useSearch({ strict: false })
  const methods = useQuery({ queryKey: ['sign-in-methods'], queryFn: () => call('sign-in.methods', {}) })
  const isStarted = useRef(false)
  const { mutate } = start
  useEffect(() => {
    const token = addressToken('start')
    if (token === null || isStarted.current) return
    isStarted.current = true
    mutate(token)
  }, [mutate])
  return (
    <main className={styles.entry}>
      <Mark />
      <h1>{TEXT.title}</h1>
      {failed !== undefined && <Notice title={TEXT.failures[failed] ?? TEXT.failed} look="failed" />}
      {start.error && <StartFailure error={start.error} />}
      {passkey.error && <PasskeyFailure error={passkey.error} />}
      <Button look="main" onClick={() => passkey.mutate()} disabled={passkey.isPending || start.isPending}>
        {TEXT.passkey}
      </Button>
      {methods.data?.oidc && <CompanyForm />}
      <p className={styles.soft}>{TEXT.setup}</p>
    </main>
  )
}

/** The way in with an account of an organization's identity provider. */
function CompanyForm() {
  const { to } = useSearch({ strict: false })
  const [organization, setOrganization] = useState(lastOrganization)
  const begin = useMutation({
    mutationFn: () => signInWithCompany(organization.trim().toLowerCase(), returnPath(to)),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    begin.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Field
        label={TEXT.organization}
        value={organization}
        onChange={({ target }) => setOrganization(target.value)}
        placeholder={TEXT.organizationHint}
        autoComplete="organization"
        required
        maxLength={63}
      />
      {begin.error && <RefusalNotice error={begin.error} />}
      <Button type="submit" disabled={begin.isPending}>
        {TEXT.company}
      </Button>
    </form>
  )
}

/** Goes to where the person wanted to be, with nothing left of another session. */
export function useEnter(): (isLocal: boolean) => void {
  const queries = useQueryClient()
  const router = useRouter()
  const { to } = useSearch({ strict: false })
  return (isLocal) => {
    rememberLocalSession(isLocal)
    queries.clear()
    router.history.push(returnPath(to))
  }
}

/** The page of the console that an address wants to be returned to; the start for any other, such as one of another site. */
function returnPath(wanted: unknown): string {
  if (typeof wanted !== 'string' || !URL.canParse(wanted, location.origin)) return '/console'
  const { origin, pathname, search } = new URL(wanted, location.origin)
  return origin === location.origin && pathname.startsWith('/console/') ? pathname + search : '/console'
}

function StartFailure({ error }: { error: unknown }) {
  if (codeOf(error) !== 'start_token_unusable') return <RefusalNotice error={error} />
  return (
    <Notice title={TEXT.usedStart} look="failed">
      <p>{TEXT.usedStartHelp}</p>
    </Notice>
  )
}

/** Why a passkey was not used or registered. */
export function PasskeyFailure({ error }: { error: unknown }) {
  if (error instanceof TypeError || error instanceof ReferenceError) {
    return <Notice title={TEXT.unsupported} look="failed" />
  }
  if (error instanceof DOMException) return <Notice title={TEXT.declined} look="warn" />
  return <RefusalNotice error={error} />
}
