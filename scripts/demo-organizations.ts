import { createHash } from 'node:crypto'
import type { Entitlement, Role } from '../src/identity/principal.ts'
import type { DemoKeyName } from './local-secrets.ts'

/** A caller of the demo data: a user with a membership and one key. */
export interface DemoCaller {
  name: DemoKeyName
  organization: DemoOrganization['slug']
  role: Role
  /** Calls a minute; null takes the organization's. */
  rateLimitPerMinute: number | null
  entitlements: Entitlement[]
  /** Whether the user is in the group that may use every model. */
  everyone: boolean
  keyRevoked: boolean
}

export interface DemoOrganization {
  slug: 'acme' | 'other' | 'broke'
  name: string
  /** Micro-credits that it starts with. */
  credits: number
}

export const DEMO_ORGANIZATIONS: readonly DemoOrganization[] = [
  { slug: 'acme', name: 'Acme', credits: 1_000_000_000 },
  { slug: 'other', name: 'Other', credits: 1_000_000_000 },
  { slug: 'broke', name: 'Broke', credits: 0 },
]

/** The group of each organization whose members may use every model. */
export const EVERYONE = 'everyone'

const caller = (name: DemoKeyName, differences: Partial<DemoCaller> = {}): DemoCaller => ({
  name,
  organization: 'acme',
  role: 'member',
  rateLimitPerMinute: null,
  entitlements: ['personal_api_key_access'],
  everyone: true,
  keyRevoked: false,
  ...differences,
})

export const DEMO_CALLERS: readonly DemoCaller[] = [
  caller('owner', { role: 'owner' }),
  caller('member'),
  caller('restricted', { everyone: false }),
  caller('limited', { rateLimitPerMinute: 2 }),
  caller('revoked', { keyRevoked: true }),
  caller('no_mcp', { entitlements: [] }),
  caller('broke', { organization: 'broke' }),
  caller('other_org', { organization: 'other' }),
]

/** Derives an id from a name, the same on every machine, so that seeding twice finds the rows of the first time. */
export function demoId(name: string): string {
  const hex = createHash('sha256').update(`headgate demo ${name}`).digest('hex')
  // The version and variant digits of a UUID made from a hash (RFC 9562, version 8).
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`]
  return [...parts, hex.slice(20, 32)].join('-')
}

export const organizationId = (slug: DemoOrganization['slug']): string => demoId(`organization ${slug}`)
export const userId = (name: DemoKeyName): string => demoId(`user ${name}`)
export const groupId = (slug: DemoOrganization['slug']): string => demoId(`group ${slug} ${EVERYONE}`)
