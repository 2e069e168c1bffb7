import * as z from 'zod'
import { integrationSlug } from './integrations.ts'
import {
  jsonObject,
  LINE,
  modelId,
  PARAGRAPHS,
  PARAGRAPHS_WITH_TEXT,
  pageQuery,
  text,
  uuid,
} from './management-fields.ts'
import { isPlainText } from './page-cursor.ts'

/** Definitions of agents, and the bodies and queries of the surfaces for agents and runs. */

/** Families of hosted tools that a step can be restricted to. */
const HOSTED_FAMILIES = ['shell', 'files', 'web_search', 'browser'] as const
const MOST_STEPS = 50
const MOST_INPUTS = 50
const MOST_TRIGGERS = 10
const DAY = 86_400
/** Postgres and JSON have this range exactly. */
const LARGEST_AMOUNT = 1_000_000_000_000_000

/** Text of several lines that Postgres can store. */
const paragraphs = (longest: number) =>
  z
    .string()
    .max(longest, `must have at most ${longest} characters`)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), 'must be text without NUL')
    .meta({ pattern: PARAGRAPHS })

const written = (longest: number) =>
  paragraphs(longest)
    .refine((value) => value.trim() !== '', 'must not be empty')
    .meta({ pattern: PARAGRAPHS_WITH_TEXT })

const wholeNumber = (least: number, most: number) =>
  z.int('must be a whole number').min(least, `must be at least ${least}`).max(most, `must be at most ${most}`)

/** The label of an input. Placeholders name it in braces, so that it has none. */
const inputLabel = text(100)
  .refine((label) => !/[{}]/.test(label), 'must not have braces')
  .refine((label) => !label.startsWith('steps.'), 'must not begin with steps., which names outputs')
  .meta({ not: { pattern: '^\\s*steps\\.|[{}]' } })

const input = z.strictObject({
  name: inputLabel,
  description: paragraphs(2_000).optional(),
  required: z.boolean().default(true),
  /** The value where a run gives none: the input need not be given then. */
  default: paragraphs(100_000).optional(),
})

/** The tools of an agent. When left out, every tool of the service may be used, and no integration. */
const tools = z.strictObject({
  hosted: z.array(z.enum(HOSTED_FAMILIES)).max(HOSTED_FAMILIES.length).optional(),
  integrations: z
    .array(
      z.strictObject({
        integration: integrationSlug,
        /** The connection that its calls use; the runner's preferred one where left out. */
        connection_id: text(200).optional(),
      }),
    )
    .max(50, 'must hold at most 50 integrations')
    .default([]),
})

const output = z.discriminatedUnion(
  'format',
  [
    z.strictObject({ format: z.literal('text') }),
    z.strictObject({
      format: z.literal('json_schema'),
      name: z
        .string()
        .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -')
        .default('output'),
      schema: jsonObject(),
    }),
  ],
  'must be text or json_schema',
)

const checkedText = paragraphs(10_000).min(1, 'must not be empty').meta({ pattern: PARAGRAPHS })

/** The name of a tool in checks: `shell`, `web_search`, `open_page` and the like, or `{integration}_{tool}`. */
const toolName = text(200)

/** A check of the output or of the tool calls of a step that needs no model. */
const check = z.discriminatedUnion(
  'type',
  [
    z.strictObject({ type: z.literal('not_empty') }),
    z.strictObject({ type: z.literal('contains'), text: checkedText }),
    z.strictObject({ type: z.literal('not_contains'), text: checkedText }),
    z.strictObject({ type: z.literal('json_schema'), schema: jsonObject() }),
    z.strictObject({ type: z.literal('tool_called'), tool: toolName }),
    z.strictObject({ type: z.literal('tool_not_called'), tool: toolName }),
  ],
  'must be not_empty, contains, not_contains, json_schema, tool_called or tool_not_called',
)

const step = z.strictObject({
  name: text(200).nullable().default(null),
  /** The instructions, with placeholders `{{label of an input}}` and `{{steps.1.output}}`. */
  instructions: written(200_000),
  /** The objective of the step, without placeholders, since values are evidence. A step without an objective is not evaluated. */
  objective: written(20_000).nullable().default(null),
  /** Conditions of its objective that are checked before a model judges. A step whose check fails has failed its objective. */
  checks: z.array(check).max(20, 'must hold at most 20 checks').optional(),
  model: modelId,
  tools: tools.default({ integrations: [] }),
  output: output.default({ format: 'text' }),
  timeout_seconds: wholeNumber(1, DAY).default(3_600),
  /** Maximum number of automatic attempts. An attempt that may have changed something is not repeated. */
  max_attempts: wholeNumber(1, 10).default(1),
  max_output_tokens: wholeNumber(1, 10_000_000).optional(),
  max_tool_calls: wholeNumber(1, 256).optional(),
})

