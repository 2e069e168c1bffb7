import { useInfiniteQuery } from '@tanstack/react-query'
import { call } from '../../data/client.ts'
import { numberText } from '../../data/format.ts'
import { type Me, useMe } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Table } from '../../design/table.tsx'
import { TEXT } from './text.ts'

const HEADS = [TEXT.model, TEXT.context, TEXT.output, TEXT.capabilities, TEXT.grantedBy]
const FIGURES = [TEXT.context, TEXT.output]

/** Which models the user may call, and why. */
export function ModelsPage() {
  const me = useMe()
  return me.data ? <Models me={me.data} /> : <Waiting />
}

function Models({ me }: { me: Me }) {
  const organizationId = me.organization.id
  const models = useInfiniteQuery({
    queryKey: ['models', organizationId, me.user.id],
    queryFn: ({ pageParam }) =>
      call('organization-models.list', {
        path: { organizationId },
        query: { user_id: me.user.id, limit: 100, ...(pageParam !== null && { cursor: pageParam }) },
      }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
  })
  if (models.error) return <Failure error={models.error} retry={() => models.refetch()} />
  if (!models.data) return <Waiting />
  const rows = models.data.pages.flatMap(({ data }) => data)
  if (rows.length === 0) return <Notice title={TEXT.empty} />
  return (
    <>
      <Table caption={TEXT.caption} heads={HEADS} figures={FIGURES}>
        {rows.map((model) => (
          <tr key={model.id}>
            <td>
              <code>{model.id}</code>
            </td>
            <td data-figure="">{numberText(model.context_window)}</td>
            <td data-figure="">{numberText(model.max_output_tokens)}</td>
            <td>{model.capabilities.join(', ')}</td>
            <td>{model.granted_by.map(grantText).join(', ')}</td>
          </tr>
        ))}
      </Table>
      {models.hasNextPage && <Button onClick={() => models.fetchNextPage()}>{TEXT.more}</Button>}
    </>
  )
}

const grantText = ({ subject_type, name }: { subject_type: string; name?: string | null }): string =>
  name ? `${subject_type} ${name}` : subject_type
