import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { AnswerOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { ageText, plural, timeText, zoneName } from '../../data/format.ts'
import type { Me } from '../../data/me.ts'
import { useZone } from '../../data/zone.ts'
import { Failure, Waiting } from '../../design/notice.tsx'
import { Section } from '../../design/section.tsx'
import { type Look, State } from '../../design/state.tsx'
import styles from './home.module.css'
import { TEXT } from './text.ts'

type Item = AnswerOf<'attention.list'>['data'][number]

const LOOK_OF: Record<Item['kind'], Look> = {
  credits_used_up: 'failed',
  failed_runs: 'failed',
  connection_refused: 'warn',
  key_expires: 'warn',
  tools_pending: 'none',
}

/** What waits for somebody, each with how long and what can be done. */
export function Attention({ me }: { me: Me }) {
  const attention = useQuery({
    queryKey: ['attention', me.organization.id],
    queryFn: () => call('attention.list', { path: { organizationId: me.organization.id } }),
    refetchInterval: 60_000,
  })
  const { data, error } = attention
  const failure = error && (
    <Failure error={error} retry={() => attention.refetch()} shownSince={attention.dataUpdatedAt} />
  )
  if (!data) return failure ?? <Waiting />
  return (
    <Section title={TEXT.attention} note={data.data.length || undefined}>
      {failure}
      {data.data.length === 0 ? (
        <p className={styles.nothing}>{TEXT.nothing}</p>
      ) : (
        <ul className={styles.tasks}>
          {data.data.map((item) => (
            <AttentionLine key={`${item.kind} ${item.id}`} item={item} slug={me.organization.slug} />
          ))}
        </ul>
      )}
    </Section>
  )
}

function AttentionLine({ item, slug }: { item: Item; slug: string }) {
  const [zone] = useZone()
  const { kind, name, count, at } = item
  const noun = kind === 'tools_pending' ? TEXT.tool : TEXT.time
  const end = at === null ? '' : `${timeText(at, zone)} ${zoneName(zone)}`
  const [before, subject, after] = TEXT.sentences[kind](name, plural(count, noun), end)
  return (
    <li>
      <State look={LOOK_OF[kind]}>{TEXT.states[kind]}</State>
      <span className={styles.what}>
        {before}
        <b>{subject}</b>
        {after}
      </span>
      <span className={styles.age}>{at !== null && ageText(at, Date.now())}</span>
      <span className={styles.act}>{kind !== 'tools_pending' && <Act item={item} slug={slug} />}</span>
    </li>
  )
}

/** The one thing to do about it. */
function Act({ item: { kind, id }, slug }: { item: Item; slug: string }) {
  if (kind === 'tools_pending') return null
  const text = TEXT.acts[kind]
  if (kind === 'key_expires') {
    return (
      <Link className={styles.button} to="/$slug/settings/api" params={{ slug }} search={{ key: id }}>
        {text}
      </Link>
    )
  }
  const q = {
    credits_used_up: 'outcome:refused',
    failed_runs: 'outcome:failed surface:agents',
    connection_refused: `connection:${id}`,
  }[kind]
  return (
    <Link className={styles.button} to="/$slug/calls" params={{ slug }} search={{ q }}>
      {text}
    </Link>
  )
}
