import type { Json } from './json.ts'
export const OVERLOADED = 'overloaded_error'

/** Codes of chat completions upstreams for an overload. */
const OVERLOAD_CODES = new Set<unknown>([OVERLOADED, 'server_is_overloaded', 529, '529'])

/** Whether an error of either protocol states an overload of the provider. */
export const isOverload = ({ type, code }: Json): boolean => type === OVERLOADED || OVERLOAD_CODES.has(code)
