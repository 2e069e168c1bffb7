import type { z } from 'zod'
import { invalidRequest } from '../lib/api-error.ts'
import type { AppContext } from './context.ts'
import { readGovernedBody } from './governed-body.ts'
import { explain } from './validated-request.ts'

/** A parsed body takes many times the bytes of its text. */
const LARGEST_BODY = 8 * 1024 * 1024

/**
 * Reads and checks the JSON body of an authenticated request, counted while it is read.
 * @throws ApiError as `readGovernedBody`; invalid_request naming every member that does not fit, and why.
 */
export async function readJson<Schema extends z.ZodType>(
  context: AppContext,
  schema: Schema,
): Promise<z.infer<Schema>> {
  const body = await readGovernedBody(context)
  try {
    if (body.bytes.length > LARGEST_BODY) {
      throw invalidRequest(`The body of this endpoint may have at most ${LARGEST_BODY} bytes.`)
    }
    return checkedJson(decode(body.bytes), schema)
  } finally {
    body.release()
  }
}

/** Checks the text of a JSON body. @throws ApiError invalid_request naming every member that does not fit, and why. */
export function checkedJson<Schema extends z.ZodType>(text: string, schema: Schema): z.infer<Schema> {
  const value = parse(text)
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw explain(parsed.error.issues, value, 'body')
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    throw invalidRequest('The body is not valid UTF-8.')
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidRequest('The body is not valid JSON.')
  }
}
