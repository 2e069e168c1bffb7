/**
 * Who may call which endpoint of the management API: for each permission how far it reaches for a role, and what an entitlement
 * adds. Plain data, so that the web terminal shows what the gateway allows. The administration token has every permission.
 */

/** How far a permission reaches: what belongs to the user, to its organization, or to any organization. */
type Reach = 'own' | 'organization' | 'installation'

type Role = 'owner' | 'admin' | 'member'

/** The reach for each role; none where it is left out. */
export interface RoleReaches {
  member?: Reach
  admin?: Reach
  owner?: Reach
  /** Entitlements that give all of the organization. */
  entitlements?: readonly string[]
  /** Whether a session has to be signed in within the last minutes (`RECENT_SIGN_IN_MS`). */
  recent?: true
}

/** Age of a sign-in up to which a session may change owners and credentials, and export. */
export const RECENT_SIGN_IN_MS = 10 * 60_000

const EVERYONE = { member: 'organization', admin: 'organization', owner: 'organization' } as const
const ADMINISTRATORS = { admin: 'organization', owner: 'organization' } as const
const OWN = { member: 'own', admin: 'own', owner: 'own' } as const
const OWN_OR_ALL = { member: 'own', admin: 'organization', owner: 'organization' } as const
const OWNERS = { owner: 'organization' } as const
/** Only the administration token. */
const INSTALLATION = {} as const

export const PERMISSIONS = {
  'session.read': OWN,
  'session.end': OWN,
  'passkey.read': OWN,
  'passkey.end': { ...OWN, recent: true },
  'passkey.create': { ...OWN, recent: true },

  'organizations.read': EVERYONE,
  'organizations.change': ADMINISTRATORS,
  'sso.read': OWNERS,
  'sso.change': { ...OWNERS, recent: true },
  'users.read': OWN_OR_ALL,
  'users.create': ADMINISTRATORS,
  'users.change': ADMINISTRATORS,
  'users.disable': ADMINISTRATORS,
  'users.entitle': { ...OWNERS, recent: true },
  'users.setup-link': { ...ADMINISTRATORS, recent: true },
  'groups.read': ADMINISTRATORS,
  'groups.change': ADMINISTRATORS,

  'keys.read': { ...OWN_OR_ALL, entitlements: ['security'] },
  'keys.create': OWN_OR_ALL,
  'keys.change': OWN,
  'keys.rotate': OWN_OR_ALL,
  'keys.revoke': { ...OWN_OR_ALL, entitlements: ['security'] },
  'playground.use': OWN,

  'models.read': OWN_OR_ALL,
  'models.grant': ADMINISTRATORS,
  'policies.read': { ...ADMINISTRATORS, entitlements: ['security'] },
  'policies.test': { ...ADMINISTRATORS, entitlements: ['security'] },
  'policies.change': { ...OWNERS, entitlements: ['security'] },
  'tools.read': ADMINISTRATORS,
  'tools.change': { ...OWNERS, entitlements: ['security'] },

  'integrations.read': ADMINISTRATORS,
  'integrations.change': { ...ADMINISTRATORS, recent: true },
  'integrations.approve': { ...ADMINISTRATORS, entitlements: ['security'] },
  'integrations.grant': ADMINISTRATORS,
  'connections.read': ADMINISTRATORS,
  'connections.create': { ...ADMINISTRATORS, recent: true },
  'connections.change': { ...ADMINISTRATORS, recent: true },
  'connections.remove': ADMINISTRATORS,
  'connections.connect': ADMINISTRATORS,
  'connections.share': ADMINISTRATORS,

  'agents.read': ADMINISTRATORS,
  'agents.create': ADMINISTRATORS,
  'agents.change': ADMINISTRATORS,
  'agents.remove': ADMINISTRATORS,
  'runs.read': ADMINISTRATORS,
  'runs.cancel': ADMINISTRATORS,
  'runs.rerun': ADMINISTRATORS,

  'credits.read': { ...ADMINISTRATORS, entitlements: ['billing'] },
  'credits.grant': INSTALLATION,
  'overview.read': OWN_OR_ALL,
  'calls.read': { ...OWN_OR_ALL, entitlements: ['auditor'] },
  'usage.read': { ...OWN_OR_ALL, entitlements: ['billing'] },
  'audit.read': { ...OWNERS, entitlements: ['auditor'] },
  'audit.verify': { ...OWNERS, entitlements: ['auditor'] },
  'audit.export': { ...OWNERS, entitlements: ['auditor'], recent: true },
  'ledger.flush': ADMINISTRATORS,

  'installation.organizations': INSTALLATION,
  'installation.audit': INSTALLATION,
  'installation.catalogue': INSTALLATION,
  'installation.vault': INSTALLATION,
} satisfies Record<string, RoleReaches>

/** A right to call endpoints, as `resource.verb`. */
export type Permission = keyof typeof PERMISSIONS

/** The reach of a permission for a member of an organization; null where it has none. */
export function reachOf(
  permission: Permission,
  { role, entitlements }: { role: Role; entitlements: readonly string[] },
): Reach | null {
  const reaches: RoleReaches = PERMISSIONS[permission]
  if (reaches.entitlements?.some((name) => entitlements.includes(name))) return 'organization'
  return reaches[role] ?? null
}

/** Whether a permission needs a recent sign-in. */
export const needsRecentSignIn = (permission: Permission): boolean =>
  (PERMISSIONS[permission] as RoleReaches).recent === true

/** The reach of every permission that a member has. */
export const permissionsOf = (member: {
  role: Role
  entitlements: readonly string[]
}): Partial<Record<Permission, Reach>> =>
  Object.fromEntries(
    (Object.keys(PERMISSIONS) as Permission[]).flatMap((permission) => {
      const reach = reachOf(permission, member)
      return reach === null ? [] : [[permission, reach]]
    }),
  )
