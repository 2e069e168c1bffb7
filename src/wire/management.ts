import * as z from 'zod'
import { compatibility } from './compatibility.ts'
import { KEY_SCOPES } from './key-scopes.ts'
import { instant, line, modelId, pageParameters, slug, text, uuid } from './management-fields.ts'

/** Organizations and what they have, in the management API: users, groups, keys, grants and credits. */

/** Sums of many amounts of this size still are safe integers. */
const LARGEST_AMOUNT = 1_000_000_000_000_000

/** Calls a minute; null takes the next wider default. */
export const rateLimit = z
  .int('must be a whole number')
  .min(1, 'must be at least 1')
  .max(1_000_000, 'must be at most 1000000')
  .nullable()

/** Objects that share the ledger of an organization. */
const ledgerShards = z
  .int('must be a whole number')
  .min(1, 'must be at least 1')
  .max(16, 'must be at most 16')

export const role = z.enum(['owner', 'admin', 'member'])
export const userKind = z.enum(['person', 'service'])
export const scope = z.enum(KEY_SCOPES)

export const organizationListQuery = z.strictObject({ ...pageParameters, slug: slug.optional() })

export const organizationCreation = z.strictObject({
  name: text(200),
  slug,
  rate_limit_per_minute: rateLimit.optional(),
  user_rate_limit_per_minute: rateLimit.optional(),
  ledger_shards: ledgerShards.optional(),
})

export const organizationUpdate = z.strictObject({
  name: text(200).optional(),
  rate_limit_per_minute: rateLimit.optional(),
  user_rate_limit_per_minute: rateLimit.optional(),
  ledger_shards: ledgerShards.optional(),
  disabled: z.boolean().optional(),
})

/** RFC 5321, 4.5.3.1: the part before the at sign has at most 64 octets. */
const email = z
  .email('must be an e-mail address')
  .max(254, 'must have at most 254 characters')
  .refine((address) => address.indexOf('@') <= 64, 'must have at most 64 characters before the @')
  .meta({ pattern: z.regexes.email.source.replace('^', '^(?=[^@]{1,64}@)') })
  .toLowerCase()

export const userListQuery = z.strictObject({ ...pageParameters, email: email.optional() })

export const userCreation = z.strictObject({
  email,
  name: text(200),
  /** A service account cannot sign in. */
  kind: userKind.default('person'),
  role: role.default('member'),
  rate_limit_per_minute: rateLimit.optional(),
})

export const userUpdate = z.strictObject({
  name: text(200).optional(),
  role: role.optional(),
  rate_limit_per_minute: rateLimit.optional(),
  disabled: z.boolean().optional(),
})

export const ENTITLEMENTS = ['personal_api_key_access', 'auditor', 'billing', 'security', 'operator'] as const

export const groupCreation = z.strictObject({ name: text(200) })

export const keyListQuery = z.strictObject({ ...pageParameters, user_id: uuid.optional() })

export const keyCreation = z.strictObject({
  /** The user of the session where left out; the administration token names one. */
  user_id: uuid.optional(),
  label: text(200),
  /** All scopes where left out. */
  scopes: z
    .array(scope)
    .min(1, 'must hold at least one scope')
    .refine((scopes) => new Set(scopes).size === scopes.length, 'must not repeat a scope')
    .meta({ uniqueItems: true })
    .default(['models', 'agents', 'mcp']),
  compatibility: compatibility.default('headgate'),
  expires_at: instant.nullable().default(null),
})

export const keyUpdate = z
  .strictObject({ label: text(200).optional(), compatibility: compatibility.optional() })
  .refine((values) => Object.keys(values).length > 0, 'must hold label or compatibility')
  .meta({ minProperties: 1 })

/** Seconds for which a key that is replaced may still work. */
const LONGEST_OVERLAP = 30 * 24 * 60 * 60

export const keyRotation = z.strictObject({
  /** A day where left out. */
  ends_in_seconds: z
    .int()
    .min(0)
    .max(LONGEST_OVERLAP)
    .default(24 * 60 * 60),
  /** As long a life as the other key was given, where left out. */
  expires_at: instant.nullable().optional(),
})

/** The models of one user where it is named. */
export const organizationModelsQuery = z.strictObject({ ...pageParameters, user_id: uuid.optional() })

export const grantListQuery = z.strictObject({ ...pageParameters, model_id: line(200).optional() })

const grantedModel = z.union([z.literal('*'), modelId], 'must be a model id or *')

export const grantCreation = z.discriminatedUnion(
  'subject_type',
  [
    z.strictObject({ subject_type: z.literal('organization'), model_id: grantedModel }),
    z.strictObject({ subject_type: z.literal('group'), subject_id: uuid, model_id: grantedModel }),
    z.strictObject({ subject_type: z.literal('user'), subject_id: uuid, model_id: grantedModel }),
    z.strictObject({ subject_type: z.literal('role'), subject_id: role, model_id: grantedModel }),
  ],
  'must be organization, group, user or role',
)

export const creditGrant = z.strictObject({
  /** Micro-credits, a millionth of a credit; negative takes away. */
  amount: z
    .int('must be a whole number of micro-credits')
    .min(-LARGEST_AMOUNT, `must be at least -${LARGEST_AMOUNT}`)
    .max(LARGEST_AMOUNT, `must be at most ${LARGEST_AMOUNT}`)
    .refine((amount) => amount !== 0, 'must not be 0')
    .meta({ not: { const: 0 } }),
  reason: text(500),
  /** Makes the grant repeatable: a second one under the same id changes nothing. */
  id: z
    .string()
    .regex(/^[A-Za-z0-9._:-]{1,100}$/, 'must be 1 to 100 of letters, digits and . _ : -')
    .optional(),
})

export type GrantCreation = z.infer<typeof grantCreation>
