import { compatibilityOf } from '../identity/principal.ts'
import { invalidRequest } from '../lib/api-error.ts'
import { COMPATIBILITIES, type Compatibility } from '../wire/compatibility.ts'
import type { AppContext } from './context.ts'

/** Selects the form of a response, in place of the setting of the caller's key. */
const HEADER = 'x-headgate-compatibility'

/** Values of the header have hyphens, as is usual in headers. */
const FORMS: ReadonlyMap<string, Compatibility> = new Map(
  COMPATIBILITIES.map((form) => [form.replaceAll('_', '-'), form]),
)

/** The form that a request selects by its header; null without one. @throws ApiError invalid_request for any other value. */
export function selectedCompatibility(context: AppContext): Compatibility | null {
  const value = context.req.header(HEADER)?.trim()
  if (!value) return null
  const form = FORMS.get(value)
  if (form) return form
  throw invalidRequest(`${HEADER}: must be ${[...FORMS.keys()].join(' or ')}`, 'invalid_header')
}

/** The form of errors: that of the header, or else of the caller's key, as it was last read. */
export function errorCompatibility(context: AppContext): Compatibility {
  const principal = context.get('rights')?.principal
  const selected = FORMS.get(context.req.header(HEADER)?.trim() ?? '')
  return selected ?? (principal ? compatibilityOf(principal) : 'headgate')
}

/** Types of the table of errors in the specification, and for further statuses those of OpenAI. */
const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found',
  429: 'too_many_requests',
  500: 'server_error',
}

/** The `error` of a body in Open Responses, with all of its members. */
export const openResponsesError = (status: number, message: string, code?: string) => ({
  message,
  type: ERROR_TYPES[status] ?? (status > 500 ? 'model_error' : 'invalid_request'),
  param: null,
  code: code ?? null,
})
