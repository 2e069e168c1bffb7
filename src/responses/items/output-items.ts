import { upstreamToolName } from '../../gateway/translation/requests/responses-tools.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import type { OutputItem } from '../../wire/responses.ts'
import type { ResponseEmitter, TurnEnd } from '../emitter/emitter.ts'
import { newItemId } from '../item-types/item-types.ts'
import type { ReasoningSecret } from '../item-types/reasoning-secret.ts'
import type { ContextItem, Owner } from '../types.ts'
import { sealReasoning } from './reasoning-seal.ts'
import { sealedMemberOf } from './redaction.ts'

export interface OutputDeps {
  configuration: { VAULT_KEYS: KeyRing }
}

const encoder = new TextEncoder()

/**
 * An item of an output as it goes on in a conversation. What is sealed in it is always there, whether or not its caller
 * asked to see that.
 * @param sealed null when there is nothing to seal.
 */
export function contextItemOf(item: OutputItem, sealed: string | null): ContextItem {
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

/**
 * What a turn added to the context of the next one: its output, then the calls that were refused.
 * @param from place of its first item in the output. @param known whether there is a tool of a name.
 */
export function turnItems(
  { configuration }: OutputDeps,
  owner: Owner,
  emitter: ResponseEmitter,
  end: TurnEnd,
  from: number,
  known: (upstreamName: string) => boolean,
): ContextItem[] {
  const seal = (secret: ReasoningSecret) => sealReasoning(configuration.VAULT_KEYS, owner, secret)
  const output = emitter.response.output.slice(from)
  const items = output.map((item) => contextItemOf(item, sealedOf(item, emitter.reasoningSecrets, seal)))
  return [...items, ...refusedCalls(end, known)]
}

/** The items of a turn, those of calls with the results that they have by now. */
export function withResults(items: readonly ContextItem[], output: readonly OutputItem[]): ContextItem[] {
  const calls = new Map(output.flatMap((item) => ('call_id' in item ? [[item.id, item]] : [])))
  return items.map((item) => {
    const call = calls.get(item.id)
    return call ? contextItemOf(call, null) : item
  })
}

/** Calls of a turn that only the model is told of, each with why it was not made. */
function refusedCalls(end: TurnEnd, known: (upstreamName: string) => boolean): ContextItem[] {
  return end.calls
    .filter(({ purpose }) => purpose === 'refused')
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
