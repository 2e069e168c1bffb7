import { useQuery } from '@tanstack/react-query'
import { createContext, useContext } from 'react'
import type { AnswerOf } from '../../client/management-client.ts'
import type { Permission } from '../../wire/endpoints/permissions.ts'
import { call } from './client.ts'

export type Me = AnswerOf<'me.show'>

const ME_QUERY = { queryKey: ['me'], queryFn: () => call('me.show', {}) }

/** The user of the session, its organization and its permissions. */
export const useMe = () => useQuery(ME_QUERY)

/** The user of a page inside of the frame, where somebody is signed in. */
export const SignedIn = createContext<Me | null>(null)

/** The user of the page, its organization and its permissions. */
export function useSignedIn(): Me {
  const me = useContext(SignedIn)
  if (me === null) throw new Error('A page of the console needs its frame.')
  return me
}

/** Whether the user has a permission, however far it reaches. */
export const may = (me: Me, permission: Permission): boolean => me.permissions[permission] !== undefined

/** Whether a permission reaches beyond what belongs to the user. */
export const reachesOthers = (me: Me, permission: Permission): boolean =>
  may(me, permission) && me.permissions[permission] !== 'own'
