import { type Json, objectIn } from './json.ts'

/**
 * The vendor's own word for arguments that are not JSON
 * (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/fine-grained-tool-streaming).
 */
const INVALID_JSON = 'INVALID_JSON'

/**
 * Arguments of a call as the input of the messages protocol, which is an object. What a model wrote that is none, because
 * it was cut off or is malformed, is told under a name that says so: refusing it would end every conversation in which
 * it happened once, and dropping it would tell another call.
 */
export function toolInput(written: string): Json {
  if (written.trim() === '') return {}
  return objectIn(written) ?? { [INVALID_JSON]: written }
}
