import { z } from 'zod'
import { compatibility } from './compatibility.ts'
import { cursorParameter, isPlainText, jsonCursor } from './page-cursor.ts'

/**
 * Bodies and queries of the management API. Objects are strict: a member that is not listed is an error that names
 * it, so that a misspelt limit is never silently no limit. Members left out of an update keep their value.
 */

// Lower case only: an organization's id is also the name of its ledger, so it needs one spelling.
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}$/

/** Postgres `integer`. */
const LARGEST_INTEGER = 2_147_483_647
/** Sums of many amounts of this size still are safe integers. */
const LARGEST_AMOUNT = 1_000_000_000_000_000

/** Whether text has the form of an id of an organization, user, group, grant or provider. */
export const isUuid = (text: string) => UUID.test(text)
export const isModelId = (text: string) => MODEL_ID.test(text) && !text.startsWith('agent/')

/** Trimmed text that Postgres can store, up to so many characters. */
export const text = (longest: number) =>
  z
    .string()
    .trim()
    .min(1, 'must not be empty')
    .max(longest, `must have at most ${longest} characters`)
    .refine(isPlainText, 'must not hold control characters')

const slug = z
  .string()
  .regex(
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    'must be lowercase letters, digits and inner hyphens, up to 63',
  )

export const uuid = z.string().toLowerCase().regex(UUID, 'must be a UUID')

export const modelId = z
  .string()
  .refine(isModelId, 'must be a model id: letters, digits and . _ : @ / -, not beginning with agent/')

/** Calls a minute; null takes the next wider default. */
const rateLimit = z
  .int('must be a whole number')
  .min(1, 'must be at least 1')
  .max(1_000_000, 'must be at most 1000000')
  .nullable()

/** Objects that share the ledger of an organization. */
const ledgerShards = z
  .int('must be a whole number')
  .min(1, 'must be at least 1')
  .max(16, 'must be at most 16')

const role = z.enum(['owner', 'admin', 'member'])
const scope = z.enum(['models', 'agents', 'mcp'])

/** `2026-11-21` (midnight UTC) or `2026-11-21T10:00:00Z`. */
const instant = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], 'must be a date or an ISO 8601 time with a zone')
  .transform((value) => new Date(value))

export const pageParameters = {
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(200, 'must be at most 200')
    .default(50),
  cursor: cursorParameter.optional(),
}

const period = { from: instant.optional(), to: instant.optional() }

export const pageQuery = z.strictObject(pageParameters)

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

const email = z.email('must be an e-mail address').max(254, 'must have at most 254 characters').toLowerCase()

export const userListQuery = z.strictObject({ ...pageParameters, email: email.optional() })

export const userCreation = z.strictObject({
  email,
  name: text(200),
  role: role.default('member'),
  rate_limit_per_minute: rateLimit.optional(),
})

export const userUpdate = z.strictObject({
  name: text(200).optional(),
  role: role.optional(),
  rate_limit_per_minute: rateLimit.optional(),
  disabled: z.boolean().optional(),
})

export const ENTITLEMENTS = ['personal_api_key_access'] as const

export const groupCreation = z.strictObject({ name: text(200) })

export const keyListQuery = z.strictObject({ ...pageParameters, user_id: uuid.optional() })

export const keyCreation = z.strictObject({
  user_id: uuid,
  label: text(200),
  /** All scopes where left out. */
  scopes: z
    .array(scope)
    .min(1, 'must hold at least one scope')
    .refine((scopes) => new Set(scopes).size === scopes.length, 'must not repeat a scope')
    .default(['models', 'agents', 'mcp']),
  compatibility: compatibility.default('headgate'),
  expires_at: instant.nullable().default(null),
})

export const keyUpdate = z.strictObject({ compatibility })

export const grantListQuery = z.strictObject({ ...pageParameters, model_id: z.string().max(200).optional() })

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
    .refine((amount) => amount !== 0, 'must not be 0'),
  reason: text(500),
  /** Makes the grant repeatable: a second one under the same id changes nothing. */
  id: z
    .string()
    .regex(/^[A-Za-z0-9._:-]{1,100}$/, 'must be 1 to 100 of letters, digits and . _ : -')
    .optional(),
})

export const auditQuery = z.strictObject({
  ...pageParameters,
  ...period,
  user_id: text(100).optional(),
  key_id: text(100).optional(),
  model: text(200).optional(),
  status: z.coerce.number('must be a number').int().min(0).max(999).optional(),
  surface: text(50).optional(),
})

export const auditVerificationQuery = z.strictObject({
  after_sequence: z.coerce.number('must be a number').int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
  shard: z.coerce.number('must be a number').int().min(0).max(LARGEST_INTEGER).default(0),
  limit: z.coerce.number('must be a number').int().min(1).max(1_000).default(500),
})

/** An organization, known or not: chains of one that was deleted must verify, too. */
const ofOrganization = { organization_id: uuid.optional() }

/** The deployment's own chain where no organization is named. */
export const deploymentVerificationQuery = auditVerificationQuery.extend(ofOrganization)
export const headsQuery = z.strictObject(ofOrganization)

/** A name in a row that was tampered with: any text that Postgres has. */
const storedName = z.string().refine((name) => !name.includes('\0'))

const unrecordedCursor = z.discriminatedUnion('table', [
  z.strictObject({ table: z.literal('usage_events'), after: storedName.nullable() }),
  z.strictObject({
    table: z.literal('credit_entries'),
    after: z.strictObject({ organizationId: uuid, kind: storedName, id: storedName }).nullable(),
  }),
])

/** Rows of usage and credits without a record. */
export const unrecordedPageQuery = z.strictObject({
  limit: z.coerce.number('must be a number').int().min(1).max(1_000).default(500),
  cursor: jsonCursor(unrecordedCursor).default({ table: 'usage_events', after: null }),
})

