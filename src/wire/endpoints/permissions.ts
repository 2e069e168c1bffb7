/**
 * Who may call which endpoint of the management API: for each permission how far it reaches for a role, and what an entitlement
 * adds. Operators reach all organizations. Plain data, so that the web terminal shows what the gateway allows. The administration token has every permission.
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
  /** The reach of the entitlement `operator`; that of its role where left out. */
  operator?: 'installation'
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
/** Only operators, beside the administration token. */
const OPERATORS = { operator: 'installation' } as const

export const PERMISSIONS = {
  'session.read': OWN,
  'session.end': OWN,
  'passkey.read': OWN,
  'passkey.end': { ...OWN, recent: true },
  'passkey.create': { ...OWN, recent: true },

  'organizations.read': { ...EVERYONE, ...OPERATORS },
  'organizations.change': { ...ADMINISTRATORS, ...OPERATORS },
  'retention.read': { ...ADMINISTRATORS, ...OPERATORS },
  'retention.change': { ...OWNERS, ...OPERATORS, recent: true },
  'sso.read': { ...OWNERS, ...OPERATORS },
  'sso.change': { ...OWNERS, ...OPERATORS, recent: true },
  'users.read': { ...OWN_OR_ALL, ...OPERATORS },
  'users.create': { ...ADMINISTRATORS, ...OPERATORS },
  'users.change': { ...ADMINISTRATORS, ...OPERATORS },
  'users.disable': { ...ADMINISTRATORS, ...OPERATORS },
  'users.entitle': { ...OWNERS, ...OPERATORS, recent: true },
  'users.setup-link': { ...ADMINISTRATORS, ...OPERATORS, recent: true },
  'users.erase': { ...OWNERS, ...OPERATORS, recent: true },
  'users.export': { ...OWNERS, ...OPERATORS, recent: true },
  'groups.read': { ...ADMINISTRATORS, ...OPERATORS },
  'groups.change': { ...ADMINISTRATORS, ...OPERATORS },

  'keys.read': { ...OWN_OR_ALL, ...OPERATORS, entitlements: ['security'] },
  'keys.create': OWN_OR_ALL,
  'keys.change': OWN,
  'keys.rotate': OWN_OR_ALL,
  'keys.revoke': { ...OWN_OR_ALL, ...OPERATORS, entitlements: ['security'] },
  'playground.use': OWN,

  'models.read': { ...OWN_OR_ALL, ...OPERATORS },
  'models.grant': ADMINISTRATORS,
  'policies.read': { ...ADMINISTRATORS, ...OPERATORS, entitlements: ['security'] },
  'policies.test': { ...ADMINISTRATORS, ...OPERATORS, entitlements: ['security'] },
  'policies.change': { ...OWNERS, ...OPERATORS, entitlements: ['security'] },
  'tools.read': { ...ADMINISTRATORS, ...OPERATORS },
  'tools.change': { ...OWNERS, ...OPERATORS, entitlements: ['security'] },

  'integrations.read': { ...ADMINISTRATORS, ...OPERATORS },
  'integrations.change': { ...ADMINISTRATORS, recent: true },
  'integrations.approve': { ...ADMINISTRATORS, entitlements: ['security'] },
  'integrations.grant': ADMINISTRATORS,
  'connections.read': ADMINISTRATORS,
  'connections.create': { ...ADMINISTRATORS, recent: true },
  'connections.change': { ...ADMINISTRATORS, recent: true },
  'connections.remove': ADMINISTRATORS,
  'connections.connect': ADMINISTRATORS,
  'connections.share': ADMINISTRATORS,

  'agents.read': { ...ADMINISTRATORS, ...OPERATORS },
  'agents.create': ADMINISTRATORS,
  'agents.change': ADMINISTRATORS,
  'agents.remove': ADMINISTRATORS,
  'runs.read': { ...ADMINISTRATORS, ...OPERATORS },
  'runs.cancel': { ...ADMINISTRATORS, ...OPERATORS },
  'runs.rerun': ADMINISTRATORS,

  'credits.read': { ...ADMINISTRATORS, ...OPERATORS, entitlements: ['billing'] },
  'credits.grant': OPERATORS,
  'overview.read': { ...OWN_OR_ALL, ...OPERATORS },
  'calls.read': { ...OWN_OR_ALL, ...OPERATORS, entitlements: ['auditor'] },
  'usage.read': { ...OWN_OR_ALL, ...OPERATORS, entitlements: ['billing'] },
  'audit.read': { ...OWNERS, ...OPERATORS, entitlements: ['auditor'] },
  'audit.verify': { ...OWNERS, ...OPERATORS, entitlements: ['auditor'] },
  'audit.export': { ...OWNERS, ...OPERATORS, entitlements: ['auditor'], recent: true },
  'ledger.flush': { ...ADMINISTRATORS, ...OPERATORS },

  'installation.organizations': OPERATORS,
  'installation.audit': OPERATORS,
  'installation.audit-export': { ...OPERATORS, recent: true },
  'installation.catalogue': OPERATORS,
  'installation.catalogue-change': { ...OPERATORS, recent: true },
  'installation.vault': { ...OPERATORS, recent: true },
} satisfies Record<string, RoleReaches>

/** A right to call endpoints, as `resource.verb`. */
export type Permission = keyof typeof PERMISSIONS

/** The entitlement that reaches all organizations. Only the administration token gives and takes it. */
export const OPERATOR = 'operator'

/** The reach of a permission for a member of an organization; null where it has none. */
export function reachOf(
  permission: Permission,
  { role, entitlements }: { role: Role; entitlements: readonly string[] },
): Reach | null {
  const reaches: RoleReaches = PERMISSIONS[permission]
  if (reaches.operator !== undefined && entitlements.includes(OPERATOR)) return reaches.operator
  if (reaches.entitlements?.some((name) => entitlements.includes(name))) return 'organization'
  return reaches[role] ?? null
}

/** The reach of a permission in an organization: what a role or another entitlement gives is of its own organization only. */
export function reachIn(
  organizationId: string,
  permission: Permission,
  member: { organizationId: string; role: Role; entitlements: readonly string[] },
): Reach | null {
  const reach = reachOf(permission, member)
  return reach === 'installation' || organizationId === member.organizationId ? reach : null
}

/** Whether what a permission is for belongs to the deployment, and to no organization. */
export const isOfInstallation = (permission: Permission): boolean => permission.startsWith('installation.')

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
