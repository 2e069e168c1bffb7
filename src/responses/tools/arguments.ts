import type * as z from 'zod'
import { invalidRequest } from '../../lib/api-error.ts'
import { issueReason } from '../../lib/schema-issues.ts'
import { toolSchema } from '../../lib/tool-schema.ts'

/** The arguments of a call. @throws ApiError whose message names each member that is wrong, for the model */
export function readArguments<Schema extends z.ZodType>(schema: Schema, json: string): z.infer<Schema> {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    throw invalidRequest('The arguments are not valid JSON.')
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const reasons = parsed.error.issues.map((issue) =>
    [issue.path.join('.'), issueReason(issue, value)].filter((part) => part !== '').join(': '),
  )
  throw invalidRequest(`The arguments do not fit: ${reasons.join('; ')}`)
}

/**
 * The JSON schema of a strict function: every member is required, and no other is allowed. Lengths of strings are not part
 * of strict schemas (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas).
 */
export function strictParameters(schema: z.ZodObject): Record<string, unknown> {
  const parameters = toolSchema(schema, 'input', ({ jsonSchema }) => {
    delete jsonSchema.minLength
    delete jsonSchema.maxLength
  })
  return { ...parameters, required: Object.keys(schema.shape), additionalProperties: false }
}
