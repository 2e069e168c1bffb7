import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../data/client.ts'
import { numberText } from '../../data/format.ts'
import type { Call } from '../../data/outcomes.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Notice } from '../../design/notice.tsx'
import { csvText } from './csv.ts'
import type { Filter } from './filter.ts'
import { type CallSearch, periodOf, periodQuery } from './period.ts'
import { TEXT } from './text.ts'

/** Calls of one export; the API has all of them (`calls.list`). */
const MOST_ROWS = 10_000
const PAGE_ROWS = 200

type ExportProps = { organizationId: string; filter: Filter; search: CallSearch }

/** Saves the calls that match as CSV: times are ISO, amounts are micro-credits, whatever the page shows. */
export function ExportCalls({ organizationId, filter, search }: ExportProps) {
  const [count, setCount] = useState(0)
  const [isCut, setCut] = useState(false)
  const save = useMutation({
    mutationFn: async () => {
      const query = { ...filter, ...periodQuery(periodOf(search, Date.now())) }
      const { rows, hasMore } = await readCalls(organizationId, query, setCount)
      setCut(hasMore)
      saveFile(csvText(rows), `calls-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}.csv`)
    },
  })
  useShortcut('e', () => save.mutate(), !save.isPending)
  return (
    <>
      <Button onClick={() => save.mutate()} disabled={save.isPending}>
        {save.isPending ? TEXT.exporting(numberText(count)) : TEXT.export}
      </Button>
      {save.error && <Failure error={save.error} retry={() => save.mutate()} />}
      {isCut && <Notice title={TEXT.exported(numberText(MOST_ROWS))} look="warn" />}
    </>
  )
}

async function readCalls(
  organizationId: string,
  query: Record<string, string>,
  tell: (count: number) => void,
) {
  const rows: Call[] = []
  let cursor: string | null = null
  do {
    const page: { data: Call[]; next_cursor: string | null } = await call('calls.list', {
      path: { organizationId },
      query: { ...query, limit: PAGE_ROWS, ...(cursor !== null && { cursor }) },
    })
    rows.push(...page.data)
    cursor = page.next_cursor
    tell(rows.length)
  } while (cursor !== null && rows.length < MOST_ROWS)
  return { rows, hasMore: cursor !== null }
}

function saveFile(text: string, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
