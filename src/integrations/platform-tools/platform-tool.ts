import * as z from 'zod'
import type { ToolAnswer } from '../../calls/call-tool.ts'
import type { Principal } from '../../identity/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import { toolSchema } from '../../lib/tool-schema.ts'
import type { KeyScope } from '../../wire/key-scopes.ts'
import type { ToolDefinition } from '../types.ts'

/** Why a tool of the platform could not do its work (interface: Errors, MCP gateway, Tool level). */
type PlatformErrorCode =
  | 'invalid_input'
  | 'not_found'
  | 'permission_denied'
  | 'conflict'
  | 'unavailable'
  | 'internal'

/** Codes after which the same call may succeed. */
const RETRYABLE: readonly string[] = ['unavailable', 'internal']

type PlatformAnswer =
  | { kind: 'output'; output: Record<string, unknown> }
  | { kind: 'error'; code: PlatformErrorCode; message: string }

export const output = (value: Record<string, unknown>): PlatformAnswer => ({ kind: 'output', output: value })

export const platformError = (code: PlatformErrorCode, message: string): PlatformAnswer => ({
  kind: 'error',
  code,
  message,
})

/** The answer of work that throws ApiError. @throws what is no error for a caller. */
export async function outputOrError(work: Promise<Record<string, unknown>>): Promise<PlatformAnswer> {
  try {
    return output(await work)
  } catch (error) {
    const code = error instanceof ApiError ? codeOf(error) : undefined
    if (code === undefined || !(error instanceof ApiError)) throw error
    return platformError(code, error.message)
  }
}

/** Missing inputs of an agent are no conflict, although their status is that of one. */
const codeOf = ({ kind, code }: ApiError) => (code === 'missing_input' ? 'invalid_input' : CODES[kind])

const CODES: Partial<Record<ApiError['kind'], PlatformErrorCode>> = {
  invalid_request: 'invalid_input',
  forbidden: 'permission_denied',
  not_found: 'not_found',
  unprocessable: 'conflict',
  upstream: 'unavailable',
}

/** The hints of a tool (MCP, ToolAnnotations). */
export interface PlatformHints {
  readOnlyHint: boolean
  destructiveHint?: boolean
  idempotentHint?: boolean
  openWorldHint: boolean
}

export const READS: PlatformHints = { readOnlyHint: true, openWorldHint: false }

/** A tool of this service for clients of MCP. */
export interface PlatformTool<Deps> {
  name: string
  definition: ToolDefinition
  hints: PlatformHints
  /** Scope that a key needs besides the scope of the surface; null for none. */
  scope: KeyScope | null
  /** @param input the arguments of a call, parsed JSON of any shape. */
  call(deps: Deps, principal: Principal, input: unknown, signal: AbortSignal): Promise<PlatformAnswer>
}

/** The parts of a tool of the platform. */
interface PlatformToolParts<Deps, Input extends z.ZodType> {
  name: `platform_${string}`
  title: string
  description: string
  input: Input
  /** Left out for a tool whose output depends on its input. */
  output?: z.ZodType
  hints: PlatformHints
  /** Same as in `PlatformTool`; null when left out. */
  scope?: KeyScope
  run(deps: Deps, principal: Principal, input: z.output<Input>, signal: AbortSignal): Promise<PlatformAnswer>
}

/** Makes a tool: its JSON schemas are those of the zod schemas that check its arguments. */
export function platformTool<Deps, Input extends z.ZodType>(
  parts: PlatformToolParts<Deps, Input>,
): PlatformTool<Deps> {
  const { name, title, description, input, hints, scope = null, run } = parts
  let definition: ToolDefinition | undefined
  return {
    name,
    hints,
    scope,
    // Made when it is first listed: an isolate that serves no client of MCP needs none.
    get definition() {
      definition ??= {
        name,
        title,
        description,
        // JSON Schema 2020-12, the dialect of MCP where a schema names none.
        inputSchema: toolSchema(input, 'input'),
        ...(parts.output && { outputSchema: toolSchema(parts.output, 'output') }),
        annotations: { title, ...hints },
      }
      return definition
    },
    async call(deps, principal, value, signal) {
      const parsed = input.safeParse(value)
      if (!parsed.success) return platformError('invalid_input', z.prettifyError(parsed.error))
      return run(deps, principal, parsed.data, signal)
    },
  }
}

/** The key in `_meta` that marks an error of a tool of the platform (interface: Errors, MCP gateway, Tool level). */
const PLATFORM_ERROR_KEY = 'service.dev/platform-tool-error'

/** The CallToolResult of an answer. */
export function toolAnswerOf(answer: PlatformAnswer): ToolAnswer {
  if (answer.kind === 'output') {
    const { output: structuredContent } = answer
    return { status: 'completed', members: { content: [textContent(structuredContent)], structuredContent } }
  }
  return { status: 'failed', members: errorResult(answer.code, answer.message) }
}

/** The result of a call of the platform that failed. @param more members of the error beside those of the interface. */
export const errorResult = (
  code: string,
  message: string,
  more: Record<string, unknown> = {},
): Record<string, unknown> => ({
  content: errorContent(code, message, more),
  isError: true,
  _meta: { [PLATFORM_ERROR_KEY]: 1 },
})

/** The content of an error: one text with JSON. */
export function errorContent(
  code: string,
  message: string,
  more: Record<string, unknown> = {},
): Array<Record<string, unknown>> {
  return [textContent({ code, message, retryable: RETRYABLE.includes(code), ...more })]
}

const textContent = (value: Record<string, unknown>) => ({ type: 'text', text: JSON.stringify(value) })
