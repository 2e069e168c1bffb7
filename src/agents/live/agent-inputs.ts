import { ApiError } from '../../lib/api-error.ts'
import type { AgentDefinition, InputValue } from '../../wire/agents.ts'
import { agentInputs } from '../../wire/agents.ts'
import { isMissing } from '../definitions/check-definition.ts'

/** A request for a run on the Responses surface: its members but `input`, and the text of that. */
interface AgentCall {
  settings: Readonly<Record<string, unknown>>
  text: string
}

/** Members that a run has a use for. */
const MEMBERS: ReadonlySet<string> = new Set(['model', 'inputs', 'stream', 'background', 'store', 'metadata'])

const invalid = (param: string, message: string) =>
  new ApiError('invalid_request', `${param}: ${message}`, { code: 'invalid_body', param })

/**
 * Checks that a request has no member that a run would ignore. What is null or empty is not there.
 * @throws ApiError invalid_request naming the first one.
 */
export function checkMembers({ settings }: AgentCall): void {
  const unused = Object.entries(settings).find(([name, value]) => !MEMBERS.has(name) && !isEmpty(value))
  if (unused) {
    throw invalid(unused[0].slice(0, 100), 'does not apply to an agent, whose definition decides about it.')
  }
  if (settings.store === false) throw invalid('store', 'must not be false: runs of agents are stored.')
}

const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  (typeof value === 'object' && Object.keys(value as object).length === 0)

/**
 * The values of an agent's inputs: those of `inputs`, and the text of `input`. The text is the value of the input that is
 * named `input`; or else of the only input that is left; or else of the only one that is required. Where several are left,
 * the text is a JSON object with their values. An agent without inputs takes no text, as it drops unknown inputs.
 * @throws ApiError invalid_request for a text that has no place, and for values that are not strings.
 */
export function inputsOf({ inputs }: Pick<AgentDefinition, 'inputs'>, call: AgentCall): InputValue[] {
  const given = valuesOf('inputs', call.settings.inputs ?? {})
  const { text } = call
  if (text === '' || inputs.length === 0) return given
  const names = new Set(given.map(({ name }) => name))
  const left = inputs.filter(({ name }) => !names.has(name))
  const place = placeOf(left)
  if (place) return [...given, { name: place.name, value: text }]
  if (left.length === 0) throw invalid('input', 'must be empty where `inputs` has a value for every input.')
  return [...given, ...valuesOf('input', objectOf(text, left))]
}

type Input = AgentDefinition['inputs'][number]

function placeOf(left: readonly Input[]): Input | undefined {
  const named = left.find(({ name }) => name === 'input')
  if (named || left.length === 1) return named ?? left[0]
  const required = left.filter((input) => isMissing(input, NOTHING))
  return required.length === 1 ? required[0] : undefined
}

const NOTHING = new Set<string>()

function objectOf(text: string, left: readonly Input[]): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const names = left.map(({ name }) => JSON.stringify(name)).join(', ')
    throw invalid('input', `the agent has several inputs (${names}): send a JSON object, or \`inputs\`.`)
  }
}

function valuesOf(param: string, value: unknown): InputValue[] {
  const parsed = agentInputs.safeParse(value)
  if (!parsed.success) throw invalid(param, 'must be an object with a text for each name of an input.')
  return Object.entries(parsed.data).map(([name, text]) => ({ name, value: text }))
}
