import { Link } from '@tanstack/react-router'
import { clockText, durationText, millisecondText, tokenText } from '../../data/format.ts'
import { type Names, nameOf } from '../../data/names.ts'
import { type Call, LOOK_OF, statusText, surfaceText } from '../../data/outcomes.ts'
import { useZone } from '../../data/zone.ts'
import { Credits } from '../../design/credits.tsx'
import { State } from '../../design/state.tsx'
import styles from './calls.module.css'
import type { OpenCall } from './live-calls.ts'
import type { CallSearch } from './period.ts'
import { TEXT } from './text.ts'

type RowProps = {
  call: Call
  slug: string
  search: CallSearch
  names: Names
  isChosen: boolean
  /** Whether it came while the page was open, and nobody has looked since. */
  isFresh: boolean
  /** Its place in the whole list, from 1. */
  index: number
}

/** A call that has ended. */
export function CallRow({ call, slug, search, names, isChosen, isFresh, index }: RowProps) {
  const hasTokens = call.input_tokens + call.output_tokens > 0
  return (
    <tr
      aria-selected={isChosen}
      data-mark={isFresh ? '' : undefined}
      aria-rowindex={index + 1}
      data-index={index}
    >
      <Time at={call.at} />
      <td data-place="b1">
        <State look={LOOK_OF[call.outcome]}>{statusText(call)}</State>
      </td>
      <td className={styles.dim}>{surfaceText(call.surface)}</td>
      <td data-place="a2">
        <Link to="/$slug/calls/$callId" params={{ slug, callId: call.id }} search={search}>
          <Subject call={call} />
        </Link>
      </td>
      <Who call={call} names={names} />
      <td className={styles.found}>{call.found.join(', ')}</td>
      <td data-figure="">
        {hasTokens && `${tokenText(call.input_tokens)} → ${tokenText(call.output_tokens)}`}
      </td>
      <td data-figure="">{call.first_event_ms !== null && durationText(call.first_event_ms)}</td>
      <td data-figure="" data-place="b3">
        {durationText(call.duration_ms)}
      </td>
      <td>
        <Strip call={call} />
      </td>
      <td data-figure="" data-place="a3">
        {call.cost === 0 ? <span className={styles.dim}>–</span> : <Credits micro={call.cost} />}
      </td>
    </tr>
  )
}

/** A call that was admitted and has not ended. */
export function OpenCallRow({ call, slug, names }: { call: OpenCall; slug: string; names: Names }) {
  return (
    <tr>
      <Time at={call.at} />
      <td data-place="b1">
        <State look="live">{TEXT.open}</State>
      </td>
      <td className={styles.dim}>{surfaceText(call.surface)}</td>
      <td data-place="a2">
        <Link to="/$slug/calls/$callId" params={{ slug, callId: call.id }}>
          <Subject call={call} />
        </Link>
      </td>
      <Who call={call} names={names} />
      <td />
      <td />
      <td />
      <td />
      <td />
      <td data-figure="" data-place="a3" className={styles.dim}>
        {TEXT.reserved}
      </td>
    </tr>
  )
}

/** Tools are names for machines, models are names for people. */
const Subject = ({ call }: { call: Pick<Call, 'tool' | 'model' | 'action'> }) =>
  call.tool === null ? (call.model ?? call.action) : <code>{call.tool}</code>

function Time({ at }: { at: string }) {
  const [zone] = useZone()
  return (
    <td title={at} data-place="a1">
      {clockText(at, zone)}
      <span className={styles.dim}>{millisecondText(at)}</span>
    </td>
  )
}

function Who({ call, names }: { call: Pick<Call, 'user_id' | 'key_id'>; names: Names }) {
  return (
    <td data-place="b2">
      {nameOf(names, call.user_id)}
      {call.key_id !== null && <span className={styles.dim}> · {nameOf(names, call.key_id)}</span>}
    </td>
  )
}

/** The time that the strip of a row shows. */
const STRIP_MS = 8_000

/** Waiting for the first event, then the stream, in proportion. The columns beside it have the figures. */
function Strip({ call }: { call: Call }) {
  const { first_event_ms: first, duration_ms: total, outcome } = call
  const percent = (time: number) => `${Math.min(100, (100 * time) / STRIP_MS)}%`
  const waited = first ?? (outcome === 'ok' ? 0 : total)
  return (
    <span className={styles.strip}>
      <i style={{ width: percent(waited) }} />
      <i
        data-failed={outcome === 'failed' ? '' : undefined}
        style={{ left: percent(waited), width: percent(Math.max(0, Math.min(total, STRIP_MS) - waited)) }}
      />
    </span>
  )
}
