import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { call } from '../../data/client.ts'
import { type Me, useSignedIn } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Head, Page } from '../../design/page.tsx'
import { Column, type ColumnHandle } from './column.tsx'
import styles from './playground.module.css'
import { SURFACES, type Surface } from './surfaces.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/$slug/playground')

const MOST_COLUMNS = 4

/** Models and surfaces side by side, called as a client calls them. */
export function PlaygroundPage() {
  const me = useSignedIn()
  const organizationId = me.organization.id
  const models = useQuery({
    queryKey: ['models-of-user', organizationId, me.user.id],
    queryFn: () =>
      call('organization-models.list', {
        path: { organizationId },
        query: { user_id: me.user.id, limit: 200 },
      }),
  })
  const ids = models.data?.data.map(({ id }) => id) ?? []
  return (
    <Page title={TEXT.title}>
      {models.error && <Failure error={models.error} retry={() => models.refetch()} />}
      {models.isPending && <Waiting />}
      {models.data && ids.length === 0 && <Notice title={TEXT.noModel} />}
      {ids.length > 0 && <Columns me={me} models={ids} />}
    </Page>
  )
}

interface ColumnStart {
  id: number
  surface: Surface
  model: string
}

function Columns({ me, models }: { me: Me; models: readonly string[] }) {
  const search = route.useSearch()
  const surface = SURFACES.find((each) => each === search.surface) ?? 'chat_completions'
  const model = models.find((each) => each === search.model) ?? models[0] ?? ''
  const [columns, setColumns] = useState<readonly ColumnStart[]>([{ id: 1, surface, model }])
  const handles = useRef(new Map<number, ColumnHandle>())
  const all = (act: keyof ColumnHandle) => {
    for (const handle of handles.current.values()) handle[act]()
  }
  useRunKeys(all)
  const add = () =>
    setColumns([
      ...columns,
      { id: Math.max(...columns.map(({ id }) => id)) + 1, surface, model: columns.at(-1)?.model ?? model },
    ])
  return (
    <>
      <Head
        acts={
          <>
            <Button onClick={add} disabled={columns.length >= MOST_COLUMNS}>
              {TEXT.addColumn}
            </Button>
            <Button look="main" onClick={() => all('run')}>
              {TEXT.runAll} <kbd>Ctrl Enter</kbd>
            </Button>
          </>
        }
      >
        <p className={styles.about}>{TEXT.about}</p>
      </Head>
      <div className={styles.columns} data-scrolls="">
        {columns.map((start) => (
          <Column
            key={start.id}
            {...{ me, models, start }}
            onRemove={
              columns.length > 1 ? () => setColumns(columns.filter(({ id }) => id !== start.id)) : undefined
            }
            register={(handle) => {
              if (handle === null) handles.current.delete(start.id)
              else handles.current.set(start.id, handle)
            }}
          />
        ))}
      </div>
    </>
  )
}

/** Ctrl Enter runs every column, Esc stops them, also while somebody types. */
function useRunKeys(all: (act: keyof ColumnHandle) => void): void {
  const latest = useRef(all)
  latest.current = all
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) latest.current('run')
      else if (event.key === 'Escape' && !document.querySelector('dialog[open]')) latest.current('stop')
      else return
      event.preventDefault()
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [])
}
