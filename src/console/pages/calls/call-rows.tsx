import { Link } from '@tanstack/react-router'
import { clockText, creditText, durationText, tokenText } from '../../data/format.ts'
import { useZone } from '../../data/zone.ts'
import styles from './calls.module.css'
import type { Call, OpenCall } from './live-calls.ts'
import { TEXT } from './text.ts'

/** Names of users and labels of keys, by their ids. */
export type Names = ReadonlyMap<string, string>

const LOOKS = {
  ok: styles.dim,
  cancelled: styles.dim,
  refused: styles.refused,
  blocked: styles.blocked,
  failed: styles.failed,
}
const SIGNS = { ok: '', cancelled: '', refused: '▲ ', blocked: '■ ', failed: '× ' } as const

/** A call that has ended. */
export function CallRow({ call, slug, names }: { call: Call; slug: string; names: Names }) {
  return (
    <tr>
      <Time at={call.at} />
      <td>
        <span className={LOOKS[call.outcome]}>
          <span aria-hidden="true">{SIGNS[call.outcome]}</span>
          {statusText(call)}
        </span>
      </td>
      <td className={styles.dim}>{call.surface}</td>
      <td>
        <Link to="/$slug/calls/$callId" params={{ slug, callId: call.id }}>
          {call.tool ?? call.model ?? call.action}
        </Link>
      </td>
      <Who call={call} names={names} />
      <td className={styles.blocked}>{call.found.join(', ')}</td>
      <td data-figure="">
        {call.input_tokens + call.output_tokens > 0 &&
          `${tokenText(call.input_tokens)} → ${tokenText(call.output_tokens)}`}
      </td>
      <td data-figure="">{call.first_event_ms !== null && durationText(call.first_event_ms)}</td>
      <td data-figure="">{durationText(call.duration_ms)}</td>
      <td data-figure="">{call.cost === 0 ? '–' : creditText(call.cost)}</td>
    </tr>
  )
}

/** A call that was admitted and has not ended. */
export function OpenCallRow({ call, names }: { call: OpenCall; names: Names }) {
  return (
    <tr>
      <Time at={call.at} />
      <td className={styles.open}>
        <span aria-hidden="true">● </span>
        {TEXT.open}
      </td>
      <td className={styles.dim}>{call.surface}</td>
      <td>{call.tool ?? call.model ?? call.action}</td>
      <Who call={call} names={names} />
      <td />
      <td />
      <td />
      <td />
      <td data-figure="" className={styles.dim}>
        {TEXT.reserved}
      </td>
    </tr>
  )
}

function Time({ at }: { at: string }) {
  const [zone] = useZone()
  return <td title={at}>{clockText(at, zone)}</td>
}

function Who({ call, names }: { call: Pick<Call, 'user_id' | 'key_id'>; names: Names }) {
  const shown = [call.user_id, call.key_id].flatMap((id) =>
    id === null ? [] : [names.get(id) ?? id.slice(0, 8)],
  )
  return <td>{shown.join(' · ')}</td>
}

/** The status with a word, where it needs one. */
export function statusText({ status, error, outcome, count }: Call): string {
  const word = outcome === 'ok' ? '' : (error ?? TEXT.outcomes[outcome]).replaceAll('_', ' ')
  const text = status === 0 ? word : `${status} ${word}`
  return count > 1 ? `${text.trim()} ×${count}` : text.trim()
}