/** Of all organizations where none is named. */
export const unrecordedQuery = unrecordedPageQuery.extend(ofOrganization)

/** Few at a time: each checkpoint holds the heads of all organizations. */
export const checkpointPageQuery = z.strictObject({
  limit: z.coerce.number('must be a number').int().min(1).max(100).default(20),
  cursor: uuid.optional(),
})

export const checkpointQuery = checkpointPageQuery.extend(ofOrganization)

export const exportQuery = z.strictObject({
  shard: z.coerce.number('must be a number').int().min(-LARGEST_INTEGER).max(LARGEST_INTEGER).default(0),
  after_sequence: z.coerce.number('must be a number').int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
  to_sequence: z.coerce.number('must be a number').int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
  limit: z.coerce.number('must be a number').int().min(1).max(1_000).default(500),
})

export const noQuery = z.strictObject({})

export const USAGE_DIMENSIONS = ['model', 'key', 'user', 'day'] as const

export const usageQuery = z.strictObject({
  ...pageParameters,
  ...period,
  group_by: z.enum(USAGE_DIMENSIONS).default('model'),
})

export const usageEventQuery = z.strictObject({ ...pageParameters, ...period })

const credentialPart = z
  .string()
  .min(1, 'must not be empty')
  .max(20_000, 'must have at most 20000 characters')
  .refine(isPlainText, 'must be one line of text')

const isPart = ([name, value]: [string, string]) =>
  /^[a-z][a-z0-9_]{0,39}$/.test(name) && credentialPart.safeParse(value).success

/**
 * One secret, or named parts; which parts a kind of provider takes is its own matter. What does not fit is not quoted, the
 * names neither: a secret may stand in the wrong place.
 */
const credential = z.union(
  [
    credentialPart,
    z
      .record(z.string(), z.string())
      .refine(
        (parts) => Object.entries(parts).every(isPart),
        'must hold names of lowercase letters, digits and underscores, each with one line of text',
      ),
  ],
  {
    error: ({ input }) =>
      input === undefined ? 'is required' : 'must be a text or an object of named texts',
  },
)

const address = z
  .string()
  .min(1, 'must not be empty')
  .max(2_000)
  .refine(isPlainText, 'must be one line of text')

/** Members of requests that pass to a provider although they select models, or belong to its state. */
const allowedMembers = z
  .array(z.string().regex(/^[A-Za-z_]{1,60}$/, 'must be names of members'))
  .max(50, 'may have at most 50 names')

export const providerCreation = z.strictObject({
  name: slug,
  kind: z.enum(['openai-compatible', 'anthropic']),
  base_url: address,
  credential,
  organization_id: uuid.nullish(),
  allowed_members: allowedMembers.optional(),
  /** Whether calls may use what has no price; their audit records are flagged. */
  allow_unpriced: z.boolean().optional(),
})

export const providerUpdate = z.strictObject({
  allow_unpriced: z.boolean().optional(),
  name: slug.optional(),
  base_url: address.optional(),
  credential: credential.optional(),
  allowed_members: allowedMembers.optional(),
  disabled: z.boolean().optional(),
})

const price = z
  .int('must be a whole number of micro-credits per million tokens')
  .min(0, 'must be at least 0')
  .max(1_000_000_000_000, 'must be at most 1000000000000')

const tokens = z.int('must be a whole number of tokens').min(1, 'must be at least 1').max(LARGEST_INTEGER)
const percent = z.int('must be a whole number of percent').min(1, 'must be at least 1').max(100_000)
const priceName = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,49}(=[A-Za-z0-9._-]{1,100})?$/, 'must be a unit, or a class as member=value')

/** Classes left out are charged as plain input. */
const prices = z
  .strictObject({
    input: price,
    output: price,
    cache_read: price.optional(),
    cache_write_5_minutes: price.optional(),
    cache_write_1_hour: price.optional(),
    /** Per million units that are billed apart, by their name. */
    units: z.record(priceName, price).optional(),
    /** Percent of the token prices for a selected class, as `member=value`. */
    classes: z.record(priceName, percent).optional(),
    long_context: z
      .strictObject({ above: tokens, input_percent: percent, output_percent: percent })
      .optional(),
  })
  .transform(({ input, output, units, classes, long_context: long, ...cache }) => ({
    input,
    output,
    cacheRead: cache.cache_read ?? input,
    cacheWrite5Minutes: cache.cache_write_5_minutes ?? input,
    cacheWrite1Hour: cache.cache_write_1_hour ?? input,
    ...(units && { units }),
    ...(classes && { classes }),
    ...(long && {
      longContext: {
        above: long.above,
        inputPercent: long.input_percent,
        outputPercent: long.output_percent,
      },
    }),
  }))

/** The whole model: a PUT replaces every member. */
export const modelReplacement = z.strictObject({
  owned_by: text(100),
  context_window: tokens,
  max_output_tokens: tokens,
  prices,
  capabilities: z.array(text(50)).max(50, 'must hold at most 50 capabilities').default([]),
  /** Best first. */
  routes: z
    .array(z.strictObject({ provider_id: uuid, upstream_model: text(300) }))
    .min(1, 'must hold at least one route')
    .max(20, 'must hold at most 20 routes'),
  disabled: z.boolean().default(false),
})

export type GrantCreation = z.infer<typeof grantCreation>
export type AuditQuery = z.infer<typeof auditQuery>
export type UnrecordedPosition = z.infer<typeof unrecordedCursor>
export type UsageQuery = z.infer<typeof usageQuery>
export type ModelReplacement = z.infer<typeof modelReplacement>