export const inputValues = z
  .array(z.strictObject({ name: z.string().max(1_000), value: paragraphs(10_000_000) }))
  .max(1_000, 'must hold at most 1000 values')

const triggerName = z
  .string()
  .regex(
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    'must be lowercase letters, digits and inner hyphens, up to 63',
  )

const trigger = z.discriminatedUnion(
  'kind',
  [
    z.strictObject({
      kind: z.literal('schedule'),
      name: triggerName,
      /** https://upstash.com/docs/qstash/features/schedules */
      cron: z
        .string()
        .max(200)
        .regex(
          /^(CRON_TZ=[A-Za-z0-9_+/-]+ )?([\d*,/A-Za-z-]+ ){4}[\d*,/A-Za-z-]+$/,
          'must be a cron expression of five fields, with CRON_TZ=<zone> in front on request',
        ),
      inputs: inputValues.default([]),
    }),
    z.strictObject({ kind: z.literal('webhook'), name: triggerName }),
  ],
  'must be schedule or webhook',
)

const limits = z.strictObject({
  timeout_seconds: wholeNumber(1, 30 * DAY).default(DAY),
  /** Micro-credits that the steps of a run may cost together. Verdicts get what the steps have left. */
  max_credits: wholeNumber(1, LARGEST_AMOUNT).optional(),
})

export const visibility = z.enum(['creator', 'groups', 'organization'])

/** The content of an agent. Its versions are stored in this form. */
export const agentDefinition = z.strictObject({
  name: text(200),
  description: paragraphs(10_000).default(''),
  metadata: jsonObject(200)
    .refine((value) => JSON.stringify(value).length <= 65_536, 'may have at most 65536 bytes')
    .default({}),
  visibility: visibility.default('creator'),
  /** The groups of visibility `groups`. */
  group_ids: z.array(uuid).max(100, 'must hold at most 100 groups').default([]),
  inputs: z.array(input).max(MOST_INPUTS, `must hold at most ${MOST_INPUTS} inputs`).default([]),
  steps: z
    .array(step)
    .min(1, 'must hold at least one step')
    .max(MOST_STEPS, `must hold at most ${MOST_STEPS} steps`),
  triggers: z.array(trigger).max(MOST_TRIGGERS, `must hold at most ${MOST_TRIGGERS} triggers`).default([]),
  limits: limits.default({ timeout_seconds: DAY }),
  /** Model that judges objectives; that of the step where left out. */
  judge_model: modelId.optional(),
})

export type AgentDefinition = z.infer<typeof agentDefinition>
export type AgentStep = AgentDefinition['steps'][number]
export type StepCheck = z.infer<typeof check>
export type InputValue = z.infer<typeof inputValues>[number]

export const agentCreation = z.strictObject({
  /** The user with whose rights its triggers run. */
  created_by: uuid,
  definition: agentDefinition,
})

export const agentUpdate = z.strictObject({
  /** The version that is changed: another one is an error. */
  version: wholeNumber(1, 2_147_483_647),
  definition: agentDefinition,
})

export const agentListQuery = pageQuery.extend({ name: text(200).optional() })

export const runStatus = z.enum(['in_progress', 'success', 'failure', 'cancelled'])
export type RunStatus = z.infer<typeof runStatus>

export const runListQuery = pageQuery.extend({ status: runStatus.optional() })

const count = (fallback: number, least: number, most: number) =>
  z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(least, `must be at least ${least}`)
    .max(most, `must be at most ${most}`)
    .default(fallback)

/** Agents of an organization: a list without parameters has all of them. */
export const MOST_AGENTS = 1_000

/** `GET /v1/agents/list`. Other parameters are ignored (interface: its parameters are not shown). */
export const visibleAgentsQuery = z.object({
  limit: count(MOST_AGENTS, 1, MOST_AGENTS),
  offset: count(0, 0, 1_000_000),
  search: z
    .string()
    .max(200, 'must have at most 200 characters')
    .refine(isPlainText, 'must not hold control characters')
    .meta({ pattern: LINE })
    .optional(),
})

/** `POST /v1/agents/runs` (interface: Run trigger request). Other members are ignored. */
export const runRequest = z.object({
  agentId: z.string('is required and must be a string').min(1, 'must not be empty').max(200),
  inputs: z
    .array(z.object({ name: z.string().max(1_000), value: paragraphs(10_000_000) }))
    .max(1_000, 'must hold at most 1000 values')
    .nullish(),
})

/** The values of inputs by their names: `inputs` of `POST /v1/responses` for an agent. */
export const agentInputs = z
  .record(z.string().max(1_000), paragraphs(10_000_000))
  .refine((values) => Object.keys(values).length <= 1_000, 'must hold at most 1000 values')
  .meta({ maxProperties: 1_000 })

/** The body of a signed webhook. */
export const webhookBody = z.object({ inputs: runRequest.shape.inputs })
