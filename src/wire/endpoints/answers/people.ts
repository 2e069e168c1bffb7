import * as z from 'zod'
import { compatibility } from '../../compatibility.ts'
import { ENTITLEMENTS, rateLimit, role, scope, userKind } from '../../management.ts'
import { uuid } from '../../management-fields.ts'
import { RETAINED, type Retained, retentionSettings } from '../../retention.ts'
import { count, deleted, list, time } from './parts.ts'

/** Schemas of the endpoints for organizations, users, groups, keys and rights to use models. */

const organization = z
  .strictObject({
    id: uuid,
    name: z.string(),
    slug: z.string(),
    rate_limit_per_minute: rateLimit,
    user_rate_limit_per_minute: rateLimit,
    ledger_shards: count,
    disabled_at: time.nullable(),
    created_at: time,
  })
  .meta({ id: 'Organization' })

const identityProvider = z
  .strictObject({
    issuer: z.string().nullable(),
    client_id: z.string().nullable(),
    client_secret_set: z.boolean(),
    /** The address that the provider has to know: it sends browsers back there. */
    redirect_uri: z.string(),
    created_at: time.nullable(),
    updated_at: time.nullable(),
  })
  .meta({ id: 'IdentityProvider' })

const user = z
  .strictObject({
    id: uuid,
    email: z.string(),
    name: z.string(),
    kind: userKind,
    role,
    rate_limit_per_minute: rateLimit,
    entitlements: z.array(z.enum(ENTITLEMENTS)),
    group_ids: z.array(uuid),
    disabled_at: time.nullable(),
    created_at: time,
  })
  .meta({ id: 'User' })

const group = z
  .strictObject({ id: uuid, name: z.string(), members: count, created_at: time })
  .meta({ id: 'Group' })

const key = z
  .strictObject({
    id: z.string(),
    user_id: uuid,
    label: z.string(),
    scopes: z.array(scope),
    compatibility,
    expires_at: time.nullable(),
    revoked_at: time.nullable(),
    /** The key that was made in its place. */
    replaced_by: z.string().nullable(),
    last_used_at: time.nullable(),
    created_at: time,
  })
  .meta({ id: 'Key' })

const grantMembers = {
  id: uuid,
  subject_type: z.enum(['organization', 'group', 'user', 'role']),
  subject_id: z.string(),
  model_id: z.string(),
}

const grant = z.strictObject({ ...grantMembers, created_at: time }).meta({ id: 'Grant' })

/** A right to a model with the name of its group or user; of one model, the first 20. */
export const namedGrant = z.strictObject({ ...grantMembers, name: z.string().nullable() })

const keptDays = z.strictObject(
  Object.fromEntries(RETAINED.map((kind) => [kind, count])) as Record<Retained, typeof count>,
)

const retention = retentionSettings
  .extend({
    /** Days that hold where a member is null; 0 keeps for ever. */
    defaults: keptDays,
  })
  .meta({ id: 'Retention' })

const erasure = z
  .strictObject({
    id: z.string(),
    user_id: uuid,
    /** `admin_token`, or a user's id. */
    requested_by: z.string(),
    status: z.enum(['in_progress', 'done']),
    /** What it does now; `done` at its end. */
    step: z.string(),
    /** Rows that were erased, by what they were. */
    counts: z.record(z.string(), count),
    /** The kind of the error for which a step is repeated; null without one. */
    failure: z.string().nullable(),
    created_at: time,
    finished_at: time.nullable(),
  })
  .meta({ id: 'Erasure' })

/** A line of an export: a row, with what it is of. */
const exportedPart = z
  .strictObject({ type: z.string(), data: z.record(z.string(), z.unknown()) })
  .meta({ id: 'ExportedPart' })

export const peopleAnswers = {
  'organizations.list': list(organization),
  'organizations.create': organization,
  'organizations.show': organization,
  'organizations.change': organization,
  'retention.show': retention,
  'retention.replace': retention,
  'identity-provider.show': identityProvider,
  'identity-provider.replace': identityProvider,
  'identity-provider.remove': deleted,
  'users.list': list(user),
  'users.create': user,
  'users.show': user,
  'users.change': user,
  'users.disable': user,
  'users.entitle': user,
  'users.withdraw': user,
  'users.export': exportedPart,
  'erasures.create': erasure,
  'erasures.list': list(erasure),
  'erasures.show': erasure,
  'groups.list': list(group),
  'groups.create': group,
  'groups.show': group,
  'groups.remove': deleted,
  'groups.members': list(user),
  'groups.add': user,
  'groups.withdraw': user,
  'keys.list': list(key),
  'keys.create': key.extend({ key: z.string() }),
  'keys.show': key,
  'keys.change': key,
  'keys.rotate': key.extend({ key: z.string(), replaces: z.string() }),
  'keys.revoke': key,
  'playground-keys.create': z
    .strictObject({ id: z.string(), key: z.string(), scopes: z.array(scope), expires_at: time })
    .meta({ id: 'PlaygroundKey' }),
  'grants.list': list(grant),
  'grants.create': grant,
  'grants.remove': deleted,
}
