import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useRouter } from '@tanstack/react-router'
import { createContext, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import type { AnswerOf } from '../../client/management-client.ts'
import { call } from '../data/client.ts'
import { idText } from '../data/format.ts'
import type { Me } from '../data/me.ts'
import { useSettled } from '../data/settled.ts'
import { RefusalNotice } from './notice.tsx'
import type { PageLink } from './pages.ts'
import styles from './palette.module.css'
import { TEXT } from './text.ts'

/** Opens the palette, from the bar of a page. */
export const OpenPalette = createContext<() => void>(() => undefined)

type Found = AnswerOf<'find.list'>['data'][number]

interface Entry {
  id: string
  label: string
  note: string
  /** Path and query below the organization. */
  path: string
}

/** Where each kind of thing that is found is shown; kinds without a page are left out. */
const PATH_OF: Partial<Record<Found['kind'], (id: string) => string>> = {
  call: (id) => `/calls/${id}`,
  response: (id) => `/calls?q=response:${id}`,
  run: (id) => `/calls?q=run:${id}`,
  key: (id) => `/settings/api?key=${id}`,
  user: (id) => `/calls?q=user:${id}`,
  group: (id) => `/calls?q=group:${id}`,
  connection: (id) => `/calls?q=connection:${id}`,
  model: (id) => `/models?model=${encodeURIComponent(id)}`,
  policy: (id) => `/policies/${id}`,
}

const SHORTEST_SEARCH = 2

/** Finds a page, or what a pasted id or a name is of: arrows choose, Enter goes there. */
export function Palette({ me, pages, onClose }: { me: Me; pages: readonly PageLink[]; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const router = useRouter()
  const { entries, error } = useEntries(me, pages, text.trim())
  useEffect(() => dialog.current?.showModal(), [])
  const go = (entry: Entry | undefined) => {
    if (entry === undefined) return
    onClose()
    router.history.push(`/console/${me.organization.slug}${entry.path}`)
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter') go(entries[chosen])
    else if (step !== undefined) setChosen((chosen + step + entries.length) % Math.max(1, entries.length))
    else return
    event.preventDefault()
  }
  return (
    <dialog className={styles.palette} ref={dialog} onClose={onClose} aria-label={TEXT.find}>
      <input
        role="combobox"
        aria-expanded={entries.length > 0}
        aria-controls="found"
        aria-activedescendant={entries[chosen] && `found-${chosen}`}
        aria-label={TEXT.find}
        placeholder={TEXT.find}
        value={text}
        onChange={({ target }) => {
          setText(target.value)
          setChosen(0)
        }}
        onKeyDown={press}
        autoFocus
      />
      <div role="listbox" id="found" aria-label={TEXT.foundThings}>
        {entries.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys
          <div
            key={entry.id}
            id={`found-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => go(entry)}
          >
            <span>{entry.label}</span>
            <span>{entry.note}</span>
          </div>
        ))}
      </div>
      {error !== null && <RefusalNotice error={error} />}
      {error === null && entries.length === 0 && <p role="status">{TEXT.nothingFound}</p>}
    </dialog>
  )
}

function useEntries(me: Me, pages: readonly PageLink[], text: string) {
  const searched = useSettled(text, 150)
  const found = useQuery({
    queryKey: ['find', me.organization.id, searched],
    queryFn: () =>
      call('find.list', { path: { organizationId: me.organization.id }, query: { q: searched } }),
    enabled: searched.length >= SHORTEST_SEARCH,
    placeholderData: keepPreviousData,
  })
  const ofPages: Entry[] = pages
    .filter((page) => page.text.toLowerCase().includes(text.toLowerCase()))
    .map((page) => ({
      id: page.to,
      label: page.text,
      note: `g ${page.key}`,
      path: page.to.slice('/$slug'.length),
    }))
  const things = text.length < SHORTEST_SEARCH ? [] : (found.data?.data ?? [])
  const ofThings = things.flatMap(({ kind, id, label }): Entry[] => {
    const path = PATH_OF[kind]?.(id)
    const note = label === id ? TEXT.kinds[kind] : `${TEXT.kinds[kind]} ${idText(id)}`
    return path === undefined ? [] : [{ id: `${kind} ${id}`, label, note, path }]
  })
  return { entries: [...ofPages, ...ofThings], error: found.error }
}
