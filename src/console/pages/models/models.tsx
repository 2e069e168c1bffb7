import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import type { AnswerOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { numberText, priceText } from '../../data/format.ts'
import { type Me, may, reachesOthers, useSignedIn } from '../../data/me.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Page } from '../../design/page.tsx'
import { Section } from '../../design/section.tsx'
import { Table } from '../../design/table.tsx'
import { ModelGrants } from './model-grants.tsx'
import { ModelRoutes } from './model-routes.tsx'
import styles from './models.module.css'
import { TEXT } from './text.ts'

export type Model = AnswerOf<'organization-models.list'>['data'][number]

const route = getRouteApi('/$slug/models')

/** Which models there are, at what price, and why the user may call them. */
export function ModelsPage() {
  const me = useSignedIn()
  return (
    <Page title={TEXT.title}>
      <Models me={me} />
    </Page>
  )
}

function Models({ me }: { me: Me }) {
  const isOfAll = reachesOthers(me, 'models.read')
  const [text, setText] = useState('')
  const { model: chosen } = route.useSearch()
  const models = useModels(me, isOfAll)
  const field = useRef<HTMLInputElement>(null)
  useShortcut('/', () => field.current?.focus())
  const failure = models.error && (
    <Failure error={models.error} retry={() => models.refetch()} shownSince={models.dataUpdatedAt} />
  )
  if (!models.data) return failure ?? <Waiting />
  const rows = models.data.pages.flatMap(({ data }) => data)
  if (rows.length === 0) {
    return (
      <Notice title={TEXT.empty}>
        <p>{may(me, 'models.grant') ? TEXT.emptyAdmin : TEXT.emptyHint}</p>
      </Notice>
    )
  }
  const shown = rows.filter(({ id }) => id.toLowerCase().includes(text.trim().toLowerCase()))
  const opened = rows.find(({ id }) => id === chosen)
  return (
    <>
      {failure}
      {opened && <ModelGrants me={me} model={opened} />}
      {opened && may(me, 'installation.catalogue') && <ModelRoutes me={me} modelId={opened.id} />}
      <Section title={isOfAll ? TEXT.all : TEXT.caption} note={TEXT.perMillion}>
        <input
          ref={field}
          type="search"
          className={styles.filter}
          value={text}
          onChange={({ target }) => setText(target.value)}
          aria-label={TEXT.filter}
          placeholder={TEXT.filter}
        />
        {shown.length === 0 ? (
          <p className={styles.none}>{TEXT.noMatch}</p>
        ) : (
          <ModelTable me={me} rows={shown} />
        )}
        {models.hasNextPage && <Button onClick={() => models.fetchNextPage()}>{TEXT.more}</Button>}
      </Section>
    </>
  )
}

const useModels = (me: Me, isOfAll: boolean) =>
  useInfiniteQuery({
    queryKey: ['models', me.organization.id, isOfAll ? null : me.user.id],
    queryFn: ({ pageParam }) =>
      call('organization-models.list', {
        path: { organizationId: me.organization.id },
        query: {
          ...(!isOfAll && { user_id: me.user.id }),
          limit: 200,
          ...(pageParam !== null && { cursor: pageParam }),
        },
      }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
  })

function ModelTable({ me, rows }: { me: Me; rows: readonly Model[] }) {
  const { heads } = TEXT
  const navigate = useNavigate()
  const { slug } = me.organization
  const { model: chosen } = route.useSearch()
  return (
    <Table
      caption={TEXT.title}
      stack="plain"
      heads={[
        { text: heads.model, width: 220 },
        { text: heads.context, isFigure: true, width: 92 },
        { text: heads.output, isFigure: true, width: 84 },
        { text: heads.input, isFigure: true, width: 72 },
        { text: heads.cached, isFigure: true, width: 92 },
        { text: heads.written, isFigure: true, width: 92 },
        { text: heads.capabilities },
        { text: heads.granted, width: 180 },
      ]}
    >
      {rows.map((model) => (
        <tr key={model.id} aria-selected={model.id === chosen}>
          <td data-place="a2">
            <button
              type="button"
              className={styles.name}
              onClick={() => navigate({ to: '/$slug/models', params: { slug }, search: { model: model.id } })}
            >
              {model.id}
            </button>
          </td>
          <td data-figure="">{numberText(model.context_window)}</td>
          <td data-figure="">{numberText(model.max_output_tokens)}</td>
          <td data-figure="" data-place="a3">
            {priceText(model.prices.input)}
          </td>
          <td data-figure="">{priceText(model.prices.cache_read)}</td>
          <td data-figure="" data-place="b3">
            {priceText(model.prices.output)}
          </td>
          <td title={model.capabilities.join(', ')}>{model.capabilities.join(', ')}</td>
          <td data-place="b2">{model.granted_by.map(grantText).join(', ')}</td>
        </tr>
      ))}
    </Table>
  )
}

/** A right to a model in words, such as `group analysts`. */
export const grantText = ({
  subject_type: type,
  subject_id: id,
  name,
}: Model['granted_by'][number]): string =>
  type === 'organization' ? TEXT.subjects.organization : `${TEXT.subjects[type]} ${name ?? id}`

/** A link to the playground with a model. */
export const TryLink = ({ slug, model }: { slug: string; model: string }) => (
  <Link to="/$slug/playground" params={{ slug }} search={{ model }}>
    {TEXT.tryIt}
  </Link>
)
