/** Every caller, whatever it came with, is one of these. Rights are read at call time from the user behind it. */
export type Role = 'owner' | 'admin' | 'member'

export type Entitlement = 'personal_api_key_access'

/** What a key may be used for. A key without a scope is refused on the surfaces of that scope with 403. */
export const KEY_SCOPES = ['models', 'agents', 'mcp'] as const
export type KeyScope = (typeof KEY_SCOPES)[number]

/** The user behind an API key, with the rights as Postgres had them at `epoch`. */
export interface Principal {
  organizationId: string
  userId: string
  keyId: string
  role: Role
  groupIds: readonly string[]
  entitlements: readonly Entitlement[]
  scopes: readonly KeyScope[]
  models: ModelGrants
  /** Calls a minute; the deployment's default is already applied. */
  organizationLimitPerMinute: number
  userLimitPerMinute: number
  /** Revocation epoch of the organization when this record was read. */
  epoch: number
}

export interface ModelGrants {
  /** A grant on `*`. */
  all: boolean
  ids: ReadonlySet<string>
}

/** Who administers: the deployment's token now, people's sessions later. */
export interface Administrator {
  kind: 'admin_token'
  /** Null: every organization of the deployment. */
  organizationId: string | null
  actor: string
}

/** The organization id under which changes to the deployment itself (providers, models) are audited. */
export const DEPLOYMENT_ORGANIZATION_ID = '00000000-0000-0000-0000-000000000000'
