import * as z from 'zod'
import { LINE, modelId, text, uuid } from './management-fields.ts'
import { isPlainText } from './page-cursor.ts'

/**
 * Bodies of the management API for policies of data-loss prevention. A policy's body is stored in this form and read
 * through the same schema, so that a body that cannot be understood is never enforced in part.
 */

const LARGEST_PATTERN_COUNT = 64
/**
 * Characters of all terms of a policy, as they are compared (NFKC, which can make 18 of one). Compiled, each takes 14
 * bytes of the 128 MB that an isolate has.
 * @internal A bound that tests reach.
 */
export const LARGEST_DICTIONARIES = 1_000_000
/** Characters of a trial's text, and of all samples of a dry run. */
const LONGEST_TRIAL_TEXT = 200_000
const LONGEST_DRY_RUN = 1_000_000
/** Characters of a text that is tried as a stream: it is inspected again with every piece. */
const LONGEST_STREAM_TRIAL = 5_000

/** The parts of a call: the caller's request, the answer of a model, the arguments of a tool call, and its result. */
export const DIRECTIONS = ['request', 'response', 'tool_arguments', 'tool_result'] as const
/** Actions from mildest to most severe; where several rules meet, the most severe counts. */
export const ACTIONS = ['allow', 'warn', 'mask', 'redact', 'tokenise', 'block'] as const
export const CATEGORIES = [
  'secret',
  'financial',
  'government',
  'contact',
  'network',
  'crypto',
  'custom',
] as const

const direction = z.enum(DIRECTIONS)

const distinct = (items: readonly string[]) => new Set(items).size === items.length

const several = <Item extends z.ZodType<string>>(item: Item, most: number) =>
  z
    .array(item)
    .min(1, 'must not be empty: leave it out for all')
    .max(most, `must hold at most ${most}`)
    .refine(distinct, 'must not repeat an id')
    .meta({ uniqueItems: true })

const integrationId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'must be an integration id: letters, digits and . _ -')

/** The calls that a policy holds for: all, unless narrowed. Every kind that is given has to fit; within a kind, any id. */
const scope = z.strictObject({
  group_ids: several(uuid, 100).optional(),
  user_ids: several(uuid, 100).optional(),
  model_ids: several(modelId, 100).optional(),
  integration_ids: several(integrationId, 100).optional(),
})

const score = z.number('must be a number').min(0, 'must be at least 0').max(1, 'must be at most 1')

const detectorId = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,62}$/, 'must be a detector id: lowercase letters, digits, _ and -')

/** An id without two hyphens in a row: they separate an id from its policy where two policies use the same id. */
const customId = z
  .string()
  .max(40, 'must have at most 40 characters')
  .regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/, 'must be lowercase letters, digits and inner single hyphens')

const rule = z
  .strictObject({
    detector: detectorId.optional(),
    category: z.enum(CATEGORIES).optional(),
    /** Id of a pattern or dictionary of the same policy. */
    custom: customId.optional(),
    /** Left out: the detector's own. */
    minimum_score: score.optional(),
    action: z.enum(ACTIONS),
  })
  .refine(
    ({ detector, category, custom }) =>
      [detector, category, custom].filter((what) => what !== undefined).length === 1,
    'must name one of detector, category and custom',
  )
  .meta({ oneOf: ['detector', 'category', 'custom'].map((name) => ({ required: [name] })) })

const customScore = score
  .refine((value) => value > 0, 'must be above 0')
  .meta({ exclusiveMinimum: 0 })
  .default(1)

const pattern = z.strictObject({
  id: customId,
  /** RE2 syntax. */
  pattern: z
    .string()
    .min(1, 'must not be empty')
    .max(512, 'must have at most 512 characters')
    .refine(isPlainText, 'must not hold control characters')
    .meta({ pattern: LINE }),
  ignore_case: z.boolean().default(false),
  score: customScore,
})

const dictionary = z.strictObject({
  id: customId,
  terms: z
    .array(text(200))
    .min(1, 'must hold at least one term')
    .max(10_000, 'must hold at most 10000 terms'),
  ignore_case: z.boolean().default(true),
  score: customScore,
})

