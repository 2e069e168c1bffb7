import type { Compatibility } from '../wire/compatibility.ts'
import type { KeyScope } from '../wire/key-scopes.ts'
import type { IntegrationGrants } from './integration-rights.ts'
import type { ToolRights } from './tool-rights.ts'

export type Role = 'owner' | 'admin' | 'member'

export type Entitlement = 'personal_api_key_access' | 'auditor' | 'billing' | 'security' | 'operator'

/**
 * The credential of a caller: an API key, a session of the web terminal, a run of an agent (a schedule has no key), or the
 * signature of an agent's trigger.
 */
export type CallerCredential =
  | {
      kind: 'key'
      keyId: string
      scopes: readonly KeyScope[]
      compatibility: Compatibility
      /** Milliseconds since the epoch; null for a key without an end. */
      expiresAt: number | null
    }
  | { kind: 'session'; sessionId: string }
  | { kind: 'run'; runId: string }
  | { kind: 'trigger'; agentId: string; name: string }

/** A caller: a user with its rights, as Postgres had them at `epoch`. Plain data: it can be stored and sent to an object. */
export interface Principal {
  organizationId: string
  userId: string
  credential: CallerCredential
  role: Role
  groupIds: readonly string[]
  entitlements: readonly Entitlement[]
  models: ModelGrants
  tools: ToolRights
  integrations: IntegrationGrants
  /** Calls a minute; the deployment's default is already applied. */
  organizationLimitPerMinute: number
  userLimitPerMinute: number
  /** Objects that share the organization's ledger; `shardOf` gives the one that has the user's calls. */
  ledgerShards: number
  /** Revocation epoch of the organization at which this record was read. */
  epoch: number
}

interface ModelGrants {
  /** A grant on `*`. */
  all: boolean
  ids: ReadonlySet<string>
}

/** The key behind a principal; null for another credential. */
export const keyIdOf = ({ credential }: Pick<Principal, 'credential'>): string | null =>
  credential.kind === 'key' ? credential.keyId : null

/** The form of responses to a caller: that of its key. */
export const compatibilityOf = ({ credential }: Pick<Principal, 'credential'>): Compatibility =>
  credential.kind === 'key' ? credential.compatibility : 'headgate'

/** Whether a credential has a scope. Only keys have scopes: other credentials are limited by the rights of their user alone. */
export const hasScope = ({ credential }: Pick<Principal, 'credential'>, scope: KeyScope): boolean =>
  credential.kind !== 'key' || credential.scopes.includes(scope)

/** Expiry changes no row and no epoch, so it is checked on every call. @param now milliseconds since the epoch. */
export const isExpired = ({ credential }: Pick<Principal, 'credential'>, now: number): boolean =>
  credential.kind === 'key' && credential.expiresAt !== null && now >= credential.expiresAt

/**
 * The caller of the management API: the administration token, a session of the web terminal, or a visitor, who may call what
 * signs in.
 */
export type ManagementCaller = { kind: 'admin_token' } | SessionCaller | { kind: 'visitor' }

export interface SessionCaller {
  kind: 'session'
  sessionId: string
  principal: Principal
  /** Milliseconds since the epoch. */
  signedInAt: number
  /** When its user last proved who it is, to the gateway or to an identity provider. */
  authenticatedAt: number
  expiresAt: number
}
