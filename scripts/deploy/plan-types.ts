import type { DomainOwner, ScriptState } from './cloudflare-api.ts'
import type { DeploymentRecord } from './lease.ts'
import type { SecretSource } from './secrets.ts'

/** A migration of the schema that the database does not have. */
export interface PendingMigration {
  name: string
  /** Whether it drops or renames something that the running version may use. */
  removes: boolean
}

export interface DatabaseState extends DeploymentRecord {
  /** False: it will be created. */
  exists: boolean
  pending: PendingMigration[]
  /** Whether it has rows that only the KEY_PEPPERS and VAULT_KEYS of an earlier deployment can read or check. */
  hasProtectedData: boolean
}

/** What was read, without any value of a secret. */
export interface AccountState {
  accountName: string
  database: DatabaseState
  redis: { exists: boolean }
  bucket: { exists: boolean }
  tools: ScriptState | null
  gateway: ScriptState | null
  /** Custom domains of the account, with the Worker that has each. */
  hosts: DomainOwner[]
}

/** Names of the secrets whose values are known, with where each comes from. */
export type KnownSecrets = Readonly<Record<string, SecretSource>>

/** The steps in the order in which they are applied. */
export const STEP_NAMES = [
  'database',
  'redis',
  'restore point',
  'migrations',
  'bucket',
  'tools',
  'secrets',
  'gateway',
  'triggers',
  'smoke test',
] as const
export type StepName = (typeof STEP_NAMES)[number]

export interface PlannedStep {
  step: StepName
  /** Of the thing that it concerns. */
  name: string
  action: 'create' | 'change' | 'same'
  details: string[]
  /** Why a failed test does not undo it; null if it does, or if there is nothing to undo. */
  irreversible: string | null
}

/** How a script gets to its new version. */
export type ScriptChange =
  | { kind: 'none' }
  /** A plain deployment: of a new script, or with other classes. It takes all traffic at once. */
  | { kind: 'deploy'; isNew: boolean; base: string | null }
  /** A version beside the one that serves. `versionId`: one with the tag that an earlier run has uploaded. */
  | { kind: 'version'; versionId: string | null; base: string }

export interface DeploymentPlan {
  /** Of what both scripts will be: their code, static files and configuration. */
  tags: { tools: string; gateway: string }
  steps: PlannedStep[]
  /** Reasons for which it cannot be applied. */
  problems: string[]
  /** Secrets that the upload of the gateway carries. */
  secrets: string[]
  /** Those of them that replace a value of the script. */
  rotated: string[]
  tools: ScriptChange
  gateway: ScriptChange
  /** Branch of Neon to return to, to whose name the time is added; null: none is made. */
  restorePoint: string | null
}

export const plannedStep = (
  name: StepName,
  subject: string,
  action: PlannedStep['action'],
  details: string[] = [],
  irreversible: string | null = null,
): PlannedStep => ({ step: name, name: subject, action, details, irreversible })
