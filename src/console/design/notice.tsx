import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect, useState } from 'react'
import { Refusal } from '../../client/management-client.ts'
import { codeOf, isSignedOut } from '../data/refusals.ts'
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

/** What failed, with the id of the request, and what can be done. Forms beside it keep their contents. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const signIn = (
    <Link to="/sign-in" target="_blank">
      <Button look="main">{TEXT.signInAgain}</Button>
    </Link>
  )
  if (isSignedOut(error)) {
    const again = retry && <Button onClick={retry}>{TEXT.retry}</Button>
    return (
      <Notice
        title={TEXT.sessionEnded}
        look="warn"
        acts={
          <>
            {signIn}
            {again}
          </>
        }
      />
    )
  }
  return <RefusalNotice error={error} {...(retry && { retry })} />
}

/** A refusal with its reason, whether or not somebody is signed in. */
export function RefusalNotice({ error, retry }: { error: unknown; retry?: () => void }) {
  const refusal = error instanceof Refusal ? error : null
  const title = codeOf(error) === 'permission_missing' ? TEXT.noPermission : TEXT.failed
  return (
    <Notice title={title} look="failed" acts={retry && <Button onClick={retry}>{TEXT.retry}</Button>}>
      <p>{error instanceof Error ? error.message : TEXT.noAnswer}</p>
      {typeof refusal?.details.permission === 'string' && (
        <p>
          {TEXT.permission} <code className={styles.id}>{refusal.details.permission}</code>
        </p>
      )}
      {refusal?.requestId && (
        <p>
          {TEXT.request} <code className={styles.id}>{refusal.requestId}</code>
        </p>
      )}
    </Notice>
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
    <p className={styles.waiting} role="status">
      {isLong ? TEXT.loading : ''}
    </p>
  )
}
