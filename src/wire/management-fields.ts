import * as z from 'zod'
import { isAgentModel } from './agent-model.ts'
import { cursorParameter, isPlainText } from './page-cursor.ts'

/**
 * Fields that bodies and queries of the management API share. Their objects are strict: a member that is not listed is an error
 * that names it, so that a misspelt limit is never silently no limit. Members left out of an update keep their value.
 */

// Lower case only: an organization's id is also the name of its ledger, so it needs one spelling.
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}$/

/** Postgres `integer`. */
export const LARGEST_INTEGER = 2_147_483_647

/** Whether a text has the form of an id of an organization, user, group, grant or provider. */
export const isUuid = (text: string) => UUID.test(text)
export const isModelId = (text: string) => MODEL_ID.test(text) && !isAgentModel(text)

// The values that checks by code accept, for descriptions of the API (JSON Schema).
const NO_CONTROLS = '[^\\u0000-\\u001f\\u007f]*'
const LINE_WITH_TEXT = `^${NO_CONTROLS}[^\\s\\u0000-\\u001f\\u007f]${NO_CONTROLS}$`

/** Trimmed text that Postgres can store, up to so many characters. */
export const text = (longest: number) =>
  z
    .string()
    .trim()
    .min(1, 'must not be empty')
    .max(longest, `must have at most ${longest} characters`)
    .refine(isPlainText, 'must not hold control characters')
    .meta({ pattern: LINE_WITH_TEXT })

/** A line of text that may be empty, or begin and end with spaces. */
export const LINE = `^${NO_CONTROLS}$`
/** A line that is compared with what is stored, such as a filter of a list. */
export const line = (longest: number) =>
  z.string().max(longest).refine(isPlainText, 'must not hold control characters').meta({ pattern: LINE })
/** Text of several lines that Postgres can store, and the same with more than white space. */
export const PARAGRAPHS = '^[^\\u0000]*$'
export const PARAGRAPHS_WITH_TEXT = '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$'
/** Levels of stored JSON. Deeper ones would end the stack of what writes them. */
const MOST_LEVELS = 100

/** Whether Postgres can store JSON as `jsonb`, level by level. */
function isStorable(value: object): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MOST_LEVELS || level.some((member) => typeof member === 'string' && !isText(member)))
      return false
    level = level.flatMap((member) => {
      if (typeof member !== 'object' || member === null) return []
      return Array.isArray(member) ? member : Object.entries(member).flat()
    })
  }
  return true
}

const isText = (value: string) => value.isWellFormed() && !value.includes('\0')

/** An object of any JSON that Postgres can store. @param longestName characters of the names of its own members. */
export const jsonObject = (longestName = Number.POSITIVE_INFINITY) =>
  z
    .record(Number.isFinite(longestName) ? z.string().max(longestName) : z.string(), z.unknown())
    .refine(isStorable, {
      message: `must have at most ${MOST_LEVELS} levels, and texts without NUL and halves of characters`,
      abort: true,
    })

/** An address of a server. Which of them may be called is not a matter of form. */
export const WEB_ADDRESS =
  '^[Hh][Tt][Tt][Pp][Ss]?://[^\\s\\u0000-\\u001f\\u007f/?#][^\\u0000-\\u001f\\u007f]*$'

export const slug = z
  .string()
  .regex(
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    'must be lowercase letters, digits and inner hyphens, up to 63',
  )

export const uuid = z.string().toLowerCase().regex(UUID, 'must be a UUID')

export const modelId = z
  .string()
  .refine(isModelId, 'must be a model id: letters, digits and . _ : @ / -, not beginning with agent/')
  .meta({ pattern: `^(?!agent/)${MODEL_ID.source.slice(1)}` })

/** `2026-11-21` (midnight UTC) or `2026-11-21T10:00:00Z`. */
export const instant = z
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

export const period = { from: instant.optional(), to: instant.optional() }

export const pageQuery = z.strictObject(pageParameters)

export const noQuery = z.strictObject({})
