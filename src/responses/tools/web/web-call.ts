import * as z from 'zod'
import { ApiError } from '../../../lib/api-error.ts'
import type { ToolResult } from '../../model/tool-result.ts'
import type { Members } from '../../model/types.ts'
import { readArguments } from '../arguments.ts'
import type { HostedCall } from '../hosted-tool.ts'
import { PageError } from './fetch-page.ts'
import { SearchError } from './search/search-provider.ts'

// Functions that the calls of web search and browser share.

const LONGEST_ADDRESS = 4_000
const LONGEST_PATTERN = 200

/** Models write addresses without a scheme, and numbers as texts. */
const url = z
  .string()
  .trim()
  .min(1)
  .max(LONGEST_ADDRESS)
  .transform((text) =>
    /^[a-z][a-z0-9+.-]*:/i.test(text) && !/^[\w.-]+:\d/.test(text) ? text : `https://${text}`,
  )

export const searchArguments = z.object({ query: z.string().trim().min(1).max(2_000) })
export const openArguments = z.object({ url, offset: z.coerce.number().int().min(0).nullish() })
export const findArguments = z.object({ url, pattern: z.string().trim().min(1).max(LONGEST_PATTERN) })
export const linksArguments = z.object({ url, filter: z.string().trim().max(LONGEST_PATTERN).nullish() })
export const screenshotArguments = z.object({ url })

/**
 * Runs a call whose failure is a result for the model.
 * @param membersOf members that the item has also if the call fails, since clients read them; from null where the arguments
 * cannot be read.
 */
export async function runWebCall<Schema extends z.ZodType>(
  schema: Schema,
  call: Pick<HostedCall, 'arguments'>,
  signal: AbortSignal,
  membersOf: (values: z.infer<Schema> | null) => Members,
  run: (values: z.infer<Schema>) => Promise<Members>,
): Promise<ToolResult> {
  let values: z.infer<Schema> | null = null
  try {
    values = readArguments(schema, call.arguments)
    return { status: 'completed', members: { ...membersOf(values), ...(await run(values)) } }
  } catch (error) {
    signal.throwIfAborted()
    const expected = error instanceof ApiError || error instanceof PageError || error instanceof SearchError
    if (!expected) throw error
    return { status: 'failed', members: { ...membersOf(values), error: error.message } }
  }
}
