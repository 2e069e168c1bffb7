import { useQuery } from '@tanstack/react-query'
import { call } from './client.ts'
import { type Me, may } from './me.ts'

/** Names of users and labels of keys, by their ids. */
export type Names = ReadonlyMap<string, string>

/** The first users of the organization, where the user may read them. */
export const useUsers = (me: Me) =>
  useQuery({
    queryKey: ['users', me.organization.id],
    queryFn: () =>
      call('users.list', { path: { organizationId: me.organization.id }, query: { limit: 200 } }),
    enabled: may(me, 'users.read'),
    staleTime: 60_000,
  })

/** Names of users and keys that the user may read; ids stand for the others. */
export function useNames(me: Me): Names {
  const organizationId = me.organization.id
  const path = { organizationId }
  const users = useUsers(me)
  const keys = useQuery({
    queryKey: ['names-of-keys', organizationId],
    queryFn: () => call('keys.list', { path, query: { limit: 200 } }),
    enabled: may(me, 'keys.read'),
    staleTime: 60_000,
  })
  return new Map([
    ...(users.data?.data ?? []).map(({ id, name }) => [id, name] as const),
    ...(keys.data?.data ?? []).map(({ id, label }) => [id, label] as const),
  ])
}

/** The name of an id, or its beginning. */
export const nameOf = (names: Names, id: string | null): string =>
  id === null ? '' : (names.get(id) ?? id.slice(0, 8))
