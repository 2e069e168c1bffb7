import { useEffect, useState } from 'react'
import type { Call } from '../../data/outcomes.ts'
import type { Filter } from './filter.ts'

/** A call that has not ended: what is known at its admission. */
export type OpenCall = Pick<
  Call,
  'id' | 'at' | 'user_id' | 'key_id' | 'surface' | 'action' | 'model' | 'tool' | 'request_id'
>

interface LiveCalls {
  open: readonly OpenCall[]
  closed: readonly Call[]
  skipped: boolean
}

const NOTHING: LiveCalls = { open: [], closed: [], skipped: false }
/** Rows that are kept: more are on the next page of the list. */
const MOST_ROWS = 500

/** Calls as they are admitted and end, since the page was opened, newest first. @param isOn whether to listen. */
export function useLiveCalls(organizationId: string, filter: Filter, isOn: boolean): LiveCalls {
  const [calls, setCalls] = useState(NOTHING)
  const query = new URLSearchParams(filter).toString()
  useEffect(() => {
    setCalls(NOTHING)
    if (!isOn) return
    return listenWhileVisible(`/api/organizations/${organizationId}/calls/tail?${query}`, (data) => {
      const told: { opened: OpenCall[]; closed: Call[]; skipped: boolean } = JSON.parse(data)
      setCalls((before) => added(before, told))
    })
  }, [organizationId, query, isOn])
  return calls
}

/**
 * Reads live calls while the page is seen, and goes on where it was: a page that nobody sees takes no place of a reader, and does not keep
 * its session in use. @returns what ends it.
 */
function listenWhileVisible(url: string, tell: (data: string) => void): () => void {
  let source: EventSource | null = null
  let after = ''
  const follow = () => {
    source?.close()
    source = document.hidden ? null : new EventSource(`${url}&after=${after}`)
    source?.addEventListener('calls', ({ data, lastEventId }: MessageEvent<string>) => {
      after = lastEventId
      tell(data)
    })
  }
  follow()
  document.addEventListener('visibilitychange', follow)
  return () => {
    document.removeEventListener('visibilitychange', follow)
    source?.close()
  }
}

function added(
  { open, closed, skipped }: LiveCalls,
  told: { opened: OpenCall[]; closed: Call[]; skipped: boolean },
): LiveCalls {
  const ended = new Set(told.closed.map(({ id }) => id))
  const known = new Set(open.map(({ id }) => id))
  const opened = told.opened.filter(({ id }) => !known.has(id)).reverse()
  return {
    open: [...opened, ...open.filter(({ id }) => !ended.has(id))].slice(0, MOST_ROWS),
    closed: [...told.closed.toReversed(), ...closed].slice(0, MOST_ROWS),
    skipped: skipped || told.skipped,
  }
}
