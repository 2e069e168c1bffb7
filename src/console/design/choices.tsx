import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { call } from '../data/client.ts'
import { forgetDrafts } from '../data/drafts.ts'
import { isLocalSession } from '../data/local-session.ts'
import type { Me } from '../data/me.ts'
import { useShortcutsOn } from '../data/shortcut.ts'
import { useZone } from '../data/zone.ts'
import { Button } from './button.tsx'
import styles from './shell.module.css'
import { TEXT } from './text.ts'
import { applyTheme, THEMES, type Theme, useTheme } from './theme.ts'

/** What a person chooses for every page: theme, zone of times, keys, demo caller, signing out. */
export function Choices({ me }: { me: Me }) {
  const theme = useTheme()
  const [zone, chooseZone] = useZone()
  const [areKeysOn, switchKeys] = useShortcutsOn()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const signOut = useMutation({
    mutationFn: () => call('me.sign-out', {}),
    onSettled: () => {
      queries.clear()
      forgetDrafts()
      navigate({ to: '/sign-in' })
    },
  })
  return (
    <>
      <DemoCallers me={me} />
      <label className={styles.choice}>
        {TEXT.zone}
        <select
          value={zone}
          onChange={({ target }) => chooseZone(target.value === 'local' ? 'local' : 'utc')}
        >
          <option value="utc">{TEXT.zones.utc}</option>
          <option value="local">{TEXT.zones.local}</option>
        </select>
      </label>
      <label className={styles.choice}>
        {TEXT.theme}
        <select value={theme} onChange={({ target }) => applyTheme(target.value as Theme)}>
          {THEMES.map((each) => (
            <option key={each} value={each}>
              {TEXT.themes[each]}
            </option>
          ))}
        </select>
      </label>
      <label className={styles.choice}>
        {TEXT.letterKeys}
        <input type="checkbox" checked={areKeysOn} onChange={({ target }) => switchKeys(target.checked)} />
      </label>
      <Button look="plain" onClick={() => signOut.mutate()} disabled={signOut.isPending}>
        {TEXT.signOut}
      </Button>
    </>
  )
}

/** Members that a session of a local system can become; nothing for other sessions. */
function DemoCallers({ me }: { me: Me }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const members = useQuery({
    queryKey: ['local-members', me.session.id],
    queryFn: () => call('local-members.list', {}),
    enabled: isLocalSession(),
    retry: false,
  })
  const become = useMutation({
    mutationFn: (body: { organization_id: string; user_id: string }) =>
      call('local-members.switch', { body }),
    onSuccess: async ({ organization }) => {
      queries.clear()
      await navigate({ to: '/$slug', params: { slug: organization.slug } })
    },
  })
  if (!members.data) return null
  const listed = members.data.data
  return (
    <label className={styles.choice}>
      {TEXT.caller}
      <select
        value={me.user.id}
        disabled={become.isPending}
        onChange={({ target }) => {
          const chosen = listed.find(({ user }) => user.id === target.value)
          if (chosen) become.mutate({ organization_id: chosen.organization.id, user_id: chosen.user.id })
        }}
      >
        {listed.map(({ user, organization, role }) => (
          <option key={user.id} value={user.id}>
            {user.name} · {organization.name} · {role}
          </option>
        ))}
      </select>
    </label>
  )
}
