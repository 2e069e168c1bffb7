import { ApiError } from '../../lib/api-error.ts'
import { type KeyRing, seal, unseal } from '../../lib/crypto.ts'
import type { AgentDefinition, InputValue } from '../../wire/agents.ts'
import { isMissing } from '../definitions/check-definition.ts'

/** Values by the labels of inputs. */
export type RunInputs = Readonly<Record<string, string>>

/** Key-value pairs of the caller (interface: Responses, `metadata`). */
export type RunMetadata = Readonly<Record<string, unknown>>

/** Bytes of the values of a run together: they are stored in one row, and a delivery has them in memory. */
const MOST_INPUT_BYTES = 10_000_000

/**
 * The values of a definition's inputs. Values of unknown names are dropped (interface: Agents). If a name is given
 * twice, the last value counts.
 * @throws ApiError unprocessable for a required input that is missing; invalid_request for values that are too large.
 */
export function declaredInputs(
  { inputs }: Pick<AgentDefinition, 'inputs'>,
  given: readonly InputValue[],
): RunInputs {
  const values = new Map(given.map(({ name, value }) => [name, value]))
  const missing = inputs.filter((input) => isMissing(input, values)).map(({ name }) => JSON.stringify(name))
  if (missing.length > 0) {
    const which = missing.length === 1 ? 'The required input' : 'The required inputs'
    throw new ApiError('unprocessable', `${which} ${missing.join(', ')} missing from inputs.`, {
      code: 'missing_input',
    })
  }
  const declared = inputs.flatMap(({ name }) => {
    const value = values.get(name)
    return value === undefined ? [] : [[name, value] as const]
  })
  const bytes = declared.reduce((sum, [, value]) => sum + Buffer.byteLength(value), 0)
  if (bytes > MOST_INPUT_BYTES) {
    throw new ApiError('invalid_request', `inputs: may have at most ${MOST_INPUT_BYTES} bytes.`, {
      code: 'invalid_body',
      param: 'inputs',
    })
  }
  return Object.fromEntries(declared)
}

/** The value that a placeholder has: given, or the default, or else empty. Undefined for an unknown name. */
export function inputValue(
  { inputs }: Pick<AgentDefinition, 'inputs'>,
  values: RunInputs,
  name: string,
): string | undefined {
  const input = inputs.find((each) => each.name === name)
  return input && (Object.hasOwn(values, name) ? values[name] : (input.default ?? ''))
}

/** The context under which the inputs of a run are sealed. */
export const inputsContext = (runId: string) => `run-inputs/${runId}`

/** Seals what a run was requested with. @param metadata of the request: only the response of the run has it. */
export const sealInputs = (
  ring: KeyRing,
  runId: string,
  inputs: RunInputs,
  metadata: RunMetadata = {},
): string => seal(ring, JSON.stringify([inputs, metadata]), inputsContext(runId))

/** @throws when the key of the vault is gone. */
export const openInputs = (ring: KeyRing, runId: string, sealed: string): RunInputs =>
  openRequest(ring, runId, sealed)[0]

/** @throws when the key of the vault is gone. */
export const openMetadata = (ring: KeyRing, runId: string, sealed: string): RunMetadata =>
  openRequest(ring, runId, sealed)[1]

function openRequest(ring: KeyRing, runId: string, sealed: string): [RunInputs, RunMetadata] {
  const request = JSON.parse(unseal(ring, sealed, inputsContext(runId)))
  // Runs of earlier releases have inputs only.
  return Array.isArray(request) ? (request as [RunInputs, RunMetadata]) : [request, {}]
}
