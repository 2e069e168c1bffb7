import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, present } from '../../protocols/json.ts'
import type { CanonicalTool, CanonicalToolChoice, CanonicalTurn } from './canonical-request.ts'

/** Description of a tool that the history names and that may not be called. */
const WITHHELD = 'This tool is not available. Do not call it.'

/**
 * `toolConfig` of a Converse request. There is no choice `none`, so that tools which may not be called are withheld. A
 * request whose history has calls must have it, with each tool that was called: those without a definition get one
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/tool-use-inference-call.html).
 * @throws ApiError invalid_request for a demand to call a tool that is not offered.
 */
export function toolConfigOf(
  offered: readonly CanonicalTool[],
  { mode, names }: CanonicalToolChoice,
  turns: readonly CanonicalTurn[],
): Json | undefined {
  const chosen = new Set(names)
  const allowed = names === null ? offered : offered.filter(({ name }) => chosen.has(name))
  const callable = mode === 'none' ? [] : allowed
  if (mode === 'required' && names !== null && callable.length === 0) {
    throw invalidRequest(`tool_choice: no function tool is named ${JSON.stringify(names[0] ?? '')}.`)
  }
  const known = new Set(callable.map(({ name }) => name))
  const withheld = [...calledNames(turns)].filter((name) => !known.has(name))
  if (callable.length + withheld.length === 0) return undefined
  const required = mode === 'required' && callable.length > 0
  return present({
    tools: [...callable.map(specOf), ...withheld.map(withheldSpec)],
    toolChoice: required ? demandOf(names) : undefined,
  })
}

/** Names of the tools that a history has calls of. */
function calledNames(turns: readonly CanonicalTurn[]): Set<string> {
  const calls = turns.flatMap(({ parts }) => parts.filter((part) => part.kind === 'call'))
  return new Set(calls.map(({ name }) => name))
}

const demandOf = (names: readonly string[] | null): Json => {
  const [name] = names ?? []
  return names?.length === 1 ? { tool: { name } } : { any: {} }
}

/** Only a few models hold themselves to a schema, and others refuse `strict`. */
const specOf = ({ name, description, parameters }: CanonicalTool): Json => ({
  toolSpec: present({ name, description, inputSchema: { json: parameters } }),
})

const withheldSpec = (name: string): Json => ({
  toolSpec: { name, description: WITHHELD, inputSchema: { json: { type: 'object', properties: {} } } },
})
