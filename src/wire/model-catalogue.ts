import * as z from 'zod'
import { LARGEST_INTEGER, LINE, slug, text, uuid, WEB_ADDRESS } from './management-fields.ts'
import { isPlainText } from './page-cursor.ts'

/** Bodies of the management API for providers and models. */

const LONGEST_PART = 20_000
const credentialPart = z
  .string()
  .min(1, 'must not be empty')
  .max(LONGEST_PART, `must have at most ${LONGEST_PART} characters`)
  .refine(isPlainText, 'must be one line of text')
  .meta({ pattern: LINE })

const PART_NAME = /^[a-z][a-z0-9_]{0,39}$/
/** A key in PEM form has several lines. */
const KEY_PART = 'private_key'
const isPart = ([name, value]: [string, string]) =>
  PART_NAME.test(name) &&
  credentialPart.safeParse(name === KEY_PART ? value.replace(/[\r\n]/g, '') : value).success

/**
 * One secret, or named parts; the kind of provider defines which. An error quotes neither values nor names, because a secret may
 * be in the wrong place.
 */
const credential = z.union(
  [
    credentialPart,
    z
      .record(z.string(), z.string())
      .refine(
        (parts) => Object.entries(parts).every(isPart),
        'must hold names of lowercase letters, digits and underscores, each with one line of text (`private_key`: several)',
      )
      .meta({
        propertyNames: { pattern: PART_NAME.source },
        additionalProperties: { type: 'string', minLength: 1, maxLength: LONGEST_PART, pattern: LINE },
      }),
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
  .meta({ pattern: WEB_ADDRESS })

/** Members of requests that pass to a provider although they select models, or belong to its state. */
const allowedMembers = z
  .array(z.string().regex(/^[A-Za-z_]{1,60}$/, 'must be names of members'))
  .max(50, 'may have at most 50 names')

export const providerKind = z.enum([
  'openai-compatible',
  'anthropic',
  'azure-openai',
  'foundry',
  'bedrock',
  'vertex',
  'gemini',
  'mistral',
  'groq',
  'xai',
  'deepseek',
  'together',
  'fireworks',
  'openrouter',
  'ollama',
  'vllm',
  'gemini-openai',
])

export const providerCreation = z.strictObject({
  name: slug,
  kind: providerKind,
  /** Kinds of one vendor have a default. */
  base_url: address.optional(),
  credential,
  organization_id: uuid.nullish(),
  allowed_members: allowedMembers.optional(),
  /** Whether calls without a price are allowed; their audit records are flagged. */
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

export const price = z
  .int('must be a whole number of micro-credits per million tokens')
  .min(0, 'must be at least 0')
  .max(1_000_000_000_000, 'must be at most 1000000000000')

const tokens = z.int('must be a whole number of tokens').min(1, 'must be at least 1').max(LARGEST_INTEGER)
export const percent = z.int('must be a whole number of percent').min(1, 'must be at least 1').max(100_000)
const priceName = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,49}(=[A-Za-z0-9._-]{1,100})?$/, 'must be a unit, or a class as member=value')

/** The members of prices that requests and answers share. */
export const priceMembers = {
  input: price,
  output: price,
  /** Prices per million units that are billed separately, by name of the unit. */
  units: z.record(priceName, price).optional(),
  /** Percent of the token prices for a selected class, as `member=value`. */
  classes: z.record(priceName, percent).optional(),
  long_context: z.strictObject({ above: tokens, input_percent: percent, output_percent: percent }).optional(),
}

/** Classes left out are charged as plain input. */
const prices = z
  .strictObject({
    ...priceMembers,
    cache_read: price.optional(),
    cache_write_5_minutes: price.optional(),
    cache_write_1_hour: price.optional(),
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
    .array(
      z.strictObject({
        provider_id: uuid,
        upstream_model: text(300),
        /** Of the token prices, for calls over this route. */
        price_percent: percent.default(100),
      }),
    )
    .min(1, 'must hold at least one route')
    .max(20, 'must hold at most 20 routes'),
  disabled: z.boolean().default(false),
})

export type ModelReplacement = z.infer<typeof modelReplacement>
