import { validateHeaderName, validateHeaderValue } from 'node:http'
import * as z from 'zod'

const headerValues = z
  .record(z.string(), z.union([z.string(), z.array(z.string())]))
  .refine(areLegalHeaders, 'an illegal header name or value')

/** Status and headers; with `body` it is the whole answer, without it the following steps write the body. */
const headStep = z
  .strictObject({
    status: z.int().min(200).max(599).optional(),
    headers: headerValues.optional(),
    body: z.string().optional(),
  })
  .refine((step) => Object.keys(step).length > 0, 'an empty step does nothing')

const stepSchema = z.union([
  z.strictObject({ json: z.unknown(), status: z.int().min(200).max(599).optional() }),
  z.strictObject({ sse: z.array(z.string()) }),
  z.strictObject({ chunk: z.string() }),
  z.strictObject({ chunkBase64: z.base64() }),
  z.strictObject({ waitMilliseconds: z.number().min(0).max(600_000) }),
  z.strictObject({ waitForSignal: z.string().regex(/^[\w.-]*[\w-]$/) }),
  z.strictObject({ destroy: z.literal(true) }),
  z.strictObject({ end: z.literal(true) }),
  z.strictObject({ silent: z.literal(true) }),
  headStep,
])

export type ScriptStep = z.infer<typeof stepSchema>

/** A step of a built-in script: as registered ones, or bytes written as fast as the client reads. */
export type Step = ScriptStep | { bytes: Buffer | string; events: number }

/** The steps of one answer, or those of a streamed and of a whole one. */
const responseSchema = z.union([
  z.strictObject({ steps: z.array(stepSchema) }),
  z.strictObject({ streamed: z.array(stepSchema), whole: z.array(stepSchema) }),
])

/** Body of `PUT /control/scripts/{name}`: one response, or several, used in turn; the last one repeats. */
export const scriptSchema = z.union([
  responseSchema,
  z.strictObject({ responses: z.array(responseSchema).min(1) }),
])

export type ScriptResponse = z.infer<typeof responseSchema>
export type Script = z.infer<typeof scriptSchema>

function areLegalHeaders(headers: Record<string, string | string[]>): boolean {
  try {
    for (const [name, values] of Object.entries(headers)) {
      validateHeaderName(name)
      for (const value of [values].flat()) validateHeaderValue(name, value)
    }
    return true
  } catch {
    return false
  }
}
