import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { call } from '../../data/client.ts'
import type { Me } from '../../data/me.ts'
import type { Call } from '../../data/outcomes.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { Button } from '../../design/button.tsx'
import { parseFilter } from '../calls/filter.ts'
import type { ShownCall } from './call-record.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/$slug/calls/$callId')

/** The calls before and after this one, within the filter that led here. */
export function Neighbours({ me, shown }: { me: Me; shown: ShownCall }) {
  const navigate = useNavigate()
  const search = route.useSearch()
  const { newer, older } = useNeighbours(me.organization.id, shown, search.q ?? '')
  const go = (callId: string | undefined) => {
    if (callId === undefined) return
    navigate({ to: '/$slug/calls/$callId', params: { slug: me.organization.slug, callId }, search })
  }
  useShortcut('[', () => go(newer))
  useShortcut(']', () => go(older))
  return (
    <>
      <Button look="plain" disabled={newer === undefined} onClick={() => go(newer)}>
        <kbd>[</kbd> {TEXT.newer}
      </Button>
      <Button look="plain" disabled={older === undefined} onClick={() => go(older)}>
        {TEXT.older} <kbd>]</kbd>
      </Button>
    </>
  )
}

/** From the list that led here; without it, only the older one is asked for: the API lists from the newest on. */
function useNeighbours(
  organizationId: string,
  shown: ShownCall,
  q: string,
): { newer?: string; older?: string } {
  const queries = useQueryClient()
  const { filter } = parseFilter(q)
  const lists = queries.getQueriesData<{ pages: Array<{ data: Call[] }> }>({
    queryKey: ['calls', organizationId, filter],
  })
  const rows = lists
    .map(([, list]) => list?.pages.flatMap(({ data }) => data) ?? [])
    .find((listed) => listed.some(({ id }) => id === shown.id))
  const at = rows?.findIndex(({ id }) => id === shown.id) ?? -1
  const listedOlder = rows?.[at + 1]?.id
  const asked = useQuery({
    queryKey: ['older-call', organizationId, filter, shown.id],
    queryFn: () =>
      call('calls.list', { path: { organizationId }, query: { ...filter, to: shown.at, limit: 2 } }),
    enabled: listedOlder === undefined,
  })
  const older = listedOlder ?? asked.data?.data.find(({ id }) => id !== shown.id)?.id
  const newer = at > 0 ? rows?.[at - 1]?.id : undefined
  return { ...(newer && { newer }), ...(older && { older }) }
}
