import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect, useState } from 'react'
import { Refusal } from '../../client/management-client.ts'
import { PERMISSIONS, type RoleReaches } from '../../wire/endpoints/permissions.ts'
import { clockText, idText } from '../data/format.ts'
import { codeOf, isSignedOut } from '../data/refusals.ts'
import { useZone } from '../data/zone.ts'
import { Button } from './button.tsx'
import styles from './notice.module.css'
import { TEXT } from './text.ts'

type NoticeProps = { title: string; look?: 'failed' | 'warn'; children?: ReactNode; acts?: ReactNode }

export function Notice({ title, look, children, acts }: NoticeProps) {
  const classes = [styles.notice, look && styles[look]].filter(Boolean).join(' ')
  return (
    <div className={classes} role={look === 'failed' ? 'alert' : 'status'}>
      <p className={styles.title}>{title}</p>
      {children}
      {acts && <div className={styles.acts}>{acts}</div>}
    </div>
  )
}

type FailureProps = {
  error: unknown
  retry?: () => void
  /** Milliseconds since the epoch of the data that are still shown; 0 where there are none. */
  shownSince?: number
}

/** What failed, with the id of the request, and what can be done. Forms and older data beside it stay. */
export function Failure({ error, retry, shownSince = 0 }: FailureProps) {
  if (!isSignedOut(error))
    return <RefusalNotice error={error} shownSince={shownSince} {...(retry && { retry })} />
  return (
    <Notice
      title={TEXT.sessionEnded}
      look="warn"
      acts={
        <>
          <Link to="/sign-in" target="_blank">
            <Button look="main">{TEXT.signInAgain}</Button>
          </Link>
          {retry && <Button onClick={retry}>{TEXT.retry}</Button>}
        </>
      }
    />
  )
}

/** A refusal with its reason, whether or not somebody is signed in. */
export function RefusalNotice({ error, retry, shownSince = 0 }: FailureProps) {
  const [zone] = useZone()
  const refusal = error instanceof Refusal ? error : null
  const isMissing = codeOf(error) === 'permission_missing'
  return (
    <Notice
      title={isMissing ? TEXT.noPermission : TEXT.failed}
      look={isMissing ? 'warn' : 'failed'}
      acts={retry && !isMissing && <Button onClick={retry}>{TEXT.retry}</Button>}
    >
      <p>{error instanceof Error ? error.message : TEXT.noAnswer}</p>
      {shownSince > 0 && <p>{TEXT.old(clockText(new Date(shownSince), zone))}</p>}
      {typeof refusal?.details.permission === 'string' && (
        <MissingPermission permission={refusal.details.permission} />
      )}
      {refusal?.requestId && (
        <p>
          {TEXT.request}{' '}
          <code className={styles.id} title={refusal.requestId}>
            {idText(refusal.requestId)}
          </code>
        </p>
      )}
    </Notice>
  )
}

/** The permission that is missing, what includes it, and who can give it. */
function MissingPermission({ permission }: { permission: string }) {
  const reaches = (PERMISSIONS as Record<string, RoleReaches>)[permission]
  const roles = (['member', 'admin', 'owner'] as const).filter((role) => reaches?.[role] !== undefined)
  const holders = [...roles, ...(reaches?.entitlements ?? [])]
  return (
    <>
      <p>
        {TEXT.permission} <code className={styles.id}>{permission}</code>.
        {holders.length > 0 && ` ${TEXT.included} ${holders.join(', ')}.`}
      </p>
      <p>{holders.length > 0 ? TEXT.askOwner : TEXT.askOperator}</p>
    </>
  )
}

/** A line that appears when an answer takes long; nothing flickers before. */
export function Waiting() {
  const [isLong, setLong] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), 300)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div className={styles.waiting} role="status">
      {isLong && (
        <>
          <span>{TEXT.loading}</span>
          {[72, 58, 66, 49].map((width) => (
            <i key={width} style={{ width: `${width}%` }} />
          ))}
        </>
      )}
    </div>
  )
}
