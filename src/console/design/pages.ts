import type { Permission } from '../../wire/endpoints/permissions.ts'
import { type Me, may } from '../data/me.ts'
import { TEXT } from './text.ts'

/** Pages of the rail, in its groups: each with the permission that it needs, and the key that follows `g`. */
const GROUPS = [
  [
    { to: '/$slug', text: TEXT.pages.home, permission: 'session.read', key: 'h' },
    { to: '/$slug/calls', text: TEXT.pages.calls, permission: 'calls.read', key: 'c' },
    { to: '/$slug/playground', text: TEXT.pages.playground, permission: 'playground.use', key: 'p' },
  ],
  [
    { to: '/$slug/policies', text: TEXT.pages.policies, permission: 'policies.read', key: 'o' },
    { to: '/$slug/models', text: TEXT.pages.models, permission: 'models.read', key: 'm' },
  ],
  [{ to: '/$slug/settings/api', text: TEXT.pages.api, permission: 'keys.read', key: 'a' }],
] as const satisfies ReadonlyArray<
  ReadonlyArray<{ to: string; text: string; permission: Permission; key: string }>
>

export type PageLink = (typeof GROUPS)[number][number]

/** The groups with the pages that a user may open; what a role cannot read is not in the rail. */
export const groupsOf = (me: Me): PageLink[][] =>
  GROUPS.map((group) =>
    (group as readonly PageLink[]).filter(({ permission }) => may(me, permission)),
  ).filter((group) => group.length > 0)
