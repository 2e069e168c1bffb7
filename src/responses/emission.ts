import type { KeyRing } from '../lib/crypto.ts'
import type { AdmittedRequest } from './admission.ts'
import { ResponseEmitter, type TurnEnd } from './emitter.ts'
import type { EmittedEvent } from './event-writer.ts'
import type { ReasoningSecret } from './item-types/reasoning-secret.ts'
import type { ResponseHead } from './object-state.ts'
import { readableResponse } from './reading.ts'
import { sealReasoning } from './reasoning-seal.ts'
import { initialResponse } from './response-object.ts'
import { outputContextItem, refusedCalls, sealedOf } from './said-items.ts'
import type { ContextItem, Owner } from './types.ts'

export interface EmissionDeps {
  configuration: { VAULT_KEYS: KeyRing }
}

const sealFor = (deps: EmissionDeps, owner: Owner) => (secret: ReasoningSecret) =>
  sealReasoning(deps.configuration.VAULT_KEYS, owner, secret)

/** The emitter of a response that begins. Its caller sees sealed reasoning when `include` asks for it. */
export function responseEmitter(
  deps: EmissionDeps,
  { responseId, owner, createdAt }: ResponseHead,
  { settings, policy, context, nameOf, shows }: AdmittedRequest,
  emit: (event: EmittedEvent) => void,
): ResponseEmitter {
  const asked = settings.include?.includes('reasoning.encrypted_content') ?? false
  const response = initialResponse(settings, {
    id: responseId,
    createdSeconds: Math.floor(createdAt / 1000),
    conversationId: context.conversationId,
    store: settings.store !== false,
    tools: settings.tools ?? [],
  })
  return new ResponseEmitter({
    response: readableResponse(policy, response),
    lastSequence: 0,
    emit,
    nameOf,
    shows,
    seal: asked ? sealFor(deps, owner) : () => null,
  })
}

/** @returns a function that gives what each turn added, as items for the next one. */
export function saidItemsOf(
  deps: EmissionDeps,
  owner: Owner,
  emitter: ResponseEmitter,
  { knows }: AdmittedRequest,
): (end: TurnEnd) => ContextItem[] {
  let told = 0
  return (end) => {
    const output = emitter.response.output.slice(told)
    told += output.length
    const said = output.map((item) =>
      outputContextItem(item, sealedOf(item, emitter.reasoningSecrets, sealFor(deps, owner))),
    )
    return [...said, ...refusedCalls(end, knows)]
  }
}
