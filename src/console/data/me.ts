import { useQuery } from '@tanstack/react-query'
import type { AnswerOf } from '../../client/management-client.ts'
import type { Permission } from '../../wire/endpoints/permissions.ts'
import { call } from './client.ts'

export type Me = AnswerOf<'me.show'>

const ME_QUERY = { queryKey: ['me'], queryFn: () => call('me.show', {}) }

/** The user of the session, its organization and its permissions. */
export const useMe = () => useQuery(ME_QUERY)

/** Whether the user has a permission, however far it reaches. */
export const may = (me: Me, permission: Permission): boolean => me.permissions[permission] !== undefined
