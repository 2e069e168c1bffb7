import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { AnswerOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { creditText, durationText, numberText, timeText, zoneName } from '../../data/format.ts'
import { type Me, useMe } from '../../data/me.ts'
import { useZone } from '../../data/zone.ts'
import { Copyable } from '../../design/copyable.tsx'
import { Failure, Waiting } from '../../design/notice.tsx'
import { Table } from '../../design/table.tsx'
import { statusText } from '../calls/call-rows.tsx'
import styles from '../calls/calls.module.css'
import { TEXT } from './text.ts'

const route = getRouteApi('/$slug/calls/$callId')

type Shown = AnswerOf<'calls.show'>

/** One call: its facts, its attempts and its record. */
export function CallPage() {
  const me = useMe()
  return me.data ? <CallOf me={me.data} /> : <Waiting />
}

function CallOf({ me }: { me: Me }) {
  const { slug, callId } = route.useParams()
  const path = { organizationId: me.organization.id, callId }
  const shown = useQuery({
    queryKey: ['call', path.organizationId, callId],
    queryFn: () => call('calls.show', { path }),
  })
  return (
    <>
      <p>
        <Link to="/$slug/calls" params={{ slug }}>
          ← {TEXT.back}
        </Link>
      </p>
      <h1 className={styles.title}>{callId}</h1>
      {shown.error && <Failure error={shown.error} retry={() => shown.refetch()} />}
      {shown.isPending && <Waiting />}
      {shown.data && <Facts shown={shown.data} />}
    </>
  )
}

function Facts({ shown }: { shown: Shown }) {
  const [zone] = useZone()
  const { facts } = TEXT
  const values: Array<[name: string, value: string | null]> = [
    [facts.status, statusText(shown)],
    [`${facts.time}, ${zoneName(zone)}`, timeText(shown.at, zone)],
    [facts.model, shown.model],
    [facts.tool, shown.tool],
    [facts.provider, shown.provider],
    [facts.user, shown.user_id],
    [facts.key, shown.key_id],
    [facts.surface, shown.surface],
    [facts.request, shown.request_id],
    [facts.response, shown.response_id],
    [facts.run, shown.run_id],
    [facts.tokens, `${numberText(shown.input_tokens)} → ${numberText(shown.output_tokens)}`],
    [facts.first, shown.first_event_ms === null ? null : durationText(shown.first_event_ms)],
    [facts.total, durationText(shown.duration_ms)],
    [facts.credits, creditText(shown.cost)],
    [facts.found, shown.found.join(', ') || null],
    [facts.flags, shown.flags.join(', ') || null],
    [facts.place, TEXT.place(shown.record.shard, shown.record.sequence)],
  ]
  return (
    <>
      <dl className={styles.facts}>
        {values
          .filter(([, value]) => value !== null)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      <Attempts record={shown.record.record} />
      <h2 className={styles.title}>{TEXT.record}</h2>
      <Copyable text={JSON.stringify(shown.record.record, null, 2)} label={TEXT.recordLabel} />
    </>
  )
}

interface Attempt {
  provider: string
  upstreamModel: string
  status: number | null
  failure: string | null
  durationMilliseconds: number
}

/** Requests to providers, in order. A record that was tampered with may have none. */
function Attempts({ record }: { record: unknown }) {
  const attempts = (record as { attempts?: Attempt[] } | null)?.attempts
  if (!Array.isArray(attempts) || attempts.length === 0) return null
  const { attemptHeads: heads } = TEXT
  return (
    <Table caption={TEXT.attempts} heads={Object.values(heads)} figures={[heads.duration]}>
      {attempts.map((attempt, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attempts have no id, and their order stays
        <tr key={index}>
          <td>{attempt.provider}</td>
          <td>{attempt.upstreamModel}</td>
          <td>{attempt.status}</td>
          <td>{attempt.failure}</td>
          <td data-figure="">{durationText(attempt.durationMilliseconds)}</td>
        </tr>
      ))}
    </Table>
  )
}