const lengthOfTerms = (dictionaries: ReadonlyArray<{ terms: readonly string[] }>) => {
  let length = 0
  for (const { terms } of dictionaries) for (const term of terms) length += term.normalize('NFKC').length
  return length
}

const treatment = z.enum(['allow', 'block'])

/** The treatment of images, sound and other content that no detector reads. */
const uninspectable = z.strictObject({
  request: treatment.optional(),
  response: treatment.optional(),
  tool_arguments: treatment.optional(),
  /** Left out: block. */
  tool_result: treatment.optional(),
})

const bodyMembers = {
  scope,
  directions: z
    .array(direction)
    .min(1, 'must hold at least one')
    .refine(distinct, 'must not repeat one')
    .meta({ uniqueItems: true }),
  rules: z.array(rule).max(200, 'must hold at most 200 rules'),
  patterns: z
    .array(pattern)
    .max(LARGEST_PATTERN_COUNT, `must hold at most ${LARGEST_PATTERN_COUNT} patterns`),
  dictionaries: z
    .array(dictionary)
    .max(16, 'must hold at most 16 dictionaries')
    .refine(
      (dictionaries) => lengthOfTerms(dictionaries) <= LARGEST_DICTIONARIES,
      `must have at most ${LARGEST_DICTIONARIES} characters in all terms together`,
    ),
  uninspectable,
}

const withDefaults = {
  ...bodyMembers,
  scope: scope.default({}),
  patterns: bodyMembers.patterns.default([]),
  dictionaries: bodyMembers.dictionaries.default([]),
  uninspectable: uninspectable.default({}),
}

/** A policy's body, complete: as it is stored. */
export const policyBody = z.strictObject(withDefaults)

export const policyCreation = z.strictObject({
  name: text(200),
  enabled: z.boolean().default(true),
  ...withDefaults,
})

/** Members left out keep their value. */
export const policyUpdate = z
  .strictObject({ name: text(200), enabled: z.boolean(), ...bodyMembers })
  .partial()
  .extend({
    /** The version that is changed, so that another change in between is not overwritten. */
    version: z.int('must be a whole number').min(1, 'must be at least 1'),
  })

/** The policy of a trial: a stored one, or a body that need not be stored. */
const triedPolicy = { policy: policyBody.optional(), policy_id: uuid.optional() }

const oneOfBoth = ({ policy, policy_id: id }: { policy?: unknown; policy_id?: unknown }) =>
  (policy === undefined) !== (id === undefined)

const NEEDS_POLICY = 'give either policy or policy_id'
const ONE_OF_BOTH = { oneOf: [{ required: ['policy'] }, { required: ['policy_id'] }] }

export const policyTrial = z
  .strictObject({
    ...triedPolicy,
    direction: direction.optional(),
    text: z.string().max(LONGEST_TRIAL_TEXT, `must have at most ${LONGEST_TRIAL_TEXT} characters`),
    /** Whether to try the text as a stream, too, of at most 5000 characters. */
    stream: z.boolean().default(false),
  })
  .refine(oneOfBoth, NEEDS_POLICY)
  .refine(({ stream, text }) => !stream || text.length <= LONGEST_STREAM_TRIAL, {
    message: `must have at most ${LONGEST_STREAM_TRIAL} characters to be tried as a stream`,
    path: ['text'],
  })
  .meta(ONE_OF_BOTH)

export const policyDryRun = z
  .strictObject({
    ...triedPolicy,
    direction: direction.optional(),
    samples: z
      .array(z.string())
      .min(1, 'must hold at least one sample')
      .max(1_000, 'must hold at most 1000 samples')
      .refine(
        (samples) => samples.reduce((sum, sample) => sum + sample.length, 0) <= LONGEST_DRY_RUN,
        `must have at most ${LONGEST_DRY_RUN} characters together`,
      ),
  })
  .refine(oneOfBoth, NEEDS_POLICY)
  .meta(ONE_OF_BOTH)

export type PolicyBody = z.infer<typeof policyBody>
export type PolicyCreation = z.infer<typeof policyCreation>
export type PolicyUpdate = z.infer<typeof policyUpdate>
export type PolicyTrial = z.infer<typeof policyTrial>
export type PolicyDryRun = z.infer<typeof policyDryRun>
