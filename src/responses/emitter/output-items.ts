import { upstreamToolName } from '../../gateway/translation/requests/responses-tools.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import type { OutputItem } from '../../wire/responses.ts'
import { sealReasoning } from '../items/reasoning-seal.ts'
import { sealedMemberOf } from '../items/redaction.ts'
import { newItemId } from '../items/types/item-types.ts'
import type { ContextItem, Members, Owner } from '../model/types.ts'
import type { ResponseEmitter, TurnEnd } from './emitter.ts'

const encoder = new TextEncoder()

/**
 * An output item as it continues in a conversation. It always has its sealed content and all other members, also when the
 * caller did not include them.
 * @param sealed null when there is nothing to seal. @param excluded members that the caller does not get.
 */
export function contextItemOf(
  item: OutputItem,
  sealed: string | null,
  excluded: Members | undefined = undefined,
): ContextItem {
  const sealedMember = sealedMemberOf(item)
  const whole = { ...item, ...excluded, ...(sealedMember !== undefined && { [sealedMember]: sealed }) }
  return {
    id: item.id,
    type: item.type,
    role: 'role' in item ? item.role : null,
    callId: 'call_id' in item ? (item.call_id ?? null) : null,
    bytes: encoder.encode(JSON.stringify(whole)),
  }
}

/** Members of an emitter's items that are not in the output. */
type Unsent = Pick<ResponseEmitter, 'reasoningSecrets' | 'excludedMembers'>

/** Output items as they continue in a conversation, with their reasoning sealed for the owner. */
export function sealedItems(
  { configuration }: { configuration: { VAULT_KEYS: KeyRing } },
  owner: Owner,
  output: readonly OutputItem[],
  { reasoningSecrets, excludedMembers }: Unsent,
): ContextItem[] {
  return output.map((item) => {
    const secret = reasoningSecrets.get(item.id)
    const sealed = secret ? sealReasoning(configuration.VAULT_KEYS, owner, secret) : null
    return contextItemOf(item, sealed, excludedMembers.get(item.id))
  })
}

/** Items of a turn, with the results that their calls have in the output. */
export function withResults(
  items: readonly ContextItem[],
  output: readonly OutputItem[],
  { excludedMembers }: Unsent,
): ContextItem[] {
  const calls = new Map(output.flatMap((item) => ('call_id' in item ? [[item.id, item]] : [])))
  return items.map((item) => {
    const call = calls.get(item.id)
    return call ? contextItemOf(call, null, excludedMembers.get(call.id)) : item
  })
}

/**
 * Refused calls of a turn with an output that explains the refusal. Only the model gets them.
 * @param exists whether there is a tool of a name.
 */
export function refusedCallItems(
  { calls, turn }: Pick<TurnEnd, 'calls' | 'turn'>,
  exists: (upstreamName: string) => boolean,
): ContextItem[] {
  const refused = calls.filter(({ purpose }) => purpose === 'refused')
  const called = refused.map(({ callId, upstreamName, arguments: json }) => {
    const name = upstreamToolName(null, upstreamName)
    return contextItem(turn, { type: 'function_call', call_id: callId, name, arguments: json })
  })
  const outputs = refused.map(({ callId, upstreamName }) => {
    const output = exists(upstreamName)
      ? `The tool ${upstreamName} may not be used now. Answer without it.`
      : `There is no tool named ${upstreamName}.`
    return contextItem(turn, { type: 'function_call_output', call_id: callId, output })
  })
  // An output ends the turn for a model, so that all calls stand before it.
  return [...called, ...outputs]
}

function contextItem(
  turn: string,
  item: { type: string; call_id: string; [member: string]: unknown },
): ContextItem {
  const id = newItemId(item.type, turn)
  const bytes = encoder.encode(JSON.stringify({ id, ...item }))
  return { id, type: item.type, role: null, callId: item.call_id, bytes }
}
