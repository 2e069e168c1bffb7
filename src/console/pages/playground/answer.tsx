import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { call } from '../../data/client.ts'
import { creditText, durationText, numberText } from '../../data/format.ts'
import { type Me, may } from '../../data/me.ts'
import type { Call } from '../../data/outcomes.ts'
import { Notice } from '../../design/notice.tsx'
import { Facts } from '../../design/section.tsx'
import { State } from '../../design/state.tsx'
import styles from './playground.module.css'
import type { PlaygroundCall } from './playground-call.ts'
import { TEXT } from './text.ts'

/** What came of a call: its text, how quick it was, what it cost, and its record. */
export function Answer({ me, made }: { me: Me; made: PlaygroundCall }) {
  const { state, text, thinking, error, body, events } = made
  const record = useRecord(me, made)
  return (
    <div className={styles.answer}>
      {state === 'running' && made.first === null && <State look="live">{TEXT.waiting}</State>}
      {error !== null && (
        <Notice title={made.body === null ? TEXT.failed : (made.requestId ?? TEXT.failed)} look="failed">
          <pre className={styles.raw}>{readable(error)}</pre>
        </Notice>
      )}
      {thinking !== '' && (
        <details>
          <summary>{TEXT.thinking}</summary>
          <p className={styles.text}>{thinking}</p>
        </details>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: an output element would read every piece of a stream aloud */}
      <div role="group" aria-label={TEXT.answer} aria-busy={state === 'running'}>
        <p className={styles.text}>{text}</p>
      </div>
      {state === 'stopped' && <State look="warn">{TEXT.stopped}</State>}
      <div className={styles.measured}>
        <Measures me={me} made={made} record={record} />
        {record && (
          <Link to="/$slug/calls/$callId" params={{ slug: me.organization.slug, callId: record.id }}>
            {TEXT.call}
          </Link>
        )}
      </div>
      {events.length > 0 && <RawEvents events={events} />}
      {body !== null && error === null && (
        <details>
          <summary>{TEXT.rawAnswer}</summary>
          <pre className={styles.raw}>{readable(body)}</pre>
        </details>
      )}
    </div>
  )
}

/** Joined only while they are seen: they grow with each piece of a stream. */
function RawEvents({ events }: { events: readonly string[] }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{TEXT.rawEvents(numberText(events.length))}</summary>
      {isOpen && <pre className={styles.raw}>{events.join('\n')}</pre>}
    </details>
  )
}

function Measures({ me, made, record }: { me: Me; made: PlaygroundCall; record: Call | null }) {
  const { state, first, total, inputTokens, outputTokens } = made
  const streamed = first === null ? 0 : total - first
  const speed = outputTokens > 0 && streamed > 0 ? Math.round((outputTokens * 1_000) / streamed) : null
  const cost = record === null ? TEXT.settling : creditText(record.cost)
  const measures: Array<[name: string, value: ReactNode]> = [
    [TEXT.first, first === null ? null : durationText(first)],
    [TEXT.total, durationText(total)],
    [
      TEXT.tokens,
      inputTokens + outputTokens > 0 ? `${numberText(inputTokens)} → ${numberText(outputTokens)}` : null,
    ],
    [TEXT.speed, speed === null ? null : numberText(speed)],
    [TEXT.cost, state === 'running' || made.requestId === null || !may(me, 'calls.read') ? null : cost],
  ]
  return <Facts look="line" facts={measures} />
}

/** The record of a call, once it is there. */
function useRecord(me: Me, { state, requestId }: PlaygroundCall) {
  const found = useQuery({
    queryKey: ['call-of-request', me.organization.id, requestId],
    queryFn: () =>
      call('calls.list', {
        path: { organizationId: me.organization.id },
        query: { request_id: requestId ?? '', limit: 1 },
      }),
    enabled: requestId !== null && state !== 'running' && may(me, 'calls.read'),
    refetchInterval: ({ state: { data, dataUpdateCount } }) =>
      data?.data.length || dataUpdateCount > 60 ? false : 1_000,
  })
  return found.data?.data[0] ?? null
}

function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
