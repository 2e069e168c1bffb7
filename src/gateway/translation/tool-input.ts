import { type Json, objectIn } from '../protocols/json.ts'

/**
 * The vendor's own wrapper for arguments that are not JSON
 * (https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/fine-grained-tool-streaming).
 */
const INVALID_JSON = 'INVALID_JSON'

/**
 * Arguments of a call as the input of the messages protocol, which is an object. Cut-off or malformed arguments are
 * wrapped under a name of their own: refusing them would end the conversation, and dropping them would change the call.
 */
export function toolInput(written: string): Json {
  if (written.trim() === '') return {}
  return objectIn(written) ?? { [INVALID_JSON]: written }
}
