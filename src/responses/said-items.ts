import { upstreamToolName } from '../gateway/translation/requests/responses-tools.ts'
import type { OutputItem } from '../wire/responses.ts'
import type { TurnEnd } from './emitter.ts'
import { newItemId } from './item-types/item-types.ts'
import type { ReasoningSecret } from './item-types/reasoning-secret.ts'
import { sealedMemberOf } from './reading.ts'
import type { ContextItem } from './types.ts'

const encoder = new TextEncoder()

/**
 * An item of an output as it goes on in a conversation. What is sealed in it is always there, whether or not its caller
 * asked to see that.
 * @param sealed null when there is nothing to seal.
 */
export function outputContextItem(item: OutputItem, sealed: string | null): ContextItem {
  const sealedMember = sealedMemberOf(item)
  const whole = sealedMember === undefined ? item : { ...item, [sealedMember]: sealed }
  return {
    id: item.id,
    type: item.type,
    role: 'role' in item ? item.role : null,
    callId: 'call_id' in item ? (item.call_id ?? null) : null,
    bytes: encoder.encode(JSON.stringify(whole)),
  }
}

/** What is sealed of an item of an output. */
export function sealedOf(
  item: OutputItem,
  secrets: ReadonlyMap<string, ReasoningSecret>,
  seal: (secret: ReasoningSecret) => string | null,
): string | null {
  const secret = secrets.get(item.id)
  return secret ? seal(secret) : null
}

/** Calls of a turn that nobody but the model hears of, each with why it was not made. */
export function refusedCalls(end: TurnEnd, known: (upstreamName: string) => boolean): ContextItem[] {
  return end.calls
    .filter(({ shown }) => !shown)
    .flatMap(({ callId, upstreamName, arguments: json }) => {
      const output = known(upstreamName)
        ? `The tool ${upstreamName} may not be used now. Answer without it.`
        : `There is no tool named ${upstreamName}.`
      const name = upstreamToolName(null, upstreamName)
      return [
        contextItem({ type: 'function_call', call_id: callId, name, arguments: json }),
        contextItem({ type: 'function_call_output', call_id: callId, output }),
      ]
    })
}

function contextItem(item: { type: string; call_id: string; [member: string]: unknown }): ContextItem {
  const id = newItemId(item.type)
  return {
    id,
    type: item.type,
    role: null,
    callId: item.call_id,
    bytes: encoder.encode(JSON.stringify({ id, ...item })),
  }
}
